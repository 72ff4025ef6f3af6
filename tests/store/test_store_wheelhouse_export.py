"""Export to a find-links folder and import back, as functions and as commands; examine as a command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from rocmpip.build.record import write_record
from rocmpip.model.errors import CheckFailed, InputError, UsageError
from rocmpip.model.provenance import FingerprintInputs, Provenance
from rocmpip.store.wheelhouse import StoredWheel, Wheelhouse, fingerprint
from rocmpip.store.wheelhouse_entry import ENTRY
from rocmpip.store.wheelhouse_export import MANIFEST, export, import_folder
from tests.support.elf_files import bundle, elf, wheel

FILENAME = "kernels-1.0-cp311-cp311-linux_x86_64.whl"


def build(folder: Path, house: Wheelhouse, filename: str = FILENAME, **changes: object) -> StoredWheel:
    """A wheel with device code for its GPUs and its record inside, stored."""
    name, version = filename.split("-")[:2]
    inputs = FingerprintInputs(
        name=name, version=version, source="sha256:1", recipe="r", gfx=("gfx90a",), rocm="6.4.1", torch="2.9.1+rocm6.4",
        python_abi="cp311",
    )  # fmt: skip
    inputs = structs.replace(inputs, **changes)  # type: ignore[arg-type]
    record = Provenance(fingerprint(inputs), inputs, rocmpip="0.1.0", recipe="kernels (shipped)", code_objects=inputs.gfx)
    code = elf({".hip_fatbin": bundle(dict.fromkeys(inputs.gfx, b"code"))}, needed=["libamdhip64.so.6"])
    bare = wheel(folder / "bare" / filename, {"kernels/__init__.py": f"{inputs}".encode(), "kernels/k.so": code})
    full = folder / filename
    write_record(bare, full, record)
    return house.put(full, record, seconds=7.0, code_objects=inputs.gfx)


@pytest.fixture
def house(tmp_path: Path) -> Wheelhouse:
    return Wheelhouse(tmp_path / "state" / "wheelhouse")


def test_one_target_goes_out_and_comes_back(house: Wheelhouse, tmp_path: Path) -> None:
    mine = build(tmp_path, house)
    build(tmp_path, house, gfx=("gfx1100",))
    build(tmp_path, house, "other-2-cp311-cp311-linux_x86_64.whl", name="other", version="2", gfx=("gfx90a", "gfx942"))
    done = export(house, tmp_path / "out", ("gfx90a",))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        FILENAME, "other-2-cp311-cp311-linux_x86_64.whl", MANIFEST,
    ]  # fmt: skip
    assert {one.fingerprint for one in done.wheels} >= {mine.fingerprint} and len(done.wheels) == 2
    assert (tmp_path / "out" / FILENAME).read_bytes() == mine.path.read_bytes()
    assert str(tmp_path / "state") not in (tmp_path / "out" / MANIFEST).read_text(), "no path of this machine travels"

    fresh = Wheelhouse(tmp_path / "elsewhere" / "wheelhouse")
    back = import_folder(fresh, tmp_path / "out")
    assert back.refused == () and len(back.wheels) == 2
    found = fresh.find(mine.fingerprint, "kernels")
    assert found is not None and (found.sha256, found.seconds) == (mine.sha256, 7.0)
    assert found.provenance == mine.provenance


def test_a_wheel_alone_carries_its_record(house: Wheelhouse, tmp_path: Path) -> None:
    """Without the manifest the record inside the wheel is enough."""
    mine = build(tmp_path, house)
    export(house, tmp_path / "out", ("gfx90a",))
    (tmp_path / "out" / MANIFEST).unlink()
    fresh = Wheelhouse(tmp_path / "elsewhere")
    assert [one.fingerprint for one in import_folder(fresh, tmp_path / "out").wheels] == [mine.fingerprint]


def test_two_torches_are_not_mixed(house: Wheelhouse, tmp_path: Path) -> None:
    build(tmp_path, house)
    newer = build(tmp_path, house, torch="2.10.0+rocm7.1")
    with pytest.raises(UsageError, match="2 torch versions"):
        export(house, tmp_path / "out", ("gfx90a",))
    done = export(house, tmp_path / "out", ("gfx90a",), torch="2.10.0")
    assert [one.fingerprint for one in done.wheels] == [newer.fingerprint]


def test_builds_of_the_same_file_name(house: Wheelhouse, tmp_path: Path) -> None:
    """Exactly the asked GPU before a wheel for more of them; the other is told."""
    wide = build(tmp_path, house, gfx=("gfx90a", "gfx942"))
    exact = build(tmp_path, house)
    build(tmp_path, house, rocm="7.1.0")
    done = export(house, tmp_path / "out", ("gfx90a",), rocm="6.4")
    assert [one.fingerprint for one in done.wheels] == [exact.fingerprint]
    assert [one.fingerprint for one in done.passed_over] == [wide.fingerprint]


def test_another_target_in_the_same_folder_is_refused(house: Wheelhouse, tmp_path: Path) -> None:
    build(tmp_path, house)
    build(tmp_path, house, gfx=("gfx1100",))
    export(house, tmp_path / "out", ("gfx90a",))
    export(house, tmp_path / "out", ("gfx90a",))  # again is fine
    with pytest.raises(UsageError, match="another target"):
        export(house, tmp_path / "out", ("gfx1100",))
    foreign = tmp_path / "foreign"
    wheel(foreign / "x-1-py3-none-any.whl", {})
    with pytest.raises(UsageError, match="not from here"):
        export(house, foreign, ("gfx90a",))


def test_nothing_fits(house: Wheelhouse, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="nothing for gfx906"):
        export(house, tmp_path / "out", ("gfx906",))
    build(tmp_path, house)
    with pytest.raises(CheckFailed):
        export(house, tmp_path / "out", ("gfx90a",), python="3.12")
    assert not (tmp_path / "out").exists()


def test_a_damaged_wheel_does_not_travel(house: Wheelhouse, tmp_path: Path) -> None:
    stored = build(tmp_path, house)
    stored.path.write_bytes(stored.path.read_bytes()[:-1] + b"!")
    with pytest.raises(CheckFailed, match="damaged"):
        export(house, tmp_path / "out", ("gfx90a",))


def test_import_refuses_what_is_not_what_it_says(house: Wheelhouse, tmp_path: Path) -> None:
    build(tmp_path, house)
    export(house, tmp_path / "out", ("gfx90a",))
    out = tmp_path / "out"
    changed = out / FILENAME
    changed.write_bytes(changed.read_bytes() + b"\0")
    wheel(out / "stranger-1-py3-none-any.whl", {"s.py": b"1"})
    (out / "broken-1-py3-none-any.whl").write_bytes(b"no zip")
    fresh = Wheelhouse(tmp_path / "elsewhere")
    back = import_folder(fresh, out)
    assert back.wheels == ()
    assert {name: why.split(" ")[0] for name, why in back.refused}.keys() == {
        FILENAME, "stranger-1-py3-none-any.whl", "broken-1-py3-none-any.whl",
    }  # fmt: skip
    assert fresh.list() == ()


def test_import_checks_the_code_objects_against_the_record(house: Wheelhouse, tmp_path: Path) -> None:
    """A wheel whose record claims gfx942 and whose library holds gfx90a."""
    inputs = FingerprintInputs("kernels", "1.0", "s", "r", ("gfx942",), "6.4", python_abi="cp311")
    record = Provenance(fingerprint(inputs), inputs, code_objects=("gfx942",))
    bare = wheel(tmp_path / "b" / FILENAME, {"k.so": elf({".hip_fatbin": bundle({"gfx90a": b"x"})})})
    (tmp_path / "in").mkdir()
    write_record(bare, tmp_path / "in" / FILENAME, record)
    back = import_folder(house, tmp_path / "in")
    assert back.wheels == () and "it holds gfx90a" in back.refused[0][1]


def test_import_of_no_folder_or_a_bad_manifest(house: Wheelhouse, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        import_folder(house, tmp_path / "none")
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        import_folder(house, tmp_path)
    for strange in ('{"schema": 7}', '{"schema": 1, "wheels": 5}', '{"schema": 1, "wheels": null}'):
        (tmp_path / MANIFEST).write_text(strange)
        with pytest.raises(InputError, match="schema"):
            import_folder(house, tmp_path)
    (tmp_path / MANIFEST).write_text('{"schema": 1, "wheels": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(InputError, match="cannot be read"):
        import_folder(house, tmp_path)


def test_import_does_not_wait_for_a_pipe(house: Wheelhouse, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    os.mkfifo(tmp_path / "one" / MANIFEST)
    with pytest.raises(InputError, match="cannot be read"):
        import_folder(house, tmp_path / "one")
    build(tmp_path, house)
    export(house, tmp_path / "out", ("gfx90a",))
    (tmp_path / "out" / FILENAME).unlink()
    os.mkfifo(tmp_path / "out" / FILENAME)
    back = import_folder(Wheelhouse(tmp_path / "elsewhere"), tmp_path / "out")
    assert back.wheels == () and "not a regular file" in back.refused[0][1]


@pytest.mark.parametrize("seconds", ["1e308", "-1", '"long"'])
def test_import_believes_no_absurd_build_time(house: Wheelhouse, tmp_path: Path, seconds: str) -> None:
    build(tmp_path, house)
    export(house, tmp_path / "out", ("gfx90a",))
    manifest = tmp_path / "out" / MANIFEST
    manifest.write_text(re.sub(r'"seconds": [^,\n]+', f'"seconds": {seconds}', manifest.read_text()))
    assert f'"seconds": {seconds}' in manifest.read_text()
    assert [one.seconds for one in import_folder(Wheelhouse(tmp_path / "elsewhere"), tmp_path / "out").wheels] == [0.0]


@pytest.mark.parametrize("created", ["1e308", "-5", "[" * 100_000 + "]" * 100_000])
def test_an_entry_with_an_absurd_time_is_none(house: Wheelhouse, tmp_path: Path, created: str) -> None:
    entry = build(tmp_path, house).path.parent / ENTRY
    entry.write_text(re.sub(r'"created": ?[^,\n}]+', f'"created": {created}', entry.read_text()))
    assert created in entry.read_text()
    assert house.list() == ()


def test_a_record_in_a_wheel_is_deterministic(tmp_path: Path, house: Wheelhouse) -> None:
    first = build(tmp_path / "a", house).path.read_bytes()
    bare = tmp_path / "a" / "bare" / FILENAME
    record = house.list()[0].provenance
    write_record(bare, tmp_path / "again.whl", record)
    assert (tmp_path / "again.whl").read_bytes() == first


# ---- the commands


def run(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "rocmpip", *words], env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def env(clean_env: dict[str, str], house: Wheelhouse) -> dict[str, str]:
    return clean_env | {"ROCMPIP_STATE_DIR": str(house.root.parent)}


def answer(env: dict[str, str], *words: str) -> tuple[int, dict[str, object]]:
    done = run(env, *words, "--json")
    return done.returncode, json.loads(done.stdout)


def test_list_show_path(env: dict[str, str], house: Wheelhouse, tmp_path: Path) -> None:
    code, nothing = answer(env, "wheelhouse", "list")
    assert (code, nothing["result"]) == (0, {"path": str(house.root), "wheels": []})
    mine = build(tmp_path, house)
    assert run(env, "wheelhouse", "path").stdout == f"{house.root}\n"
    listed = run(env, "wheelhouse", "list").stdout
    assert mine.fingerprint[:12] in listed and "gfx90a" in listed and "2.9.1+rocm6.4" in listed
    shown = run(env, "wheelhouse", "show", mine.fingerprint[:8]).stdout
    assert mine.sha256 in shown and "kernels (shipped)" in shown
    code, as_json = answer(env, "wheelhouse", "show", FILENAME)
    assert code == 0 and as_json["result"]["provenance"]["gfx"] == ["gfx90a"]  # type: ignore[index]
    code, missing = answer(env, "wheelhouse", "show", "zzz")
    assert code == 43 and missing["ok"] is False


def test_verify_tells_damage_with_43(env: dict[str, str], house: Wheelhouse, tmp_path: Path) -> None:
    mine = build(tmp_path, house)
    assert answer(env, "wheelhouse", "verify")[0] == 0
    mine.path.write_bytes(b"other")
    code, told = answer(env, "wheelhouse", "verify")
    assert code == 43 and told["errors"][0]["code"] == 43  # type: ignore[index]
    assert len(told["result"]["faults"]) == 1  # type: ignore[index]
    words = run(env, "wheelhouse", "verify")
    assert words.returncode == 43 and mine.fingerprint in words.stderr and "Traceback" not in words.stderr
    code, pruned = answer(env, "wheelhouse", "prune")
    assert code == 0 and pruned["result"]["freed"] > 0  # type: ignore[index]
    assert answer(env, "wheelhouse", "verify")[0] == 0


def test_prune_keeps_the_newest(env: dict[str, str], house: Wheelhouse, tmp_path: Path) -> None:
    for rocm in ("6.2.0", "6.3.0", "6.4.0"):
        newest = build(tmp_path, house, rocm=rocm)
    code, pruned = answer(env, "wheelhouse", "prune", "--keep", "1")
    assert code == 0 and len(pruned["result"]["removed"]) == 2  # type: ignore[index]
    assert [one.fingerprint for one in house.list()] == [newest.fingerprint]
    assert answer(env, "wheelhouse", "prune", "--all")[0] == 0 and house.list() == ()


@pytest.mark.pip
def test_pip_installs_from_an_exported_folder(env: dict[str, str], house: Wheelhouse, tmp_path: Path, venv) -> None:  # type: ignore[no-untyped-def]
    name = f"kernels-1.0-cp{sys.version_info[0]}{sys.version_info[1]}-cp{sys.version_info[0]}{sys.version_info[1]}-linux_x86_64.whl"
    build(tmp_path, house, name)
    code, done = answer(env, "wheelhouse", "export", "gfx90a", str(tmp_path / "out"))
    assert code == 0, done
    python = venv(with_pip=True)
    argv = [str(python), "-m", "pip", "install", "-q", "--no-index", "--find-links", str(tmp_path / "out"), "kernels"]
    subprocess.run(argv, env=env, check=True, capture_output=True)
    listing = subprocess.run([str(python), "-m", "pip", "show", "-f", "kernels"], env=env, capture_output=True, text=True)
    assert "rocmpip.json" in listing.stdout
    code, back = answer(env | {"ROCMPIP_STATE_DIR": str(tmp_path / "s2")}, "wheelhouse", "import", str(tmp_path / "out"))
    assert code == 0 and len(back["result"]["imported"]) == 1  # type: ignore[index]


@pytest.mark.parametrize("target", ["", "potato", "gfx", "gfx90a,potato"])
def test_a_bad_target_is_a_usage_error(target: str, env: dict[str, str], tmp_path: Path) -> None:
    code, told = answer(env, "wheelhouse", "export", target, str(tmp_path / "out"))
    assert code == 2 and told["errors"][0]["code"] == 2  # type: ignore[index]


def test_an_unsafe_folder_is_refused_with_44(env: dict[str, str], house: Wheelhouse, tmp_path: Path) -> None:
    build(tmp_path, house)
    house.root.chmod(0o777)
    code, told = answer(env, "wheelhouse", "list")
    assert code == 44 and "others may write" in told["errors"][0]["message"]  # type: ignore[index]


def test_examine_prints_a_wheel(env: dict[str, str], house: Wheelhouse, tmp_path: Path) -> None:
    mine = build(tmp_path, house, gfx=("gfx90a", "gfx942"))
    words = run(env, "examine", str(mine.path))
    assert words.returncode == 0 and "gfx90a, gfx942" in words.stdout and "recipe kernels (shipped)" in words.stdout
    code, told = answer(env, "examine", str(mine.path))
    result = told["result"]
    assert code == 0 and result["gfx"] == ["gfx90a", "gfx942"] and result["links"] == ["libamdhip64.so.6"]  # type: ignore[index]
    assert result["record"]["torch"] == "2.9.1+rocm6.4"  # type: ignore[index]
    library = tmp_path / "k.so"
    library.write_bytes(elf({".hip_fatbin": bundle({"gfx1100": b"x"})}))
    assert "gfx1100" in run(env, "examine", str(library)).stdout


@pytest.mark.parametrize("content", [b"", b"no wheel", b"PK\x03\x04junk"])
def test_examine_of_what_is_none(content: bytes, env: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    path.write_bytes(content)
    code, told = answer(env, "examine", str(path))
    assert code == 1 and "cannot be examined" in told["errors"][0]["message"]  # type: ignore[index]
    words = run(env, "examine", str(path))
    assert words.stdout == "" and "Traceback" not in words.stderr
    assert answer(env, "examine", str(tmp_path / "none.whl"))[0] == 1
    assert answer(env, "examine", str(tmp_path))[0] == 1
    assert answer(env, "examine")[0] == 2
