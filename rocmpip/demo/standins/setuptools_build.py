"""A build backend of a few lines under setuptools' name: runs a setup.py that calls ``setup(...)`` and packs pure wheels.

It becomes ``setuptools/build_meta.py`` of the stand-in wheel, so that builds are real (PEP 517 hooks, real setup.py) and take
milliseconds. Standard library only; it knows what the small sources here use and nothing more.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

_kept: dict[str, Any] = {}
_by_hook: list[bool] = []


def setup(**keywords: Any) -> None:
    """Keep what setup.py says. ``platform_specific`` (ours) asks for the interpreter's tag as extension modules would.

    Without a hook around it this is ``python setup.py egg_info`` or ``bdist_wheel``, as pip before 25.3 still calls it.
    """
    _kept.clear()
    _kept.update(keywords)
    if not _by_hook:
        _command(sys.argv[1:], {**_project_table(), **_kept})


def _command(argv: list[str], told: dict[str, Any]) -> None:
    def option(*names: str) -> str:
        return next((argv[place + 1] for place, word in enumerate(argv[:-1]) if word in names), ".")

    if "egg_info" in argv:
        folder = Path(option("--egg-base", "-e"), told["name"].replace("-", "_") + ".egg-info")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "PKG-INFO").write_bytes(_metadata(told))
        sections = [*told.get("install_requires", ())]
        for extra, requires in told.get("extras_require", {}).items():
            sections += ["", f"[{extra}]", *requires]
        (folder / "requires.txt").write_text("\n".join(sections) + "\n", encoding="utf-8")
    if "bdist_wheel" in argv:
        _pack(told, option("-d", "--dist-dir"))


def find_packages(where: str = ".", **_: Any) -> list[str]:
    return sorted(str(init.parent.relative_to(where)).replace(os.sep, ".") for init in Path(where).rglob("__init__.py"))


def _run_setup(command: str) -> dict[str, Any]:
    here = Path.cwd()
    _kept.clear()
    script = here / "setup.py"
    if script.exists():
        arguments, sys.argv = sys.argv, ["setup.py", command]
        paths, sys.path = sys.path, [str(here), *sys.path]
        _by_hook.append(True)
        try:
            code = compile(script.read_text(encoding="utf-8"), str(script), "exec")
            exec(code, {"__name__": "__main__", "__file__": str(script)})  # noqa: S102
        finally:
            _by_hook.pop()
            sys.argv, sys.path = arguments, paths
    return dict(_kept)


def _project_table() -> dict[str, Any]:
    """[project] of pyproject.toml where the interpreter can read TOML; PKG-INFO names the package in any case."""
    project: dict[str, Any] = {}
    if sys.version_info >= (3, 11) and Path("pyproject.toml").exists():
        import tomllib

        table = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        project = {
            "name": table.get("name"),
            "version": table.get("version"),
            "install_requires": table.get("dependencies", []),
            "extras_require": table.get("optional-dependencies", {}),
        }
    try:
        for line in Path("PKG-INFO").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(": ")
            if key in ("Name", "Version"):
                project.setdefault(key.lower(), value)
    except OSError:
        pass
    return {key: value for key, value in project.items() if value}


def _described(command: str) -> dict[str, Any]:
    return {**_project_table(), **_run_setup(command)}


def _metadata(told: dict[str, Any]) -> bytes:
    lines = ["Metadata-Version: 2.1", f"Name: {told['name']}", f"Version: {told['version']}"]
    if told.get("python_requires"):
        lines.append(f"Requires-Python: {told['python_requires']}")
    lines += [f"Requires-Dist: {line}" for line in told.get("install_requires", ())]
    for extra, requires in told.get("extras_require", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {line} ; extra == "{extra}"' for line in requires]
    return ("\n".join(lines) + "\n").encode()


def _stem(told: dict[str, Any]) -> str:
    return f"{told['name'].replace('-', '_').lower()}-{told['version']}"


def _tag(told: dict[str, Any]) -> str:
    if not told.get("platform_specific"):
        return "py3-none-any"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    abi = python + getattr(sys, "abiflags", "")
    return f"{python}-{abi}-linux_{os.uname().machine}"


def _wheel_file(tag: str) -> bytes:
    pure = str(tag.endswith("-any")).lower()
    return f"Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()


def _record_line(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


def _payload(told: dict[str, Any]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for package in told.get("packages", ()):
        folder = Path(package.replace(".", os.sep))
        files.update({path.as_posix(): path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()})
    for module in told.get("py_modules", ()):
        files[f"{module}.py"] = Path(f"{module}.py").read_bytes()
    return files


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return list(_described("egg_info").get("setup_requires", ()))


def get_requires_for_build_sdist(config_settings: Any = None) -> list[str]:
    return []


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    told = _described("dist_info")
    folder = Path(metadata_directory, _stem(told) + ".dist-info")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_bytes(_metadata(told))
    (folder / "WHEEL").write_bytes(_wheel_file(_tag(told)))
    return folder.name


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    return _pack(_described("bdist_wheel"), wheel_directory)


def _pack(told: dict[str, Any], wheel_directory: str) -> str:
    tag, info = _tag(told), _stem(told) + ".dist-info"
    files = {**_payload(told), f"{info}/METADATA": _metadata(told), f"{info}/WHEEL": _wheel_file(tag)}
    record = "\n".join([*(_record_line(path, content) for path, content in files.items()), f"{info}/RECORD,,"]) + "\n"
    name = f"{_stem(told)}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(path, content)
    return name


class _Legacy:
    """``setuptools.build_meta:__legacy__``, what pip takes where no backend is named."""

    get_requires_for_build_wheel = staticmethod(get_requires_for_build_wheel)
    get_requires_for_build_sdist = staticmethod(get_requires_for_build_sdist)
    prepare_metadata_for_build_wheel = staticmethod(prepare_metadata_for_build_wheel)
    build_wheel = staticmethod(build_wheel)


__legacy__ = _Legacy()
