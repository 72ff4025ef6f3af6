"""``rocmpip examine`` as a person runs it: what it prints, its JSON, and what it says of a file that is none of its own."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.model.provenance import FILENAME, FingerprintInputs, Provenance
from tests.support.commands import envelope, rocmpip
from tests.support.elf_files import AMDGPU, bundle, compressed, elf, wheel

NAME = "kernels-1.2-cp311-cp311-linux_x86_64.whl"
LIMIT = 20
"""Seconds, the start of the interpreter with them."""


def examine(*argv: str | Path, cwd: Path) -> tuple[int, str, str]:
    done = rocmpip("examine", *map(str, argv), cwd=cwd, timeout=LIMIT)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_a_wheel_in_words(tmp_path: Path) -> None:
    inputs = FingerprintInputs("kernels", "1.2", "s", "d", ("gfx90a",), "6.4.1", "2.9.1+rocm6.4")
    record = json.dumps(Provenance("f" * 64, inputs, "0.1", "kernels (shipped)").as_json()).encode()
    wheel(
        tmp_path / NAME,
        {
            "kernels/a.so": elf(
                {".hip_fatbin": bundle({"gfx90a": b"x" * 9, "gfx942": b"y" * 9})}, needed=["libtorch_hip.so"], runpath="$ORIGIN/../torch/lib"
            ),
            "kernels/b.so": elf({".hip_fatbin": compressed(bundle({"gfx1201": b"z"}))}),
            "kernels/cut.so": elf({".hip_fatbin": bundle({"gfx90a": b"x"})})[:90],
            "kernels/old.so": elf(needed=["libcudart.so.12"]),
            f"kernels-1.2.dist-info/{FILENAME}": record,
        },
    )  # fmt: skip
    code, text, _ = examine(NAME, cwd=tmp_path)
    assert code == 0
    rows = [line.split() for line in text.splitlines()]
    assert rows[0][:2] == ["kernels", "1.2"]
    assert ["tags", "cp311-cp311-linux_x86_64"] in rows
    assert ["device", "code", "gfx1201,", "gfx90a,", "gfx942"] in rows
    assert "HIP device code" in text and "compressed HIP device code (ccob-v2-zstd)" in text
    assert ["links", "CUDA", "libcudart.so.12"] in rows
    assert "built by      rocmpip 0.1, recipe kernels (shipped), for gfx90a, ROCm 6.4.1, torch 2.9.1+rocm6.4" in text
    assert ["gfx90a", "1", "code", "object,", "9", "bytes"] in rows
    assert ["needs", "libtorch_hip.so"] in rows
    assert ["looks", "in", "$ORIGIN/../torch/lib"] in rows
    assert "problem:" in text[text.index("kernels/cut.so") :]


def test_the_same_as_json(tmp_path: Path) -> None:
    library = elf({".hip_fatbin": bundle({"gfx942:sramecc+:xnack-": b"x" * 9})}, needed=["libamdhip64.so.6"])
    wheel(tmp_path / NAME, {"kernels/a.so": library})
    told = envelope(rocmpip("examine", NAME, "--json", cwd=tmp_path))
    assert told["command"] == "examine"
    result = told["result"]
    assert (result["name"], result["version"], result["record"]) == ("kernels", "1.2", None)
    assert result["gfx"] == ["gfx942"]
    assert result["links"] == ["libamdhip64.so.6"]
    assert result["files"][0]["path"] == "kernels/a.so"
    assert "gfx942:sramecc+:xnack-" in json.dumps(result["files"][0]["code_objects"])


@pytest.mark.parametrize(
    ("name", "data", "gfx"),
    [
        ("a.so", elf({".hip_fatbin": bundle({"gfx90a": b"x"})}), "gfx90a"),
        ("c.hsaco", elf(machine=AMDGPU, flags=0x41, abi_version=2), "gfx1100"),
        ("d.co", compressed(bundle({"gfx1201": b"z"}), version=3), "gfx1201"),
    ],
)
def test_one_file(tmp_path: Path, name: str, data: bytes, gfx: str) -> None:
    (tmp_path / name).write_bytes(data)
    code, text, _ = examine(name, cwd=tmp_path)
    assert code == 0
    assert ["device", "code", gfx] in [line.split() for line in text.splitlines()]
    assert envelope(rocmpip("examine", name, "--json", cwd=tmp_path))["result"]["gfx"] == [gfx]


FORMS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "a folder": Path.mkdir,
    "empty": Path.touch,
    "text": lambda path: path.write_text("PK\n"),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "a pipe": os.mkfifo,
    "a circle": lambda path: path.symlink_to(path.name),
    "nowhere": lambda path: path.symlink_to("nothing"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a long name": lambda path: path.with_name("n" * 300 + path.suffix),
}


@pytest.mark.parametrize("suffix", [".whl", ".so"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_neither(tmp_path: Path, form: str, suffix: str) -> None:
    path = tmp_path / f"odd-1-py3-none-any{suffix}"
    made = FORMS[form](path)
    path = made if form == "a long name" and isinstance(made, Path) else path
    code, text, said = examine(path, cwd=tmp_path)
    if code:
        assert said.startswith("rocmpip: error: ")
        assert text == ""
    else:
        assert suffix == ".so"
        assert "problem:" in text or "device code   none" in text
    told = envelope(rocmpip("examine", str(path), "--json", cwd=tmp_path, timeout=LIMIT))
    assert told["ok"] == (code == 0)


def test_names_that_would_steer_the_terminal(tmp_path: Path) -> None:
    escape = "\x1b]0;mine\x07\x1b[31m"
    inputs = FingerprintInputs("kernels", "1.2", "s", "d", (f"gfx90a{escape}",), f"6.4{escape}", f"2.9.1{escape}")
    record = json.dumps(Provenance("f" * 64, inputs, escape, escape).as_json()).encode()
    library = elf({".hip_fatbin": bundle({f"gfx90a:{escape}": b"x"})}, needed=[f"lib{escape}.so"], runpath=f"/opt/{escape}")
    wheel(tmp_path / NAME, {f"kernels/{escape}.so": library, f"kernels-1.2.dist-info/{FILENAME}": record}, tags=(escape,))
    code, text, said = examine(NAME, cwd=tmp_path)
    assert code == 0
    assert "\x1b" not in text + said and "\x07" not in text + said
    assert "\\u001b" in rocmpip("examine", NAME, "--json", cwd=tmp_path).stdout
    (tmp_path / f"{escape}.so").write_bytes(library)
    assert "\x1b" not in "".join(map(str, examine(f"{escape}.so", cwd=tmp_path)))


@pytest.mark.parametrize(
    "record",
    ["", "[]", "{}", "null", '{"schema": 99}', "[" * 100_000, '{"schema": 1, "gfx": 7, "name": [], "runtime": 3}', "\0"],
)  # fmt: skip
def test_a_record_that_is_none(tmp_path: Path, record: str) -> None:
    wheel(tmp_path / NAME, {"a.so": elf(), f"kernels-1.2.dist-info/{FILENAME}": record.encode()})
    told = envelope(rocmpip("examine", NAME, "--json", cwd=tmp_path, timeout=LIMIT))
    assert told["ok"] and told["result"]["record"] is None


def test_members_outside_the_wheel_are_read_and_not_written(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    wheel(inside / NAME, {"kernels/__init__.py": b""})
    with zipfile.ZipFile(inside / NAME, "a") as archive:
        archive.writestr("../out.so", elf())
        archive.writestr(f"{tmp_path}/absolute.so", elf())
    code, text, _ = examine(NAME, cwd=inside)
    assert code == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["inside", NAME]
    assert text
