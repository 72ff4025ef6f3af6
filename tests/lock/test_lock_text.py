"""The lock as text: what is written is read back, one line is one line, and nothing that could mean more gets in."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from packaging.pylock import Pylock

from rocmpip.lock import dockerfile, pylock, text
from rocmpip.lock.compare import differences
from rocmpip.lock.model import Coordinates, Entry, Lock
from rocmpip.model.errors import InputError
from rocmpip.model.packages import File

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHA = "a" * 64
OTHER = "b" * 64


def file(name: str, sha: str = SHA, **more: object) -> File:
    return File(name, f"https://files.example/{name}", {"sha256": sha}, index="https://pypi.example/simple", **more)  # type: ignore[arg-type]


TORCH = Entry(
    "torch",
    "2.9.1+rocm6.4",
    (file("torch-2.9.1+rocm6.4-cp312-cp312-manylinux_2_28_x86_64.whl", size=12),),
    others=lambda: (file("torch-2.9.1+rocm6.4.tar.gz", OTHER),),
    digests=(f"sha256:{OTHER}",),
    via=("accelerate", "-r in.txt"),
    requires=("filelock",),
    requires_python=">=3.10",
)
FILELOCK = Entry("filelock", "3.16.0", (file("filelock-3.16.0-py3-none-any.whl"),), via=("torch",))
FLASH = Entry("flash-attn", "2.8.3", (file("flash_attn-2.8.3.tar.gz"),), via=("the command line",), recipe="flash-attn")
LOCK = Lock(
    (FILELOCK, TORCH),
    Coordinates(python="3.12", rocm="6.4", gfx=("gfx942", "gfx90a"), driver="6.10.5", recipes=(("flash-attn", "sha256:1"),)),
    "https://pypi.example/simple",
    ("https://torch.example/whl/rocm6.4",),
    command="rocmpip lock -r in.txt -o out.txt",
)


def test_what_is_written_is_read_back() -> None:
    written = text.read(text.write(LOCK, path="out.txt"))
    assert written.pins == {"filelock": "3.16.0", "torch": "2.9.1+rocm6.4"}
    assert written.hashes == {"filelock": (f"sha256:{SHA}",), "torch": (f"sha256:{SHA}", f"sha256:{OTHER}")}
    assert written.via == {"filelock": ("torch",), "torch": ("accelerate", "-r in.txt")}
    assert written.coordinates["gfx"] == "gfx942, gfx90a"
    assert written.coordinates["recipe flash-attn"] == "sha256:1"
    assert written.coordinates["install"] == "pip install --require-hashes -r out.txt"
    assert written.ours


def test_the_form_is_pips() -> None:
    assert text.write(LOCK).splitlines()[-8:] == [
        "    # via torch",
        "",
        "torch==2.9.1+rocm6.4 \\",
        f"    --hash=sha256:{SHA} \\",
        f"    --hash=sha256:{OTHER}",
        "    # via",
        "    #   accelerate",
        "    #   -r in.txt",
    ]


def test_a_lock_with_builds_is_for_sync() -> None:
    written = text.read(text.write(Lock((FLASH,)), path="x.txt"))
    assert written.builds == {"flash-attn": "flash-attn"}
    assert written.coordinates["install"] == "rocmpip sync x.txt"


COMMIT = "0123456789" * 4
APEX = Entry(
    "apex", "1.13.0", (File("apex-1.13.0.tar.gz", ""),), via=("the command line",), recipe="apex",
    url=f"git+https://code.example/apex@{COMMIT}",
)  # fmt: skip


def test_a_commit_stands_for_the_hash_of_a_source_in_a_repository() -> None:
    content = text.write(Lock((APEX,)), path="x.txt")
    assert f"\napex @ git+https://code.example/apex@{COMMIT}\n" in content
    written = text.read(content)
    parsed = Pylock.from_dict(tomllib.loads(pylock.write(Lock((APEX,)))))
    assert parsed.packages[0].vcs is not None and parsed.packages[0].vcs.commit_id == COMMIT
    for one in (written, pylock.read(pylock.write(Lock((APEX,))))):
        assert (one.pins, one.builds) == ({"apex": "1.13.0"}, {"apex": "apex"})
        assert one.urls == {"apex": f"git+https://code.example/apex@{COMMIT}"}
    with pytest.raises(InputError, match="commit"):
        text.write(Lock((replace(APEX, url="git+https://code.example/apex@main"),)))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_adds_a_package_or_a_key_to_a_pylock(value: str, other: str) -> None:
    entry = Entry(
        "a", "1.0", (File("a-1.0.tar.gz", "https://me:s3cr3t@files.example/" + value, {"sha256": SHA}, index="https://p.example"),),
        requires_python="", via=(other,),
    )  # fmt: skip
    lock = Lock((entry,), Coordinates(python="3.12", driver=value, gfx=(other,)), command=other)
    content = pylock.write(lock)
    parsed = tomllib.loads(content)
    assert "s3cr3t" not in content
    assert set(parsed) == {"lock-version", "created-by", "requires-python", "packages", "tool"}
    assert len(parsed["packages"]) == 1
    assert set(parsed["tool"]["rocmpip"]) <= {"python", "driver", "gfx", "made by", "install"}


def test_pylock_is_what_the_standard_says() -> None:
    content = pylock.write(LOCK, path="pylock.toml")
    parsed = Pylock.from_dict(tomllib.loads(content))
    assert [str(package.name) for package in parsed.packages] == ["filelock", "torch"]
    assert str(parsed.packages[1].version) == "2.9.1+rocm6.4"
    written = pylock.read(content)
    assert written.pins == {"filelock": "3.16.0", "torch": "2.9.1+rocm6.4"}
    assert written.coordinates["gfx"] == "gfx942, gfx90a"
    assert written.via["filelock"] == ("torch",)
    assert pylock.write(LOCK, path="pylock.toml") == content


@pytest.mark.parametrize("name", ["pylock.toml", "pylock.gfx942.toml", "locks/pylock.x.toml"])
def test_names_of_pylock_files(name: str) -> None:
    assert pylock.is_pylock(name)


@pytest.mark.parametrize("name", ["requirements.txt", "pylock.a.b.toml", "my-pylock.toml", "pylock.txt", ""])
def test_names_of_other_files(name: str) -> None:
    assert not pylock.is_pylock(name)


@pytest.mark.parametrize(
    "entry",
    [
        Entry("a\n--index-url https://evil.example", "1", (file("a-1.tar.gz"),)),
        Entry("a", "1\n-e .", (file("a-1.tar.gz"),)),
        Entry("a", "1 --hash=md5:x", (file("a-1.tar.gz"),)),
        Entry("a", "1", (File("a-1.tar.gz", "https://x/", {"sha256": "zz\n-r evil"}),)),
        Entry("a", "1", (File("a-1.tar.gz", "https://x/", {"md5": "0" * 32}),)),
        Entry("a", "1", (file("a-1.tar.gz"),), extras=("x]\n-e .",)),
    ],
)
def test_values_that_would_change_the_file_are_refused(entry: Entry) -> None:
    with pytest.raises(InputError):
        text.write(Lock((entry,)))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_no_text_adds_a_line_that_pip_obeys(via: str, driver: str, command: str) -> None:
    lock = Lock(
        (Entry("a", "1.0", (file("a-1.0.tar.gz"),), via=(via,)),), Coordinates(driver=driver, gfx=(via,)), command=command
    )
    for line in text.write(lock).splitlines():
        assert not line.strip() or line.lstrip().startswith(("#", "a==1.0", "--hash=sha256:"))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_urls_stay_one_word_without_credentials_and_variables(tail: str) -> None:
    lock = Lock((FILELOCK,), index_url="https://me:s3cr3t@pypi.example/" + tail)
    lines = text.write(lock).split("\n")
    line = next(one for one in lines if one.startswith("--index-url"))
    assert "s3cr3t" not in "\n".join(lines)
    assert "${" not in line
    assert len(line.split()) == 2


def test_paths_with_blanks_are_refused_rather_than_misread() -> None:
    with pytest.raises(InputError, match="cannot stand in a lock"):
        text.write(Lock((FILELOCK,), find_links=("/my wheels",)))


def test_differences_name_the_machine_first_and_then_packages() -> None:
    old = text.read(text.write(LOCK))
    new = text.read(
        text.write(
            Lock(
                (Entry("torch", "2.10.0+rocm7.0", (file("torch-2.10.0+rocm7.0-cp312-cp312-linux_x86_64.whl"),)), FLASH),
                Coordinates(python="3.12", rocm="7.0", gfx=("gfx942", "gfx90a"), driver="6.12.0"),
            )
        )
    )
    found = differences(old, new)
    assert found[0].startswith("ROCm: the lock is for 6.4, here is 7.0") or found[0].startswith("the driver")
    assert any("6.10.5" in line and "6.12.0" in line for line in found)
    assert "torch: 2.9.1+rocm6.4 is locked, and 2.10.0+rocm7.0 is needed" in found
    assert "filelock: 3.16.0 is locked and nothing asks for it any more" in found
    assert "flash-attn: 2.8.3 is missing from the lock" in found
    assert differences(old, old) == ()


def test_other_hashes_of_the_same_version_are_a_difference() -> None:
    changed = Entry("filelock", "3.16.0", (file("filelock-3.16.0-py3-none-any.whl", OTHER),), via=("torch",))
    found = differences(text.read(text.write(Lock((FILELOCK,)))), text.read(text.write(Lock((changed,)))))
    assert found == ("filelock 3.16.0: its files have changed on the index (other hashes)",)


IMAGE = dockerfile.Image("out.lock", "3.12", "6.4", ("gfx942", "gfx90a"), torch=True)


def test_a_dockerfile_of_ready_wheels_has_one_stage_and_the_check() -> None:
    made = dockerfile.write(IMAGE)
    assert made.count("\nFROM ") == 1
    assert "FROM docker.io/rocm/dev-ubuntu-24.04:6.4\n" in made
    assert 'ENV PYTORCH_ROCM_ARCH="gfx942;gfx90a"' in made
    assert "pip install --require-hashes -r /opt/lock/out.lock" in made
    assert "/tmp/check.py gfx942 gfx90a" in made
    assert "--groups render,video app" in made
    assert made.index("check.py") < made.index("USER app")


def test_a_dockerfile_with_builds_has_two_stages() -> None:
    made = dockerfile.write(
        dockerfile.Image(
            "out.lock", "3.12", "6.4", ("gfx942",), builds=("flash-attn",), torch=True, rocmpip="0.1.0", env={"A_B": 'x"$y'}
        )
    )
    assert made.count("\nFROM ") == 2
    assert "6.4-complete AS build" in made
    assert "rocmpip sync /opt/lock/out.lock --python /opt/venv/bin/python --gfx gfx942 --rocm 6.4" in made
    assert "COPY --from=build /opt/venv /opt/venv" in made
    assert made.count('ENV A_B="x\\"\\$y"') == 2


@pytest.mark.parametrize(
    "image",
    [
        dockerfile.Image("a b.lock", "3.12"),
        dockerfile.Image("x.lock", "3.12\nRUN evil"),
        dockerfile.Image("x.lock", "3.12", "6.4", ("gfx942; rm",)),
        dockerfile.Image("x.lock", "3.12", base="a b"),
        dockerfile.Image("x.lock", "3.12", env={"A": "x\nRUN evil"}),
        dockerfile.Image("x.lock", "3.12", env={"a b": "x"}),
    ],
)
def test_a_dockerfile_takes_no_value_that_adds_a_line(image: dockerfile.Image) -> None:
    with pytest.raises(InputError):
        dockerfile.write(image)


def test_wheels_beside_the_lock_go_into_the_image() -> None:
    made = dockerfile.write(replace(IMAGE, folders=("wheels",)))
    assert made.index("COPY wheels /opt/lock/wheels\n") < made.index("pip install")
    assert dockerfile.ignore_file("out.lock", ("wheels",)) == "*\n!out.lock\n!wheels\n"
    for folder in ("../wheels", "/wheels", "a b", "x\nRUN evil"):
        with pytest.raises(InputError):
            dockerfile.write(replace(IMAGE, folders=(folder,)))


def test_builds_without_a_known_image_ask_for_one() -> None:
    with pytest.raises(InputError, match=r"no ROCm image with Python 3\.11"):
        dockerfile.write(dockerfile.Image("x.lock", "3.11", "6.4", builds=("a",)))
    assert dockerfile.base_image(dockerfile.Image("x.lock", "3.11", "6.4")) == "docker.io/library/python:3.11-slim"


@pytest.mark.parametrize(
    ("torch", "gfx", "code"),
    [
        ("hip='6.4'; archs=['gfx90a:xnack-','gfx942']", ["gfx942", "gfx90a"], 0),
        ("hip='6.4'; archs=['gfx90a']", ["gfx942"], 1),
        ("hip=None; archs=['sm_90']", ["gfx942"], 1),
        ("hip='6.4'; archs=[]", ["gfx942"], 1),
    ],
)
def test_the_check_in_the_image_sees_a_wrong_torch(tmp_path, torch: str, gfx: list[str], code: int) -> None:  # type: ignore[no-untyped-def]
    """The very line of the Dockerfile is run by a shell, with a torch that says what the row says."""
    import subprocess

    made = dockerfile.write(dockerfile.Image("out.lock", "3.12", "6.4", tuple(gfx), torch=True))
    printf = next(line for line in made.splitlines() if line.startswith("RUN printf"))
    script = printf.removeprefix("RUN ").removesuffix(" \\").replace("/tmp/check.py", str(tmp_path / "check.py"))
    subprocess.run(["sh", "-c", script], check=True)
    (tmp_path / "torch.py").write_text(
        f"{torch}\n__version__='2.9.1'\n"
        "class version: hip = hip\n"
        "class cuda:\n    @staticmethod\n    def get_arch_list(): return archs\n"
        "class _C: pass\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "check.py"), *gfx], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_the_run_line_gives_devices_and_numeric_groups() -> None:
    line = dockerfile.run_line("docker", "app", devices=("/dev/kfd", "/dev/dri"), groups=(44, 993))
    assert line == (
        "docker run --rm -it --device=/dev/kfd --device=/dev/dri --group-add=44 --group-add=993"
        " --ipc=host --shm-size=16g --security-opt=seccomp=unconfined app"
    )
    assert dockerfile.ignore_file("out.lock") == "*\n!out.lock\n"
