"""What an index or a person's settings hold never changes what a lock means, and no credential gets into one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmpip.demo.sysroot import write_sysroot
from rocmpip.lock import pylock, text
from tests.index.index_server import Reply, Site, json_page
from tests.support.commands import rocmpip
from tests.support.replica import Replica

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.pip

SECRET = "s3cr3t"


@pytest.mark.parametrize("output", ["out.txt", "pylock.toml", "-", "json"])
def test_no_credential_of_any_place_gets_out(output: str, replica: Replica, venv: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "machine").mkdir()
    env = replica.env(tmp_path, ROCMPIP_SYSROOT=str(tmp_path / "machine"), ROCMPIP_GFX="gfx942", ROCMPIP_ROCM="6.4")
    secret = env.pop("PIP_INDEX_URL").replace("http://", f"http://me:{SECRET}@")
    family = env["ROCMPIP_PYTORCH_URL"]
    env["ROCMPIP_PYTORCH_URL"] = family.replace("http://", f"http://me:{SECRET}@")
    (tmp_path / "in.txt").write_text(f"--extra-index-url {secret}\ntorch\nflash-attn\n")
    words = ["--json"] if output == "json" else ["-o", output]
    done = rocmpip("lock", "--python", str(venv()), "-i", secret, "-r", "in.txt", *words, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    if output in ("out.txt", "pylock.toml"):
        assert SECRET not in (tmp_path / output).read_text()
    for path in (tmp_path / "cache").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


EVIL = "\n--index-url https://evil.example/simple\n-e .\r\x85\u2028evil==1"


@pytest.mark.parametrize("where", ["url", "yanked", "requires-python", "filename", "hash", "requires"])
@pytest.mark.parametrize("output", ["out.txt", "pylock.toml"])
def test_a_hostile_index_adds_no_line(
    where: str, output: str, venv: Callable[..., Path], tmp_path: Path, clean_env: dict[str, str]
) -> None:
    name = "a-1.0-py3-none-any.whl"
    row: dict[str, object] = {"filename": name, "url": f"../../{name}", "hashes": {"sha256": "a" * 64}, "core-metadata": True}
    metadata = "Metadata-Version: 2.1\nName: a\nVersion: 1.0\n"
    if where == "hash":
        row["hashes"] = {"sha256": "a" * 64 + EVIL}
    elif where == "url":
        row["url"] = f"../../{name}?x={EVIL}"
    elif where == "filename":
        row["filename"] = f"a-1.0{EVIL}-py3-none-any.whl"
    elif where == "requires":
        metadata += "Requires-Dist: b (>1)\n --index-url https://evil.example/simple ; extra == 'x\n -e .'\n"
    else:
        row[where] = EVIL if where == "yanked" else ">=3.8" + EVIL
    write_sysroot(tmp_path / "laptop", [], "")
    with Site() as site:
        site.paths["/simple/a/"] = json_page("a", [row])
        site.paths[f"/{name}.metadata"] = Reply(metadata.encode())
        env = {**clean_env, "ROCMPIP_SYSROOT": str(tmp_path / "laptop"), "ROCMPIP_CACHE_DIR": str(tmp_path / "cache")}
        words = ("--python", str(venv()), "-i", f"{site.url}/simple", "a==1.0", "--retries", "0", "-o", output)
        done = rocmpip("lock", *words, env=env, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    lock = tmp_path / output
    if done.returncode:
        assert not lock.exists()
        return
    content = lock.read_text()
    if output == "pylock.toml":
        parsed = tomllib.loads(content)
        assert [package["name"] for package in parsed["packages"]] == ["a"]
        assert set(pylock.read(content).pins) == {"a"}
        return
    assert text.read(content).pins == {"a": "1.0"}
    for line in content.splitlines():
        assert not line.strip() or line.lstrip().startswith(("#", "a==1.0", "--hash=sha256:", f"--index-url {site.url}/simple"))
