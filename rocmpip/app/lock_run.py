"""``rocmpip lock`` in full: exact pins with hashes for this machine or another, one file for each target."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocmpip.app.context import Context, gather
from rocmpip.app.lock_memo import Memo
from rocmpip.app.lock_target import OPTIONS, Variant, for_target, read_variant
from rocmpip.lock import text
from rocmpip.lock.model import Lock
from rocmpip.lock.text import Written, is_pylock
from rocmpip.model.errors import CheckFailed, InputError, UsageError
from rocmpip.model.packages import normalise
from rocmpip.model.redact import redact
from rocmpip.report import envelope, say

if TYPE_CHECKING:
    from rocmpip.index.client import Client

COMMAND = "lock"


def run(argv: Sequence[str]) -> int:
    """Run ``rocmpip lock ARGV`` in full and return the exit code."""
    # A short run that keeps nearly all it makes: looking for garbage in it costs a tenth of the time.
    gc.disable()
    try:
        return _lock(list(argv))
    except BaseException as problem:
        from rocmpip.app.command import guarded

        raised = problem

        def again() -> int:
            raise raised

        return guarded(COMMAND, "--json" in argv, again)


def _lock(argv: list[str]) -> int:
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
        results.append(_lock_one(context, argv, variant, _path(output, variant, several=len(variants) > 1)))
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
    if is_pylock(output):
        return str(path.with_name(f"pylock.{variant.label.replace('.', '-')}.toml"))
    return str(path.with_name(f"{path.stem}-{variant.label}{path.suffix}"))


def _lock_one(context: Context, argv: Sequence[str], variant: Variant, output: str) -> dict[str, object]:
    from rocmpip.app.lock_solve import Keep, make_lock

    given = _given(context)
    check = "check" in given
    path = "" if output in ("", "-") else str(Path(context.cwd, output))
    old_text = _existing(path)
    old = read_lock(old_text, path) if old_text else Written()
    if check and not path:
        raise UsageError("--check needs -o FILE: the lock to look at")
    if check and not old_text:
        raise CheckFailed(f"there is no lock {output}", hint="make it: the same command without --check")
    context = for_target(
        context,
        (given.get("python_version") or ("",))[-1],
        (variant.platform,) if variant.platform else given.get("platforms", ()),
    )
    with lock_client(context, output) as client:
        lock, until = make_lock(
            context,
            client,
            Keep(_kept_pins(old, given)),
            command=made_by(argv),
            wheelhouse={Path(context.cwd, one): _beside(one, context.cwd, path) for one in given.get("wheelhouse", ())},
        )
    new_text = render(lock, output)
    message = ""
    if check:
        _check(old, read_lock(new_text, path), output)
        message = f"{output} holds: {len(lock.entries)} packages"
    elif path:
        _write(Path(path), new_text, old_text)
        message = f"{len(lock.entries)} packages in {output}; install with: {text.install_command(lock, output)}"
    elif not context.ours.json:
        sys.stdout.write(new_text)
        sys.stdout.flush()
    if message and not context.request.quiet:
        say.step(message)
    if variant == Variant():
        told = "" if context.request.quiet else message
        Memo(argv, context.cwd, context.env).keep(context, path, old_text, new_text, told, until)
    return as_json(lock, output)


def _beside(folder: str, cwd: str, lock: str) -> str:
    """A folder as the lock names it: given as a relative path it is seen from the lock's own folder, as pip reads it."""
    full = os.path.join(cwd, folder)  # noqa: PTH118
    relative = lock and not os.path.isabs(folder)  # noqa: PTH117
    return os.path.relpath(full, os.path.dirname(lock)) if relative else os.path.normpath(full)  # noqa: PTH120


@contextmanager
def lock_client(context: Context, output: str) -> Iterator[Client]:
    """A client whose metadata is cached as one bundle for each lock; without a cache under --no-cache-dir."""
    from rocmpip.app.bundle import Bundle
    from rocmpip.app.open_client import cache_folder
    from rocmpip.index.client import Client
    from rocmpip.store.cache import PageCache

    index = context.request.index
    bundle = None
    if not context.request.no_cache:
        cache = PageCache(cache_folder(context) / "pages")
        bundle = Bundle(cache, index.index_url, *index.extra_index_urls, context.target.version, context.cwd, output)
    with Client(index, cache=bundle, env=context.env) as client:
        yield client
    if bundle is not None:
        bundle.flush()


def _kept_pins(old: Written, given: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Pins of the existing lock, without those that --upgrade and --upgrade-package let go."""
    loose = {normalise(name.strip()) for text in given.get("upgrade_package", ()) for name in text.split(",")}
    return {} if "upgrade" in given else {name: pin for name, pin in old.pins.items() if name not in loose}


def _existing(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read", why=getattr(problem, "strerror", "") or str(problem)) from None


def read_lock(content: str, path: str) -> Written:
    """A lock in either form. Raises InputError for a pylock file that is none."""
    if not is_pylock(path):
        return text.read(content)
    from rocmpip.lock import pylock

    return pylock.read(content, path)


def render(lock: Lock, output: str) -> str:
    """The lock's text in the form that the file's name asks for."""
    if not is_pylock(output):
        return text.write(lock, path=output)
    from rocmpip.lock import pylock

    return pylock.write(lock, path=output)


def _check(old: Written, new: Written, output: str) -> None:
    from rocmpip.lock.compare import differences

    found = differences(old, new)
    if found:
        raise CheckFailed(
            f"{output} no longer fits",
            why=f"{len(found)} differences",
            hint="lock again: the same command without --check",
            details=found,
        )


def _write(path: Path, content: str, old: str) -> None:
    """In one step, and not at all when nothing changed."""
    if content == old:
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(content, encoding="utf-8", newline="\n")
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written", why=problem.strerror or str(problem)) from None


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


def as_json(lock: Lock, output: str) -> dict[str, object]:
    """One row of ``result.locks[]``."""
    return {
        "file": output,
        "coordinates": dict(lock.coordinates.rows()),
        "install": text.install_command(lock, output),
        "packages": [
            {
                "name": entry.name,
                "version": entry.version,
                "hashes": list(entry.hashes),
                "via": list(entry.via),
                "recipe": entry.recipe,
                "url": entry.url,
            }
            for entry in lock.entries
        ],
    }
