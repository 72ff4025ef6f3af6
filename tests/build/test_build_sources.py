"""Sources: hashed by content, unpacked inside their folder only, git by full commit over https alone."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from rocmpip.build.git import fetch_git, git_digest
from rocmpip.build.run import Log
from rocmpip.build.sources import build_system, make_modern, source_digest, unpack
from rocmpip.model.errors import BuildFailed, NetworkError, Refused
from rocmpip.model.recipe import Source


def tar(path: Path, *members: tarfile.TarInfo, **files: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"pkg-1.0/{name.replace('__', '.')}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, 1 if kind == tarfile.REGTYPE else 0
    return info


def test_an_sdist_unpacks_to_its_project(tmp_path: Path) -> None:
    project = unpack(tar(tmp_path / "pkg-1.0.tar.gz", setup__py="1"), tmp_path / "w")
    assert project == tmp_path / "w/pkg-1.0" and (project / "setup.py").read_text() == "1"


def test_a_zip_keeps_modes(tmp_path: Path) -> None:
    path = tmp_path / "pkg-1.0.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg-1.0/pyproject.toml", "")
        info = zipfile.ZipInfo("pkg-1.0/run.sh")
        info.external_attr = 0o100755 << 16
        archive.writestr(info, "#!/bin/sh\n")
    project = unpack(path, tmp_path / "w")
    assert os.access(project / "run.sh", os.X_OK)


def _damaged(archive: bytes, start: int, length: int) -> bytes:
    return archive[:start] + bytes(byte ^ 0xA5 for byte in archive[start : start + length]) + archive[start + length :]


def _zip(method: int, content: bytes = b"pass\n" * 4000) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo("pkg-1.0/setup.py"), content, method)
    return stream.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip_is_told(method: int, tmp_path: Path) -> None:
    """Each method's library has errors of its own, which zipfile lets through."""
    path = tmp_path / "pkg-1.0.zip"
    path.write_bytes(_damaged(_zip(method), 50, 20))
    with pytest.raises(BuildFailed, match=r"pkg-1\.0\.zip cannot be unpacked"):
        unpack(path, tmp_path / "w")


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (10, 99)])
def test_a_zip_that_is_encrypted_or_of_an_unknown_method(offset: int, value: int, tmp_path: Path) -> None:
    data = bytearray(_zip(zipfile.ZIP_DEFLATED))
    data[data.find(b"PK\x01\x02") + offset] = value  # the flags and the method of the central directory
    data[offset - 2] = value
    path = tmp_path / "pkg-1.0.zip"
    path.write_bytes(bytes(data))
    with pytest.raises(BuildFailed, match="cannot be unpacked"):
        unpack(path, tmp_path / "w")


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_a_damaged_tar_is_told(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"pkg-1.0.tar.{kind}"
    with tarfile.open(path, f"w:{kind}") as archive:  # type: ignore[call-overload]
        for name, content in (("setup.py", b"1"), ("data", bytes(range(256)) * 4000)):
            info = tarfile.TarInfo(f"pkg-1.0/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    data = path.read_bytes()
    path.write_bytes(_damaged(data, len(data) // 3, len(data) // 3))
    with pytest.raises(BuildFailed, match="cannot be unpacked"):
        unpack(path, tmp_path / "w")


def test_folders_without_end_are_told(tmp_path: Path) -> None:
    evil = member("pkg-1.0/" + "a/" * 3000 + "f")
    with pytest.raises(BuildFailed, match="cannot be unpacked"):
        unpack(tar(tmp_path / "pkg-1.0.tar.gz", evil, setup__py="1"), tmp_path / "w")


def test_pipes_and_sockets_in_a_folder_are_not_read(tmp_path: Path) -> None:
    """Editors and tools leave them; to read one is to wait for ever."""
    source = tmp_path / "mine"
    source.mkdir()
    (source / "setup.py").write_text("1")
    before = source_digest(source)
    os.mkfifo(source / "pipe")
    assert source_digest(source) == before
    assert [path.name for path in unpack(source, tmp_path / "w").iterdir()] == ["setup.py"]


@pytest.mark.parametrize(
    "requires",
    ['["--index-url https://evil.example/"]', '["-r /etc/passwd"]', '["a\\n-r b"]', '["a @ file:///x\\n-r b"]', "[1]", "5"],
)
def test_a_build_requirement_is_no_option_of_pips(requires: str, tmp_path: Path) -> None:
    """They become a requirements file, in which pip would read another index."""
    (tmp_path / "pyproject.toml").write_text(f"[build-system]\nrequires = {requires}\n")
    with pytest.raises(BuildFailed, match="as a build requirement"):
        build_system(tmp_path)


def test_a_folder_is_copied_and_left_alone(tmp_path: Path) -> None:
    source = tmp_path / "mine"
    source.mkdir()
    (source / "setup.py").write_text("1")
    project = unpack(source, tmp_path / "w")
    make_modern(project)
    assert project != source and [path.name for path in source.iterdir()] == ["setup.py"]


def test_a_subdirectory(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as archive:
        for name in ("p/README", "p/python/setup.py"):
            archive.addfile(member(name), io.BytesIO(b"x"))
    assert unpack(tmp_path / "p.tar.gz", tmp_path / "w", "python").name == "python"
    for bad in ("../..", "none"):
        with pytest.raises(BuildFailed):
            unpack(tmp_path / "p.tar.gz", tmp_path / "w2", bad)


@pytest.mark.parametrize(
    "evil",
    [
        member("../escape"),
        member("/abs/escape"),
        member("pkg-1.0/../../escape"),
        member("pkg-1.0/link", tarfile.SYMTYPE, "/etc/passwd"),
        member("pkg-1.0/link", tarfile.SYMTYPE, "../../../etc"),
        member("pkg-1.0/hard", tarfile.LNKTYPE, "/etc/passwd"),
        member("pkg-1.0/device", tarfile.CHRTYPE),
        member("pkg-1.0/fifo", tarfile.FIFOTYPE),
    ],
)
def test_a_hostile_tar_writes_nothing_outside(evil: tarfile.TarInfo, tmp_path: Path) -> None:
    """Refused, or (leading slashes) taken inside: never anything outside the folder."""
    path = tar(tmp_path / "pkg-1.0.tar.gz", evil, setup__py="1")
    try:
        unpack(path, tmp_path / "w" / "deep")
    except BuildFailed as problem:
        assert "cannot be unpacked" in problem.message or "no Python project" in problem.message
    assert not (tmp_path / "escape").exists() and not (tmp_path / "w/escape").exists() and not Path("/abs").exists()
    for base, _, names in os.walk(tmp_path / "w"):
        for name in names:
            assert (Path(base) / name).resolve().is_relative_to(tmp_path / "w")


def test_a_hostile_zip(tmp_path: Path) -> None:
    path = tmp_path / "pkg-1.0.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../escape", "x")
    with pytest.raises(BuildFailed, match="cannot be unpacked"):
        unpack(path, tmp_path / "w")
    assert not (tmp_path / "escape").exists()


@pytest.mark.parametrize("content", [b"", b"junk", b"\x1f\x8b\x08junk"])
def test_a_broken_archive(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pkg-1.0.tar.gz"
    path.write_bytes(content)
    with pytest.raises(BuildFailed, match="cannot be unpacked"):
        unpack(path, tmp_path / "w")


def test_no_project(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="no Python project"):
        unpack(tar(tmp_path / "p.tar.gz", readme="x"), tmp_path / "w")


def test_digests_follow_content(tmp_path: Path) -> None:
    source = tmp_path / "s"
    (source / "sub").mkdir(parents=True)
    (source / "setup.py").write_text("1")
    (source / "sub/a.cu").write_text("kernel")
    first = source_digest(source)
    assert first.startswith("sha256:") and first == source_digest(source)
    for name in ("build/x.o", "__pycache__/x.pyc", "x.egg-info/PKG-INFO", ".git/HEAD"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text("made by a build")
    assert source_digest(source) == first, "what builds leave does not count"
    (source / "sub/a.cu").write_text("kernel!")
    changed = source_digest(source)
    (source / "sub/a.cu").rename(source / "sub/b.cu")
    assert len({first, changed, source_digest(source)}) == 3
    archive = tar(tmp_path / "p.tar.gz", setup__py="1")
    assert source_digest(archive) != first


def test_the_build_system(tmp_path: Path) -> None:
    assert build_system(tmp_path) == ("setuptools.build_meta:__legacy__", ("setuptools>=40.8.0", "wheel"))
    path = tmp_path / "pyproject.toml"
    path.write_text('[build-system]\nrequires = ["torch", "ninja"]\nbuild-backend = "x"\n')
    assert build_system(tmp_path) == ("x", ("torch", "ninja"))
    path.write_text("[project]\nname='a'\n")
    assert build_system(tmp_path)[0].startswith("setuptools")
    path.write_text("[[[")
    with pytest.raises(BuildFailed, match="cannot be read"):
        build_system(tmp_path)


# ---- git


def git(folder: Path, *words: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    config = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "protocol.file.allow=always",
    ]
    return subprocess.run(
        ["git", *config, *words], cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str, str]:
    """A repository with a submodule; (folder, old commit, new commit)."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        git(folder, "init", "-q")
    (inner / "kernel.h").write_text("1")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    (outer / "setup.py").write_text("old")
    git(outer, "add", ".")
    git(outer, "commit", "-qm", "old")
    old = git(outer, "rev-parse", "HEAD")
    git(outer, "submodule", "add", "-q", inner.as_uri(), "third_party/inner")
    (outer / "setup.py").write_text("new")
    git(outer, "add", ".")
    git(outer, "commit", "-qm", "new")
    git(outer, "config", "uploadpack.allowAnySHA1InWant", "true")
    return outer, old, git(outer, "rev-parse", "HEAD")


def fetch(source: Source, tmp_path: Path, **more: object) -> Path:
    log = Log(tmp_path / "git.log")
    try:
        return fetch_git(source, tmp_path / "checkout", env=dict(os.environ), log=log, **more)  # type: ignore[arg-type]
    finally:
        log.close()


def test_a_commit_is_checked_out(repository: tuple[Path, str, str], tmp_path: Path) -> None:
    outer, old, _ = repository
    place = fetch(Source("git", outer.as_uri(), old), tmp_path, protocols=("file",))
    assert (place / "setup.py").read_text() == "old" and not (place / "third_party").exists()
    assert git(place, "rev-parse", "HEAD") == old


def test_with_submodules(repository: tuple[Path, str, str], tmp_path: Path) -> None:
    outer, _, new = repository
    place = fetch(Source("git", outer.as_uri(), new, submodules=True), tmp_path, protocols=("file",))
    assert (place / "third_party/inner/kernel.h").read_text() == "1"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc",
        "ext::sh -c touch% x",
        "git://host/x",
        "ssh://host/x",
        "http://host/x",
        "/local",
        "https://h/x\nfetch",
        "-x",
        "",
    ],
)
def test_only_https(url: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="https only"):
        fetch(Source("git", url, "a" * 40), tmp_path)
    assert not (tmp_path / "checkout").exists()


@pytest.mark.parametrize("commit", ["main", "v1.0", "abc123", "A" * 40, "--upload-pack=x", ""])
def test_only_a_full_commit(commit: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="full commit"):
        fetch(Source("git", "https://git.example/x", commit), tmp_path)


def test_a_commit_that_is_not_there(repository: tuple[Path, str, str], tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="could not be fetched"):
        fetch(Source("git", repository[0].as_uri(), "1" * 40), tmp_path, protocols=("file",))


def test_the_users_git_configuration_and_hooks_do_not_run(
    repository: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[core]\n hooksPath = {hooks}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_SSH_COMMAND", f"touch {tmp_path}/ran")
    outer, old, _ = repository
    fetch(Source("git", outer.as_uri(), old), tmp_path, protocols=("file",))
    assert not (tmp_path / "ran").exists()


def test_a_commit_names_its_tree() -> None:
    source = Source("git", "https://git.example/x", "a" * 40)
    assert git_digest(source) == f"git:https://git.example/x@{'a' * 40}"
