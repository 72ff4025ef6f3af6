"""The replayed loader against the real one, and the readers against binutils."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocmpip.check.linker import Files, Process, Search, read_cache
from rocmpip.elf import ElfError, linkage, symbols
from tests.check.check_packages import library
from tests.support.elf_files import elf


def loaded_by_ldd(path: Path, env: dict[str, str]) -> dict[str, str]:
    """Library → path (or "") as the system's loader resolves it."""
    said = subprocess.run(["ldd", str(path)], env=env, capture_output=True, text=True, check=True).stdout
    rows = {}
    for line in said.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and "linux-vdso" not in name:
            rows[name] = "" if "not found" in rest else os.path.realpath(rest.split(" (")[0])
    return rows


def loaded_by_us(path: Path, env: dict[str, str]) -> dict[str, str]:
    folders = tuple(folder for folder in env.get("LD_LIBRARY_PATH", "").split(":") if folder)
    process = Process(Search(Files(), folders, read_cache()))
    assert process.load(str(path)) is not None
    rows = {}
    for module in process.modules[1:]:
        for name in {needed for other in process.modules for needed in other.links.needed}:
            if process.by_name(name) is module:
                rows[name] = module.real
    # ldd shows the interpreter in a line of another form.
    rows = {name: path for name, path in rows.items() if not name.startswith("ld-linux")}
    return rows | {one.library: "" for one in process.missing}


def chain(folder: Path, case: str) -> Path:
    """first → second → third, found in the way that the case says."""
    third = library(folder / "deep" / "libthird.so")
    other = library(folder / "other" / "libthird.so", "int other(void) { return 2; }\n")
    assert other.exists()
    if case == "runpath":
        second = library(folder / "libsecond.so", needs=[third], runpath="$ORIGIN/deep")
        return library(folder / "libfirst.so", needs=[second], runpath="${ORIGIN}")
    if case == "rpath is inherited":
        second = library(folder / "libsecond.so", needs=[third])
        return library(folder / "libfirst.so", needs=[second], rpath="$ORIGIN:$ORIGIN/deep")
    if case == "runpath is not inherited":
        second = library(folder / "libsecond.so", needs=[third])
        return library(folder / "libfirst.so", needs=[second], runpath="$ORIGIN:$ORIGIN/deep")
    if case == "a runpath ends inheritance":
        second = library(folder / "libsecond.so", needs=[third], runpath="$ORIGIN/nowhere")
        return library(folder / "libfirst.so", needs=[second], rpath="$ORIGIN:$ORIGIN/deep")
    if case == "another word size is passed over":
        wrong = folder / "wrong" / "libthird.so"
        wrong.parent.mkdir()
        wrong.write_bytes(elf({}, bits=32, machine=3, soname="libthird.so"))
        second = library(folder / "libsecond.so", needs=[third], runpath="$ORIGIN/wrong:$ORIGIN/deep")
        return library(folder / "libfirst.so", needs=[second], runpath="$ORIGIN")
    second = library(folder / "libsecond.so", needs=[third], **{case: "$ORIGIN/deep"})  # type: ignore[arg-type]
    return library(folder / "libfirst.so", needs=[second], **{case: "$ORIGIN"})  # type: ignore[arg-type]


CASES = ("runpath", "rpath", "rpath is inherited", "runpath is not inherited", "a runpath ends inheritance", "another word size is passed over")  # fmt: skip


@pytest.mark.parametrize("library_path", [False, True], ids=["plain", "LD_LIBRARY_PATH"])
@pytest.mark.parametrize("case", CASES)
def test_libraries_are_found_where_the_loader_finds_them(tmp_path: Path, case: str, library_path: bool) -> None:
    first = chain(tmp_path, case)
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    if library_path:
        env["LD_LIBRARY_PATH"] = str(tmp_path / "other")
    assert loaded_by_us(first, env) == loaded_by_ldd(first, env)


def test_system_programs_resolve_as_ldd_says() -> None:
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    path = Path(os.path.realpath(sys.executable))
    assert loaded_by_us(path, env) == loaded_by_ldd(path, env)


HOST = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) { void *one = dlopen(words[1], RTLD_NOW); puts(one ? "" : dlerror()); return !one; }
"""


@pytest.mark.parametrize("dtags", ["--disable-new-dtags", "--enable-new-dtags"], ids=["rpath", "runpath"])
@pytest.mark.parametrize("runpath", ["", "/nowhere"], ids=["plain", "with a runpath of its own"])
def test_the_programs_rpath_serves_what_it_opens(tmp_path: Path, dtags: str, runpath: str) -> None:
    """A conda interpreter (RPATH $ORIGIN/../lib) against any other; the system's loader says what is right."""
    third = library(tmp_path / "env/lib/libthird.so")
    extension = library(tmp_path / "ext/ext.so", needs=[third], runpath=runpath)
    (tmp_path / "host.c").write_text(HOST)
    host = tmp_path / "env/bin/host"
    host.parent.mkdir()
    subprocess.run(["gcc", tmp_path / "host.c", "-o", host, f"-Wl,{dtags},-rpath,$ORIGIN/../lib", "-ldl"], check=True)
    said = subprocess.run([host, extension], capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)
    process = Process(Search(Files(), (), read_cache()))
    process.start(str(host))
    process = process.copy()
    assert process.load(str(extension)) is not None
    assert bool(process.missing) == ("libthird.so: cannot open" in said.stdout)


def test_a_loaded_soname_serves_the_next_one(tmp_path: Path) -> None:
    """glibc compares a needed name with the SONAMEs that are loaded: torch's bundled libamdhip64 serves extensions."""
    bundled = library(tmp_path / "torch/libamdhip64-1234abcd.so", soname="libamdhip64.so.6")
    system = library(tmp_path / "rocm/libamdhip64.so.6", soname="libamdhip64.so.6")
    extension = library(tmp_path / "ext.so", needs=[system], runpath=str(tmp_path / "rocm"))
    process = Process(Search(Files()))
    process.load(str(bundled))
    process.load(str(extension))
    assert [module.path for module in process.modules if "hip" in module.path] == [str(bundled)]
    alone = Process(Search(Files()))
    alone.load(str(extension))
    assert [module.path for module in alone.modules if "hip" in module.path] == [str(system)]


def test_the_cache_is_ldconfigs() -> None:
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    expected: dict[str, list[str]] = {}
    for line in said.splitlines()[1:]:
        if " => " in line:
            name, _, path = line.strip().partition(" => ")
            expected.setdefault(name.split(" (")[0], []).append(path)
    assert {name: list(paths) for name, paths in read_cache().items()} == expected


def test_a_broken_cache_is_no_cache(tmp_path: Path) -> None:
    for content in (b"", b"glibc-ld.so.cache1.1", b"glibc-ld.so.cache1.1" + b"\xff" * 300, b"x" * 1000):
        (tmp_path / "cache").write_bytes(content)
        assert isinstance(read_cache(str(tmp_path / "cache")), dict)
    assert read_cache(str(tmp_path / "missing")) == {}


def _readelf(path: str) -> tuple[set[str], set[str]]:
    """(strong undefined, defined) dynamic symbols."""
    said = subprocess.run(["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True, check=True).stdout
    undefined, defined = set(), set()
    for line in said.splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].rstrip(":").isdigit() or words[4] == "LOCAL":
            continue
        name = words[7].split("@")[0]
        if words[6] != "UND":
            defined.add(name)
        elif words[4] != "WEAK":
            undefined.add(name)
    return undefined, defined


def test_symbols_are_those_of_readelf(tmp_path: Path) -> None:
    made = library(tmp_path / "made.so", "extern int far(void); int near(void) { return far(); }\n")
    runtime = next(path for path in read_cache()["libstdc++.so.6"])
    for path in (str(made), runtime):
        found = symbols(path)
        undefined, defined = _readelf(path)
        assert set(found.undefined) == undefined
        assert found.defined == defined
    assert "far" in symbols(made).undefined


def test_versions_are_those_of_readelf() -> None:
    runtime = next(path for path in read_cache()["libstdc++.so.6"])
    found = linkage(runtime)
    said = subprocess.run(["readelf", "-V", "-W", runtime], capture_output=True, text=True, check=True).stdout
    definitions, _, needs = said.partition("Version needs")
    named = {line.split("Name: ")[1].split()[0] for line in definitions.splitlines() if "Rev: 1" in line and "Name: " in line}
    assert found.provides == named
    wanted = {line.split("Name: ")[1].split()[0] for line in needs.splitlines() if "Name: " in line and "Flags: none" in line}
    assert {version for versions in found.wants.values() for version in versions} == wanted
    files = {line.split("File: ")[1].split()[0] for line in needs.splitlines() if "File: " in line}
    assert set(found.wants) == files


def test_cut_files_are_errors_or_empty(tmp_path: Path) -> None:
    data = library(tmp_path / "made.so", "extern int far(void); int near(void) { return far(); }\n").read_bytes()
    for length in range(0, len(data), 97):
        for read in (linkage, symbols):
            try:
                read(data[:length])
            except ElfError as problem:
                assert str(problem)
