"""The wheelhouse: fingerprints, hashes verified each time, safe folders, many writers, kill -9, thousands of entries."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import structs

from rocmpip.model.errors import CheckFailed, Refused
from rocmpip.model.provenance import FingerprintInputs, Provenance, from_json, stale_because
from rocmpip.store.wheelhouse import ENTRY, StoredWheel, Wheelhouse, fingerprint

INPUTS = FingerprintInputs(
    name="flash-attn",
    version="2.8.3.post2",
    source="sha256:aa",
    recipe="rr",
    gfx=("gfx90a", "gfx942"),
    rocm="6.4.1",
    torch="2.9.1+rocm6.4",
    python_abi="cp312",
    platform="linux_x86_64-glibc-2.36",
    compiler="HIP version: 6.4; g++ 12",
    backend="ck",
    config_settings=("--build-option=-j8",),
    env=("OPT_DIM=128",),
)
FILENAME = "flash_attn-2.8.3.post2-cp312-cp312-linux_x86_64.whl"


def record(**changes: object) -> Provenance:
    inputs = structs.replace(INPUTS, **changes)  # type: ignore[arg-type]
    return Provenance(fingerprint(inputs), inputs, rocmpip="0.1", recipe="flash-attn (shipped)", runtime={"A": "1"})


def a_wheel(folder: Path, content: bytes = b"wheel", name: str = FILENAME) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.fixture
def house(tmp_path: Path) -> Wheelhouse:
    return Wheelhouse(tmp_path / "state" / "wheelhouse")


# ---- fingerprints

OTHER = {
    "name": "other",
    "version": "2.8.4",
    "source": "sha256:bb",
    "recipe": "ss",
    "gfx": ("gfx90a",),
    "rocm": "6.4.2",
    "torch": "2.9.1+rocm6.3",
    "python_abi": "cp313",
    "platform": "linux_x86_64-glibc-2.39",
    "compiler": "HIP version: 6.4; g++ 13",
    "backend": "triton",
    "config_settings": (),
    "env": (),
}


def test_every_input_has_its_own_case() -> None:
    assert set(OTHER) == {field.name for field in structs.fields(FingerprintInputs)}


@pytest.mark.parametrize("field", OTHER)
def test_each_input_alone_changes_the_fingerprint(field: str, house: Wheelhouse, tmp_path: Path) -> None:
    """Whatever differs, the wheel that was built before is not found; the first asked again is."""
    house.put(a_wheel(tmp_path), record())
    changed = structs.replace(INPUTS, **{field: OTHER[field]})  # type: ignore[arg-type]
    assert fingerprint(changed) != fingerprint(INPUTS)
    assert house.find(fingerprint(changed)) is None
    found = house.find(fingerprint(INPUTS))
    assert found is not None and found.path.read_bytes() == b"wheel"


def test_only_the_local_label_of_torch_differs() -> None:
    """pip and uv hand back the wheel built against another ROCm's torch; we do not."""
    one, two = (structs.replace(INPUTS, torch=f"2.9.1+{label}") for label in ("rocm6.4", "cpu"))
    assert fingerprint(one) != fingerprint(two)


def test_the_order_of_gpus_does_not_count() -> None:
    turned = structs.replace(INPUTS, gfx=("gfx942", "gfx90a", "gfx942"))
    assert fingerprint(turned) == fingerprint(INPUTS)


def test_fingerprints_are_stable_across_versions() -> None:
    """What is stored today must be found tomorrow: the text of the fingerprint is part of the format."""
    empty = FingerprintInputs("a", "1", "", "", (), "")
    assert fingerprint(empty) == fingerprint(FingerprintInputs("a", "1", "", "", (), ""))
    assert len(fingerprint(empty)) == 64 and set(fingerprint(empty)) <= set("0123456789abcdef")
    assert fingerprint(structs.replace(empty, gfx=("x",))) != fingerprint(structs.replace(empty, rocm="x"))


# ---- storing and finding


def test_put_then_find(house: Wheelhouse, tmp_path: Path) -> None:
    assert house.find(record().fingerprint, "flash-attn") is None
    assert not house.root.exists(), "looking creates nothing"
    stored = house.put(a_wheel(tmp_path), record(), seconds=12.5, code_objects=("gfx90a", "gfx942"))
    found = house.find(stored.fingerprint, "flash-attn")
    assert found == stored
    assert (found.filename, found.seconds, found.provenance.code_objects) == (FILENAME, 12.5, ("gfx90a", "gfx942"))
    assert found.path.parent.name == found.fingerprint
    assert house.list() == (stored,) and house.candidates("flash-attn") == (stored,) and house.candidates("other") == ()
    assert oct(house.root.stat().st_mode & 0o777) == "0o700"


def test_wheels_of_one_name_stay_apart(house: Wheelhouse, tmp_path: Path) -> None:
    """The same file name for another GPU is another folder."""
    one = house.put(a_wheel(tmp_path, b"for 90a"), record(gfx=("gfx90a",)))
    two = house.put(a_wheel(tmp_path, b"for 1100"), record(gfx=("gfx1100",)))
    assert one.filename == two.filename and one.path != two.path
    assert one.path.read_bytes() == b"for 90a" and two.path.read_bytes() == b"for 1100"


def test_as_a_file_for_the_router(house: Wheelhouse, tmp_path: Path) -> None:
    stored = house.put(a_wheel(tmp_path), record())
    file = stored.as_file()
    assert file.url == stored.path.as_uri() and file.hashes == {"sha256": stored.sha256} and file.filename == FILENAME


def test_a_sound_wheel_stays_unless_a_rebuild_is_asked_for(house: Wheelhouse, tmp_path: Path) -> None:
    first = house.put(a_wheel(tmp_path, b"first"), record())
    assert house.put(a_wheel(tmp_path, b"second"), record()).sha256 == first.sha256
    assert house.put(a_wheel(tmp_path, b"second"), record(), replace=True).sha256 != first.sha256
    assert {path.name for path in house.root.iterdir()} == {"flash-attn", ".lock"}, "nothing is left beside it"


@pytest.mark.parametrize("bit", [0, 3, 39])
def test_a_flipped_bit_is_noticed_and_never_handed_out(bit: int, house: Wheelhouse, tmp_path: Path) -> None:
    heard: list[str] = []
    house = Wheelhouse(house.root, warn=heard.append)
    stored = house.put(a_wheel(tmp_path), record())
    data = bytearray(stored.path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    stored.path.write_bytes(bytes(data))
    sound, faults = house.verify()
    assert sound == () and "sha256" in faults[0].reason
    assert house.find(stored.fingerprint, "flash-attn") is None
    assert len(heard) == 1 and "damaged" in heard[0]
    assert house.list() == (), "it is out of the way of the next build"
    assert house.put(a_wheel(tmp_path), record()) == house.find(stored.fingerprint)


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: (entry / ENTRY).write_bytes(b""),
        lambda entry: (entry / ENTRY).write_bytes(b"\xff\x00{"),
        lambda entry: (entry / ENTRY).write_text("[]"),
        lambda entry: (entry / ENTRY).write_text("{}"),
        lambda entry: (entry / FILENAME).unlink(),
        lambda entry: (entry / FILENAME).write_bytes(b"longer than it was"),
        lambda entry: (entry / ENTRY).write_text((entry / ENTRY).read_text().replace(FILENAME, "../../escape.whl")),
        lambda entry: (entry / ENTRY).write_text((entry / ENTRY).read_text().replace("gfx90a", "gfx906")),
        lambda entry: (entry / ENTRY).write_text((entry / ENTRY).read_text().replace('"size": 5', '"size": "five"')),
    ],
)
def test_a_damaged_entry_is_never_handed_out(damage, house: Wheelhouse, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    stored = house.put(a_wheel(tmp_path), record())
    damage(stored.path.parent)
    assert house.list() == () or house.verify()[0] == ()
    assert house.find(stored.fingerprint) is None


def test_a_link_in_place_of_the_wheel_is_refused(house: Wheelhouse, tmp_path: Path) -> None:
    stored = house.put(a_wheel(tmp_path), record())
    stored.path.unlink()
    stored.path.symlink_to(a_wheel(tmp_path / "elsewhere"))
    assert house.find(stored.fingerprint) is None


def test_a_record_that_does_not_match_is_not_stored(house: Wheelhouse, tmp_path: Path) -> None:
    wrong = structs.replace(record(), fingerprint="0" * 64)
    with pytest.raises(CheckFailed, match="does not go into the wheelhouse"):
        house.put(a_wheel(tmp_path), wrong)
    for name in ("../evil", "a/b", "", ".hidden", "A B"):
        with pytest.raises(CheckFailed):
            house.put(a_wheel(tmp_path), record(name=name))
    assert not house.root.exists()


# ---- whose folder it is


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722, 0o702])
def test_a_folder_that_others_may_write_is_refused(mode: int, house: Wheelhouse, tmp_path: Path) -> None:
    stored = house.put(a_wheel(tmp_path), record())
    for place in (house.root, stored.path.parent.parent, stored.path.parent):
        before = place.stat().st_mode
        place.chmod(mode)
        fresh = Wheelhouse(house.root)
        with pytest.raises(Refused, match="others may write"):
            fresh.find(stored.fingerprint, "flash-attn")
        place.chmod(before)
    house.root.chmod(mode)
    fresh = Wheelhouse(house.root)
    for action in (fresh.list, fresh.verify, fresh.prune, lambda: fresh.put(a_wheel(tmp_path), record())):
        with pytest.raises(Refused):
            action()


def test_a_wheel_that_others_may_write_is_never_handed_out(house: Wheelhouse, tmp_path: Path) -> None:
    stored = house.put(a_wheel(tmp_path), record())
    stored.path.chmod(0o666)
    with pytest.raises(Refused):
        Wheelhouse(house.root).find(stored.fingerprint, "flash-attn")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(house: Wheelhouse, tmp_path: Path) -> None:
    house.put(a_wheel(tmp_path), record())
    os.chown(house.root, 12345, 12345)
    with pytest.raises(Refused, match="belongs to user 12345"):
        Wheelhouse(house.root).list()


def test_a_parent_that_anyone_may_write_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    house = Wheelhouse(shared / "wheelhouse")
    with pytest.raises(Refused, match="anyone may rename"):
        house.put(a_wheel(tmp_path), record())
    shared.chmod(0o1777)
    house.put(a_wheel(tmp_path), record())


# ---- many at once, and killed ones


def _writer(root: str, wheel: str, number: int, queue: multiprocessing.Queue[str]) -> None:
    house = Wheelhouse(Path(root))
    try:
        for turn in range(5):
            mine = record(gfx=("gfx90a",)) if turn % 2 else record(gfx=(f"gfx{1000 + number}",))
            stored = house.put(Path(wheel), mine, replace=number % 3 == 0)
            found = house.find(mine.fingerprint, "flash-attn")
            # Another may be replacing it at this moment; what is handed out is whole.
            assert found is None or (found.fingerprint == mine.fingerprint and stored.size == 50_000)
        queue.put("")
    except Exception as problem:
        queue.put(f"{type(problem).__name__}: {problem}")


def test_twenty_processes_at_once(house: Wheelhouse, tmp_path: Path) -> None:
    wheel = a_wheel(tmp_path, os.urandom(50_000))
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    children = [context.Process(target=_writer, args=(str(house.root), str(wheel), n, queue)) for n in range(20)]
    for child in children:
        child.start()
    answers = [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join(timeout=30)
    assert answers == [""] * 20
    sound, faults = house.verify()
    assert faults == () and len(sound) == 21
    assert {one.provenance.inputs.gfx for one in sound} == {("gfx90a",), *((f"gfx{1000 + n}",) for n in range(20))}


_SLOW_WRITER = """
import os, sys, time
from pathlib import Path
from rocmpip.store import wheelhouse, wheelhouse_files
sys.path.insert(0, "{here}")
from tests.store.test_store_wheelhouse import record
moment, root, wheel = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
count = 0
def trap(frame, event, argument):
    # Stop before the n-th line of the store's own code: every moment of a put can be the last.
    global count
    if "wheelhouse" not in frame.f_code.co_filename:
        return None
    if event == "line":
        count += 1
        if count == moment:
            print("here", flush=True)
            time.sleep(60)
    return trap
house = wheelhouse.Wheelhouse(root)
mine = record()
sys.settrace(trap)
house.put(wheel, mine)
sys.settrace(None)
print("done", flush=True)
"""


def test_kill_9_at_any_moment_leaves_all_or_nothing(tmp_path: Path) -> None:
    wheel = a_wheel(tmp_path, b"x" * 100_000)
    code = _SLOW_WRITER.format(here=Path(__file__).parents[2])
    outcomes = set()
    for moment in range(5, 200, 12):
        root = tmp_path / f"house{moment}"
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(moment), str(root), str(wheel)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        word = child.stdout.readline().strip()
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        house = Wheelhouse(root)
        found = house.find(record().fingerprint, "flash-attn")
        assert found is None or found.path.read_bytes() == wheel.read_bytes()
        assert house.verify()[1] == ()
        # The next one is not hindered by what the killed one left.
        assert house.put(wheel, record()).size == 100_000
        assert house.find(record().fingerprint) is not None
        outcomes.add((word, found is None))
        if word == "done":
            break
    assert ("here", True) in outcomes and ("here", False) in outcomes


def test_what_a_killed_writer_left_is_cleared(house: Wheelhouse, tmp_path: Path) -> None:
    house.put(a_wheel(tmp_path), record())
    left, young = house.root / ".new-dead", house.root / ".new-young"
    for folder in (left, young):
        folder.mkdir()
        (folder / "half.whl").write_bytes(b"x" * 1000)
    os.utime(left, (time.time() - 90_000,) * 2)
    removed, freed = house.prune()
    assert removed == () and freed == 1000
    assert not left.exists() and young.exists(), "a young one may still be at work"


# ---- thousands


def _clone(house: Wheelhouse, stored: StoredWheel, number: int) -> str:
    """A copy of an entry under another fingerprint, without the syncs of a real put."""
    inputs = structs.replace(INPUTS, source=f"sha256:{number}")
    name = fingerprint(inputs)
    entry = stored.path.parent.parent / name
    entry.mkdir()
    data = json.loads((stored.path.parent / ENTRY).read_text())
    data["provenance"] |= {"fingerprint": name, "source": inputs.source}
    (entry / ENTRY).write_text(json.dumps(data))
    (entry / FILENAME).write_bytes(b"wheel")
    return name


def test_one_of_ten_thousand(house: Wheelhouse, tmp_path: Path) -> None:
    stored = house.put(a_wheel(tmp_path), record())
    names = [_clone(house, stored, number) for number in range(10_000)]
    fresh = Wheelhouse(house.root)
    for name in names[::2500]:
        found = fresh.find(name, "flash-attn")
        assert found is not None and found.fingerprint == name
    assert len(fresh.candidates("flash-attn")) == 10_001


# ---- keeping house


def test_prune_by_age_and_by_choice(house: Wheelhouse, tmp_path: Path) -> None:
    old = house.put(a_wheel(tmp_path), record(gfx=("gfx906",)))
    data = json.loads((old.path.parent / ENTRY).read_text())
    data["created"] -= 86_400 * 40
    (old.path.parent / ENTRY).write_text(json.dumps(data))
    young = house.put(a_wheel(tmp_path), record())
    removed, freed = house.prune(older_than=86_400 * 30)
    assert [one.fingerprint for one in removed] == [old.fingerprint] and freed >= 5
    assert house.list() == (young,)
    removed, _ = house.prune(keep=lambda one: False)
    assert removed == (young,) and house.list() == ()
    assert [path.name for path in house.root.iterdir()] == [".lock"]


def test_prune_takes_damaged_ones(house: Wheelhouse, tmp_path: Path) -> None:
    stored = house.put(a_wheel(tmp_path), record())
    stored.path.write_bytes(b"other")
    removed, freed = house.prune()
    assert removed == () and freed > 0 and house.verify() == ((), ())


def test_show_finds_by_beginning_and_file_name(house: Wheelhouse, tmp_path: Path) -> None:
    one = house.put(a_wheel(tmp_path), record())
    assert house.show(one.fingerprint[:10]) == house.show(FILENAME) == one
    house.put(a_wheel(tmp_path), record(gfx=("gfx906",)))
    with pytest.raises(CheckFailed, match="2 wheels match"):
        house.show(FILENAME)
    with pytest.raises(CheckFailed, match="nothing called"):
        house.show("zzz")


def test_estimates_come_from_earlier_builds(house: Wheelhouse, tmp_path: Path) -> None:
    assert house.expected_seconds("flash-attn", 1) is None
    house.put(a_wheel(tmp_path), record(), seconds=600)  # two GPUs
    assert house.expected_seconds("flash-attn", 1) == 300
    assert house.expected_seconds("flash-attn", 3) == 900


# ---- records


def test_a_record_reads_back() -> None:
    assert from_json(json.loads(json.dumps(record().as_json()))) == record()


@pytest.mark.parametrize(
    "broken", [None, [], {}, {"schema": 99}, {"schema": 1, "gfx": "gfx90a"}, {"schema": 1, "runtime": {"a": 1}}]
)
def test_a_broken_record_is_told(broken: object) -> None:
    with pytest.raises(ValueError):
        from_json(broken)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"torch": "2.9.1+rocm6.4", "gfx": ("gfx942",), "rocm": "6.4.3"}, ""),
        ({"torch": "2.10.0+rocm7.1", "gfx": ("gfx942",)}, "built against torch 2.9.1+rocm6.4, and torch is now 2.10.0+rocm7.1"),
        ({"torch": "", "gfx": ("gfx1100",)}, "gfx1100 is asked for now"),
        ({"torch": "", "gfx": (), "rocm": "7.0.0"}, "ROCm is now 7.0.0"),
    ],
)
def test_stale_builds_say_why(now: dict[str, object], words: str, house: Wheelhouse) -> None:
    because = stale_because(record(), **now)  # type: ignore[arg-type]
    assert ("; ".join(because) == "") if not words else words in "; ".join(because)
    marked = house.stale({"flash-attn": record()}, **now)  # type: ignore[arg-type]
    assert bool(marked) is bool(words)


def test_a_read_only_wheelhouse_still_serves(house: Wheelhouse, tmp_path: Path) -> None:
    """A site may share one that its users cannot write (owned by root, or their own made read-only)."""
    stored = house.put(a_wheel(tmp_path), record())
    for place in (stored.path.parent, stored.path.parent.parent, house.root):
        place.chmod(0o555)
    try:
        assert Wheelhouse(house.root).find(stored.fingerprint, "flash-attn") == stored
    finally:
        for place in (house.root, stored.path.parent.parent, stored.path.parent):
            place.chmod(0o755)
        shutil.rmtree(house.root)


def test_a_record_of_another_does_not_steer_the_terminal(tmp_path: Path) -> None:
    from rocmpip.app.wheelhouse import row, words

    escape = "\x1b]0;mine\x07\x1b[31m"
    made = record(gfx=(f"gfx90a{escape}",), torch=f"2.9.1{escape}", compiler=escape)
    one = StoredWheel("f" * 64, tmp_path / FILENAME, "a" * 64, 5, 0.0, 1.0, made)
    for text in (row(one), words(one)):
        assert "gfx90a" in text and "\x1b" not in text and "\x07" not in text
