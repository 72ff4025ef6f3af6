"""A lock that was made a moment ago from the same inputs is the same lock: then nothing is asked and hardly anything imported.

What an answer depends on: the command line, the environment variables that matter, every file that was read (settings,
trust, catalogue and recipes are files too), the target environment, the machine with its GPUs, ROCm and driver, this
version of rocmpip, and the indexes for as long as their pages are fresh. The memo holds a
digest of all that (never the values: some are secrets) and of the answer, with the file that came out and the notes. ``store/cache`` is not used here,
since importing it would cost more than reading one file.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rocmpip import __version__
from rocmpip.model.errors import RocmpipError

if TYPE_CHECKING:
    from rocmpip.app.context import Context

SCHEMA = 2
_PREFIXES = ("PIP_", "ROCMPIP_", "ROCR_", "HIP_", "HSA_", "ROCM_", "CONDA_", "XDG_", "GPU_", "PYTORCH_", "AMDGPU_", "CUDA_")
_NAMES = ("HOME", "PATH", "VIRTUAL_ENV", "NETRC", "PYTHONPATH", "PYTHONHOME")
_LARGEST = 8 * 2**20
_LONGEST = 86400.0
_KEPT = 100
_ANSWER = ("output", "content", "message", "notes")


class Memo:
    """The memo of one command line in one folder. Reading never fails, writing is tried once."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        self._env = env
        self._words = repr([list(argv), cwd])
        self.path = ""
        root = env.get("ROCMPIP_CACHE_DIR") or _join(
            env.get("XDG_CACHE_HOME") or _join(env.get("HOME", ""), ".cache"), "rocmpip"
        )
        afresh = any(word in ("--no-cache-dir", "--no-cache") or word.startswith("--refresh-package") for word in argv)
        if root and not afresh:
            # Two command lines of one name would only take turns: what is believed is in the digest.
            words = self._words.encode("utf-8", "surrogateescape")
            name = f"{zlib.crc32(words):08x}{zlib.adler32(words):08x}-{len(words)}"
            self.path = os.path.join(root, "locks", name + ".json")  # noqa: PTH118

    def recall(self) -> dict[str, str] | None:
        """``output``, ``content``, ``notes`` (lines) and ``message`` of the lock that was made from exactly this, if it still holds.

        The file must be what was written then; or be absent, if it was absent before (an existing lock has a say).
        """
        known = self._load()
        if known is None or known.get("schema") != SCHEMA or not time.time() < float(known.get("until", 0)):
            return None
        try:
            if known["key"] != self._digest(known["files"], _machine(known["detect"], self._env), _answer(known)):
                return None
            found = {key: str(known[key]) for key in _ANSWER}
            here = _text(found["output"]) if found["output"] else None
            if here is None and found["output"] and not known["from_nothing"]:
                return None
        except (KeyError, TypeError, ValueError, OSError, RocmpipError):
            return None
        return found if here in (None, found["content"]) else None

    def keep(
        self,
        context: Context,
        output: str,
        old: str,
        content: str,
        message: str,
        notes: Sequence[str],
        until: float,
        folders: Sequence[str] = (),
    ) -> str:
        """Remember what came out for this context until then; returns why that cannot be written, "" for no trouble.

        ``folders`` of files have had a say too. Without effect where something cannot be watched.
        """
        files = _files(context, folders) if self.path and until > time.time() else None
        if files is None:
            return ""
        settings = context.settings
        detect = {
            "gfx": list(settings.gfx),
            "gfx_source": settings.where.get("gfx", "--gfx"),
            "rocm": settings.rocm,
            "rocm_source": settings.where.get("rocm", "--rocm"),
            "python": context.request.python or settings.python,
            "catalogue": list(settings.catalogue_path),
            "cwd": context.cwd,
        }
        record = {
            "schema": SCHEMA,
            "until": min(until, time.time() + _LONGEST),
            "detect": detect,
            "files": files,
            "output": output,
            "from_nothing": not old,
            "content": content,
            "message": message,
            "notes": "\n".join(notes),
        }
        import json

        try:
            record["key"] = self._digest(files, _machine(detect, self._env), _answer(record))
            _write(self.path, json.dumps(record))
        except OSError as problem:
            return problem.strerror or str(problem)
        except (ValueError, RocmpipError):
            pass
        return ""

    def _load(self) -> dict[str, Any] | None:
        if not self.path:
            return None
        try:
            if os.stat(self.path).st_uid != os.geteuid():  # noqa: PTH116
                return None
            import json  # not loaded where there is no memo

            known = json.loads(_text(self.path) or "null")
        except (OSError, ValueError):
            return None
        return known if isinstance(known, dict) else None

    def _digest(self, files: Iterable[str], machine: str, answer: list[str]) -> str:
        import hashlib
        import json

        digest = hashlib.sha256()
        read = bytearray()
        for path in files:
            data = _content(path)
            digest.update(b"%s\0%d\0" % (os.fsencode(path), len(data)) + data)
            read += data
        # A recipe may match on any variable: one counts as soon as a file names it.
        env = sorted(
            (name, value)
            for name, value in self._env.items()
            if name.startswith(_PREFIXES)
            or name in _NAMES
            or name.lower().endswith(("_proxy", "_ca_bundle"))
            or os.fsencode(name) in read
        )
        digest.update(json.dumps([__version__, self._words, env, machine, answer]).encode("utf-8", "surrogateescape"))
        return digest.hexdigest()


def _answer(record: Mapping[str, Any]) -> list[str]:
    return [str(record[key]) for key in (*_ANSWER, "until", "from_nothing")]


def _content(path: str) -> bytes:
    """A file's bytes, or what is in a folder with sizes and times; both may be absent."""
    try:
        if os.path.isdir(path):  # noqa: PTH112
            with os.scandir(path) as rows:
                found = sorted(f"{row.name}\0{(about := row.stat()).st_size}\0{about.st_mtime_ns}" for row in rows)
            return b"\0folder\0" + "\0".join(found).encode("utf-8", "surrogateescape")
        with open(path, "rb") as stream:
            return stream.read(_LARGEST + 1)
    except OSError:
        return b"\0absent"


def _machine(detect: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """The machine and the target environment as detection sees them now."""
    from rocmpip.app.detect import detect_platform

    platform, target, dists = detect_platform(
        env=env,
        gfx=tuple(detect["gfx"]),
        gfx_source=detect["gfx_source"],
        rocm=detect["rocm"],
        rocm_source=detect["rocm_source"],
        python=detect["python"],
        cwd=detect["cwd"],
        catalogue=tuple(detect["catalogue"]),
    )
    return repr((platform, target, dists))


def _files(context: Context, folders: Sequence[str]) -> list[str] | None:
    """Every file and folder whose content decides; None when something else does (a remote file, a variable inside a file)."""
    from pathlib import Path

    from rocmpip.store.settings import SITE_FILE, user_file
    from rocmpip.store.trust import FILE, state_folder
    from rocmpip.target.config import config_files

    request = context.request
    places = [os.path.join(context.cwd, link) for link in (*request.index.find_links, *folders)]  # noqa: PTH118
    if any("://" in path for path in request.files) or not all(map(os.path.isdir, places)):
        return None
    for path in request.files:
        # ${NAME} in a requirement file reads a variable that the digest does not know of.
        if "${" in (_text(path) or "${"):
            return None
    here = Path(context.cwd).absolute()
    found = [*places, *request.files, *map(str, config_files(context.env, context.target.prefix, isolated=request.isolated))]
    found += [str(path) for path in (SITE_FILE, user_file(context.env)) if path is not None]
    found += [str(folder / "pyproject.toml") for folder in (here, *here.parents)]
    found += [str(Path(context.target.prefix) / "pyvenv.cfg"), str(state_folder(context.env) / FILE)]
    return found if context.platform.state == "none" else [*found, *_files_of_rocm(context)]


def _files_of_rocm(context: Context) -> list[str]:
    """Recipes of every layer, the catalogue's data, and where a ROCm root says its version."""
    from pathlib import Path

    from rocmpip.app.lock_machine import HIP_VERSIONS
    from rocmpip.app.recipe import PROJECT_FOLDER, layers

    here = Path(context.cwd).absolute()
    places = [place for _, place in layers(context.settings, context.env, context.cwd, context.recipe_files)]
    places += [folder / PROJECT_FOLDER for folder in (here, *here.parents)]
    places += [Path(__file__).parent.parent / "catalogue" / "data", *map(Path, context.settings.catalogue_path)]
    found = [str(path) for place in dict.fromkeys(places) for path in (place, *sorted(place.glob("*.toml")))]
    root = context.platform.rocm_root
    machine = context.env.get("ROCMPIP_SYSROOT", "")
    return [*found, *(f"{machine}{root}/{place}" for place in HIP_VERSIONS if root)]


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return stream.read(_LARGEST)
    except FileNotFoundError:
        return None


def _join(folder: str, name: str) -> str:
    return os.path.join(folder, name) if folder else ""  # noqa: PTH118


def _make_room(folder: str) -> None:
    """Keep the newest memos only. Other processes write, rename and remove here at the same time: what is gone is no trouble."""
    import contextlib

    found = []
    with os.scandir(folder) as rows:
        for row in rows:
            with contextlib.suppress(FileNotFoundError):
                found.append((row.stat(follow_symlinks=False).st_mtime, row.path))
    for _, path in sorted(found)[:-_KEPT]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108


def _write(path: str, text: str) -> None:
    folder = os.path.dirname(path)  # noqa: PTH120
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    _make_room(folder)
    temporary = f"{path}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, path)  # noqa: PTH105
    except OSError:
        os.unlink(temporary)  # noqa: PTH108
        raise
