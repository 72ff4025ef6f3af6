"""A Dockerfile that reproduces a lock's environment, as text: pure, so that every line of it can be tested."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rocmpip.model.errors import InputError
from rocmpip.model.record import Struct, field

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*\Z")
_NAME = re.compile(r"[A-Za-z0-9._-]+\Z")
_FOLDER = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*\Z")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_GFX = re.compile(r"gfx[0-9a-f]+\Z")
_PYLOCK_PIP = "26.1"
"""The first pip that installs from a pylock file (pip's release notes)."""
_UBUNTU = {"3.12": "24.04", "3.10": "22.04"}
"""Ubuntu releases that AMD's ROCm images are made of, by the Python they have."""


class Image(Struct, frozen=True):
    """What goes into the Dockerfile. ``lock`` is the lock's file name in the build context."""

    lock: str
    python: str
    rocm: str = ""
    gfx: tuple[str, ...] = ()
    base: str = ""
    """Base image; "" for the usual one of the ROCm and Python."""
    builds: tuple[str, ...] = ()
    """Packages that are built from source: then the image has two stages and rocmpip works in the first."""
    torch: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    """Run-time variables of recipes."""
    no_deps: bool = False
    any_python: bool = False
    """Some of its files say that they are for older Pythons."""
    rocmpip: str = ""
    """Version of rocmpip that the build stage installs."""
    pylock: bool = False
    folders: tuple[str, ...] = ()
    """Folders of wheels that go into the image with the lock, relative to it."""


def base_image(image: Image) -> str:
    """``rocm/dev-ubuntu-24.04:6.4`` where that has the Python and something needs ROCm, else ``python:3.11-slim``: ROCm wheels bring their ROCm."""
    if image.base:
        return image.base
    ubuntu = _UBUNTU.get(image.python)
    if image.rocm and ubuntu:
        kind = "-complete" if image.builds else ""
        return f"docker.io/rocm/dev-ubuntu-{ubuntu}:{image.rocm}{kind}"
    if image.builds:
        raise InputError(
            f"no ROCm image with Python {image.python} is known",
            why="the lock has packages that are built from source, which needs ROCm's compilers in the image",
            hint="name an image that has both: --base IMAGE; or lock for Python 3.12 or 3.10",
        )
    return f"docker.io/library/python:{image.python}-slim"


def write(image: Image) -> str:
    """The Dockerfile. Raises InputError for a value that could change its meaning."""
    _check(image)
    base = base_image(image)
    lines = [
        f"# Reproduces {image.lock}. New hardware means a new lock and a new Dockerfile from it, never a patched image.",
        *([f"FROM {base} AS build"] if image.builds else [f"FROM {base}"]),
        *_variables(image),
        "",
        *_python(image),
        f"COPY {image.lock} /opt/lock/{image.lock}",
        *(f"COPY {folder} /opt/lock/{folder}" for folder in image.folders),
        *_install(image),
    ]
    if image.builds:
        lines += ["", f"FROM {base}", *_variables(image), "", *_python(image), "COPY --from=build /opt/venv /opt/venv"]
    lines += [
        "ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH",
        *(["", *_check_torch(image)] if image.torch else []),
        "",
        "# /dev/kfd and /dev/dri belong to these groups; the numbers of the host are given when the image is run.",
        "RUN (getent group render || groupadd --system render) && (getent group video || groupadd --system video) \\",
        "    && (id app || useradd --create-home --groups render,video app)",
        "USER app",
        "WORKDIR /home/app",
    ]
    return "\n".join(lines) + "\n"


def _check(image: Image) -> None:
    for what, value, pattern in (
        ("lock's file name", image.lock, _NAME),
        ("Python version", image.python, _NAME),
        ("ROCm version", image.rocm or "0", _NAME),
        ("base image", image.base or "x", _SAFE),
        ("version of rocmpip", image.rocmpip or "0", _SAFE),
    ):
        if not pattern.match(value):
            raise InputError(f"{value!r} cannot stand in a Dockerfile", why=f"it is the {what}")
    for folder in image.folders:
        if not _FOLDER.match(folder) or ".." in folder.split("/"):
            raise InputError(
                f"the folder of wheels {folder!r} cannot be copied into an image",
                why="only what lies beside the lock or below it can",
                hint="lock again with the folder beside the lock: rocmpip lock --wheelhouse wheels -o requirements.lock",
            )
    for gfx in image.gfx:
        if not _GFX.match(gfx):
            raise InputError(f"{gfx!r} cannot stand in a Dockerfile", why="it is no gfx target")
    for key, value in image.env.items():
        if not _VARIABLE.match(key) or any(not char.isprintable() for char in value):
            raise InputError(f"{key}={value!r} cannot stand in a Dockerfile", why="a recipe's run-time variable")


def _variables(image: Image) -> list[str]:
    values = {"PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if image.gfx:
        values["PYTORCH_ROCM_ARCH"] = ";".join(image.gfx)
    values.update(image.env)
    return [f"ENV {key}={_quoted(value)}" for key, value in values.items()]


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def _python(image: Image) -> list[str]:
    version = image.python
    return [
        f"# Python {version} with venv: there already in most images.",
        f"RUN python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != ({version.replace('.', ', ')}))' \\",
        f"    || (apt-get update && apt-get install -y --no-install-recommends python{version} python{version}-venv \\",
        f"    && ln -sf /usr/bin/python{version} /usr/local/bin/python3 && rm -rf /var/lib/apt/lists/*)",
    ]


def _install(image: Image) -> list[str]:
    place = f"/opt/lock/{image.lock}"
    lines = ["RUN python3 -m venv /opt/venv"]
    if image.builds:
        gfx = "".join(f" --gfx {one}" for one in image.gfx)
        rocm = f" --rocm {image.rocm}" if image.rocm else ""
        version = f"=={image.rocmpip}" if image.rocmpip else ""
        return [
            *lines,
            f"# {', '.join(image.builds)} are built by their recipes; rocmpip stays in this stage.",
            f"RUN python3 -m venv /opt/rocmpip && /opt/rocmpip/bin/python -m pip install rocmpip{version}",
            f"RUN /opt/rocmpip/bin/rocmpip sync {place} --python /opt/venv/bin/python{gfx}{rocm}",
        ]
    hashes = "" if image.pylock else " --require-hashes"
    flags = (" --no-deps" if image.no_deps else "") + (" --ignore-requires-python" if image.any_python else "")
    if image.pylock:
        lines += [
            "# Older pips cannot read this form of a lock.",
            f'RUN /opt/venv/bin/python -m pip install "pip>={_PYLOCK_PIP}"',
        ]
    return [*lines, f"RUN /opt/venv/bin/python -m pip install{hashes}{flags} -r {place}"]


_CHECK = """\
import sys, torch
version, hip = torch.__version__, torch.version.hip
if not hip:
    sys.exit("torch " + version + " is no ROCm build: torch.version.hip is " + repr(hip))
archs = list(getattr(torch.cuda, "get_arch_list", list)()) or (getattr(torch._C, "_cuda_getArchFlags", str)() or "").split()
known = sorted({arch.split(":")[0] for arch in archs})
missing = [gfx for gfx in sys.argv[1:] if gfx not in known]
if missing:
    sys.exit("torch " + version + " has no kernels for " + " ".join(missing) + ", only for " + " ".join(known or ["none"]))
print("torch", version, "HIP", hip, "kernels for", *known)
"""
"""Without single quotes and backslashes: it stands in a line of shell."""


def _check_torch(image: Image) -> list[str]:
    """A check that needs no GPU. One line of shell: heredocs are not known to every builder."""
    program = _CHECK.strip().replace("\n", "\\n")
    return [
        "# The build fails here unless torch is a ROCm build with kernels for the GPUs.",
        f"RUN printf '%b' '{program}' > /tmp/check.py \\",
        f"    && python3 /tmp/check.py {' '.join(image.gfx)} && rm /tmp/check.py".replace("  ", " "),
    ]


def ignore_file(lock: str, folders: Sequence[str] = ()) -> str:
    """The .dockerignore: the lock and its wheels alone go into the build context."""
    return "\n".join(("*", *(f"!{place}" for place in (lock, *folders)))) + "\n"


def run_line(tool: str, image: str, *, devices: Sequence[str], groups: Sequence[int], shm: str = "16g") -> str:
    """``docker run …`` for one machine: its devices, and the numbers of the groups that they belong to there."""
    words = [tool, "run", "--rm", "-it"]
    words += [f"--device={device}" for device in devices]
    words += [f"--group-add={number}" for number in groups]
    words += ["--ipc=host", f"--shm-size={shm}"] if tool == "docker" else ["--ipc=host"]
    words += ["--security-opt=seccomp=unconfined", image]
    return " ".join(words)
