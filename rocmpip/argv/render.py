"""Values → the words that give them to a pip whose own configuration was taken away."""

from __future__ import annotations

from collections.abc import Iterator

from rocmpip.argv.files import Scope
from rocmpip.argv.table import COMMAND, GENERAL, Option
from rocmpip.argv.values import Values

_NOT_HANDED_ON = frozenset(
    (
        # Said by the plan: what to install and from where.
        "requirements",
        "constraints",
        "build_constraints",
        "scripts",
        "groups",
        "editables",
        "index_url",
        "extra_index_urls",
        "find_links",
        "no_index",
        "refresh_package",
        "only_deps",
        # The proxy goes by environment: --proxy would send even the router's address to it.
        "proxy",
        "no_proxy_env",
        # Said by rocmpip itself. --isolated would make pip ignore the environment that points at the router.
        "python",
        "isolated",
        "dry_run",
        "report",
        "help",
        "version",
        # Gathered over the command line and the files, rendered below.
        "no_binary",
        "only_binary",
        "all_releases",
        "only_final",
        "pre",
        "prefer_binary",
        "trusted_hosts",
        "use_feature",
        "require_hashes",
        "no_require_hashes",
    )
)


def options_for_pip(values: Values, scope: Scope) -> tuple[str, ...]:
    """pip's options to hand on, in full spelling, ``--name`` and value as separate words."""
    words: list[str] = []
    done: set[tuple[str, str]] = set()
    for option in COMMAND + GENERAL:
        if option.dest in _NOT_HANDED_ON or not values.given(option.dest) or (option.dest, option.action) in done:
            continue
        done.add((option.dest, option.action))
        words.extend(_words(option, values))
    words.extend(_gathered(scope))
    return tuple(words)


def _words(option: Option, values: Values) -> Iterator[str]:
    name = option.name
    if option.action in ("flag", "nocache"):
        if values.flag(option.dest):
            yield name
    elif option.action == "off":
        if not values.flag(option.dest):
            yield name
    elif option.action == "count":
        for _ in range(values.number(option.dest)):
            yield name
    elif option.action in ("append", "collect"):
        for value in values.many(option.dest):
            yield from (name, value)
    else:
        yield from (name, values.text(option.dest))


def _gathered(scope: Scope) -> Iterator[str]:
    yield from _sets(("--no-binary", scope.binary.first), ("--only-binary", scope.binary.second))
    if scope.pre:
        # --pre and --all-releases refuse each other.
        yield "--pre"
    else:
        yield from _sets(("--all-releases", scope.releases.first), ("--only-final", scope.releases.second))
    if scope.prefer_binary:
        yield "--prefer-binary"
    for host in scope.trusted_hosts:
        yield from ("--trusted-host", host)
    for feature in scope.features:
        yield from ("--use-feature", feature)
    if scope.no_require_hashes:
        yield "--no-require-hashes"
    elif scope.require_hashes:
        yield "--require-hashes"


def _sets(*sets: tuple[str, list[str]]) -> Iterator[str]:
    """One option a member. ``:all:`` goes first and alone: pip empties both sets when it reads it."""
    rows = [(name, member) for name, members in sets for member in members]
    for row in sorted(rows, key=lambda row: row[1] != ":all:"):
        yield from row


_UNINSTALL = frozenset(("break_system_packages", "root_user_action"))


def uninstall_options(options: tuple[str, ...]) -> tuple[str, ...]:
    """The part of ``Request.options`` that ``pip uninstall`` takes too."""
    taken = {row.name: row for row in GENERAL} | {row.name: row for row in COMMAND if row.dest in _UNINSTALL}
    every = {row.name: row for row in COMMAND + GENERAL}
    words = iter(options)
    kept: list[str] = []
    for word in words:
        row = every.get(word)
        value = [next(words, "")] if row is not None and row.takes_value else []
        if word in taken:
            kept.extend((word, *value))
    return tuple(kept)
