"""``rocmpip lock`` in full: exact pins with hashes for this machine or another, one file for each target."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.app.context import Context, gather
from rocmpip.app.lock_memo import Memo
from rocmpip.app.lock_target import OPTIONS, Variant, for_target, read_variant, target_rules
from rocmpip.app.scout import Scouts
from rocmpip.model.errors import CheckFailed, UsageError
from rocmpip.model.packages import normalise
from rocmpip.model.redact import redact
from rocmpip.report import envelope, say

if TYPE_CHECKING:
    from rocmpip.app.scout_errand import Errand

COMMAND = "lock"


def run(argv: Sequence[str], scouts: Scouts | None = None) -> int:
    """Run ``rocmpip lock ARGV`` in full and return the exit code. ``scouts`` have no errand yet; they are ended here."""
    try:
        return _lock(list(argv), scouts)
    except BaseException as problem:
        from rocmpip.app.command import guarded

        raised = problem

        def again() -> int:
            raise raised

        return guarded(COMMAND, "--json" in argv, again)
    finally:
        if scouts is not None:
            scouts.dismiss()


def _lock(argv: list[str], scouts: Scouts | None) -> int:
    first = gather(COMMAND, argv, extra=OPTIONS)
    given = _given(first)
    variants = [read_variant(one) for one in given.get("for", ())]
    output = first.request.output
    if not first.request.requirements:
        raise UsageError("nothing to lock", hint="name requirements or a file: rocmpip lock -r requirements.in")
    if len(variants) > 1 and not output:
        raise UsageError("several targets need -o FILE", hint="each target's name is put before the file's ending")
    results: list[dict[str, object]] = []
    for variant in variants or [Variant()]:
        context = first if variant == Variant() else gather(COMMAND, _words(argv, variant), extra=OPTIONS)
        results.append(_lock_one(context, argv, variant, _path(output, variant, several=len(variants) > 1), scouts))
        scouts = None
    if first.ours.json:
        envelope.write(COMMAND, {"locks": results})
    return 0


def _given(context: Context) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, value in context.ours.extra:
        found[key] = (*found.get(key, ()), value)
    return found


def _words(argv: Sequence[str], variant: Variant) -> list[str]:
    """The command line with a target's values at its end, where they win."""
    words = [*argv]
    for option, value in (
        ("--gfx", variant.gfx),
        ("--rocm", variant.rocm),
        ("--channel", variant.channel),
        ("--python-version", variant.python),
        ("--platform", variant.platform),
    ):
        if value:
            words += [option, value]
    return words


def _path(output: str, variant: Variant, *, several: bool) -> str:
    """``locks/req.txt`` → ``locks/req-gfx942-rocm6.4.txt``; ``pylock.toml`` → ``pylock.gfx942-rocm6-4.toml``."""
    if not several or not output:
        return output
    path = Path(output)
    from rocmpip.lock.text import is_pylock

    if is_pylock(output):
        return str(path.with_name(f"pylock.{variant.label.replace('.', '-')}.toml"))
    return str(path.with_name(f"{path.stem}-{variant.label}{path.suffix}"))


def _lock_one(context: Context, argv: Sequence[str], variant: Variant, output: str, scouts: Scouts | None) -> dict[str, object]:
    given = _given(context)
    check = "check" in given
    path = "" if output in ("", "-") else str(Path(context.cwd, output))
    if check and not path:
        raise UsageError("--check needs -o FILE: the lock to look at")
    context = for_target(
        context,
        (given.get("python_version") or ("",))[-1],
        (variant.platform,) if variant.platform else given.get("platforms", ()),
    )
    wheelhouse = {Path(context.cwd, one): _beside(one, context.cwd, path) for one in given.get("wheelhouse", ())}
    cache, subject = _cache_place(context, output)
    ahead = None
    if scouts is not None and context.platform.state == "none" and not wheelhouse:
        from rocmpip.app.scout_errand import send_errand

        ahead = scouts, send_errand(scouts, _errand(context, cache, subject))
    elif scouts is not None:
        scouts.dismiss()
    # The scouts are under way: what is long to load is loaded from here on.
    from rocmpip.app.lock_client import lock_client
    from rocmpip.app.lock_file import as_json, check_lock, existing, read_lock, render, write_lock
    from rocmpip.app.lock_ground import Keep
    from rocmpip.app.lock_solve import make_lock
    from rocmpip.lock.text import install_command

    old_text = existing(path)
    if check and not old_text:
        raise CheckFailed(f"there is no lock {output}", hint="make it: the same command without --check")
    old = read_lock(old_text, path) if old_text else None
    troubles: list[str] = []
    with lock_client(context.request.index, cache, subject, context.env, keep=ahead is None, warn=troubles.append) as client:
        lock, until, notes = make_lock(
            context,
            client,
            Keep(_kept_pins(old.pins if old else {}, given)),
            command=made_by(argv),
            wheelhouse=wheelhouse,
            ahead=ahead,
        )
    new_text = render(lock, output)
    message = ""
    if old is not None and check:
        check_lock(old, read_lock(new_text, path), output)
        message = f"{output} holds: {len(lock.entries)} packages"
    elif path:
        write_lock(Path(path), new_text, old_text)
        message = f"{len(lock.entries)} packages in {output}; install with: {install_command(lock, output)}"
    elif not context.ours.json:
        sys.stdout.write(new_text)
        sys.stdout.flush()
    if message and not context.request.quiet:
        say.step(message)
    if variant == Variant():
        told = "" if context.request.quiet else message
        trouble = Memo(argv, context.cwd, context.env).keep(
            context, path, old_text, new_text, told, notes, until, tuple(map(str, wheelhouse))
        )
        if trouble:
            # Where scouts write the rest of the cache, this file of ours speaks for all.
            troubles.append(f"the cache {Path(cache).parent} is not used for writing: {trouble}")
    if scouts is not None:
        scouts.wait()  # they write their part of the cache meanwhile
    if troubles and context.request.quiet < 2:
        say.warning(troubles[0])
    return as_json(lock, output)


def _errand(context: Context, cache: str, subject: tuple[str, ...]) -> Errand:
    from rocmpip.app.scout_errand import Errand

    request = context.request
    return Errand(
        index=request.index,
        requirements=request.requirements,
        constraints=request.constraints,
        rules=target_rules(context),
        markers=context.markers,
        pre=request.pre,
        cache=cache,
        subject=subject,
        catalogue=context.settings.catalogue_path,
    )


def _cache_place(context: Context, output: str) -> tuple[str, tuple[str, ...]]:
    """Folder of the page cache ("" under --no-cache-dir), and what this lock's metadata is filed under in it."""
    from rocmpip.app.open_client import cache_folder

    index = context.request.index
    folder = "" if context.request.no_cache else str(cache_folder(context) / "pages")
    return folder, (index.index_url, *index.extra_index_urls, context.target.version, context.cwd, output)


def _beside(folder: str, cwd: str, lock: str) -> str:
    """A folder as the lock names it: given as a relative path it is seen from the lock's own folder, as pip reads it."""
    full = os.path.join(cwd, folder)  # noqa: PTH118
    relative = lock and not os.path.isabs(folder)  # noqa: PTH117
    return os.path.relpath(full, os.path.dirname(lock)) if relative else os.path.normpath(full)  # noqa: PTH120


def _kept_pins(old: Mapping[str, str], given: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Pins of the existing lock, without those that --upgrade and --upgrade-package let go."""
    loose = {normalise(name.strip()) for text in given.get("upgrade_package", ()) for name in text.split(",")}
    return {} if "upgrade" in given else {name: pin for name, pin in old.items() if name not in loose}


_TRANSIENT = frozenset(("--check", "--json", "--upgrade", "-U", "-q", "-v", "--quiet", "--verbose"))
_TRANSIENT_VALUED = frozenset(("--upgrade-package", "-P", "--cache-dir", "--log", "--proxy", "--timeout", "--retries"))


def made_by(argv: Sequence[str]) -> str:
    """The command that makes this lock anew, without credentials and without what only one run was told."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        name = word.partition("=")[0]
        if word in _TRANSIENT:
            continue
        if name in _TRANSIENT_VALUED:
            if name == word:
                next(words, None)
            continue
        kept.append(redact(word))
    return " ".join(_quoted(word) for word in ("rocmpip", "lock", *kept))


def _quoted(word: str) -> str:
    """``word`` as a shell reads it back (shlex.quote, without the import)."""
    if word and all(char.isalnum() or char in "@%+=:,./-_" for char in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"
