"""Whole builds with a real pip: overlay, examination, record, failures, interruption. No compiler: the backend packs files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from rocmpip.build.engine import build
from rocmpip.build.job import BuildJob, Progress
from rocmpip.build.record import write_record
from rocmpip.elf import read_wheel
from rocmpip.model.errors import BuildFailed, Refused
from rocmpip.model.machine import TargetEnv
from rocmpip.model.provenance import FingerprintInputs, Provenance
from rocmpip.model.recipe import ResolvedRecipe, SystemNeed, Value, Verify
from rocmpip.model.rocm import parse_rocm
from rocmpip.store.wheelhouse import fingerprint
from tests.support.elf_files import bundle, elf, wheel
from tests.support.environments import make_venv, site_packages

pytestmark = pytest.mark.pip

# A build backend inside the source: it packs what stands in payload/ and writes down what it saw.
BACKEND = """
import json, os, sys, time, zipfile
from pathlib import Path

def get_requires_for_build_wheel(config_settings=None):
    return []

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    mode = Path("mode").read_text() if Path("mode").exists() else ""
    if mode == "fail":
        print("kernel.hip:3:10: fatal error: 'missing.h' file not found", file=sys.stderr)
        raise RuntimeError("Error compiling objects for extension")
    if mode == "sleep":
        Path(os.environ["MARK"]).write_text(str(os.getpid()))
        time.sleep(300)
    seen = {"env": dict(os.environ), "settings": config_settings, "path": sys.path, "files": sorted(os.listdir("."))}
    for name in ("torch", "helper_tool"):
        try:
            module = __import__(name)
            seen[name] = [module.__file__, module.__version__]
        except ImportError as problem:
            seen[name] = str(problem)
    print("[1/2] c++ a.o"); print("[2/2] c++ b.so", flush=True); time.sleep(0.3)
    print("my token is", os.environ.get("MY_TOKEN"))
    name = mode or "kernels-1.0-py3-none-any.whl"
    info = "-".join(name.split("-")[:2]) + ".dist-info"
    files = {f"kernels/{path.name}": path.read_bytes() for path in sorted(Path("payload").iterdir())}
    files["kernels/seen.json"] = json.dumps(seen).encode()
    files[f"{info}/METADATA"] = "Metadata-Version: 2.1\\nName: {}\\nVersion: {}\\n".format(*name.split("-")).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files[f"{info}/RECORD"] = "".join(f"{one},,\\n" for one in [*files, f"{info}/RECORD"]).encode()
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as archive:
        for one, data in files.items():
            archive.writestr(one, data)
    return name
"""


def library(*gfx: str, needed: tuple[str, ...] = ("libtorch_hip.so",)) -> bytes:
    return elf({".hip_fatbin": bundle(dict.fromkeys(gfx, b"code"))} if gfx else {}, needed=needed)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip and a torch that says ROCm."""
    made = make_venv(tmp_path_factory.mktemp("target") / "venv", with_pip=True)
    site = site_packages(made)
    (site / "torch").mkdir()
    (site / "torch/__init__.py").write_text('__version__ = "2.9.1+rocm6.4"\n')
    info = site / "torch-2.9.1+rocm6.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+rocm6.4\n")
    (info / "RECORD").write_text("torch/__init__.py,,\n")
    (info / "INSTALLER").write_text("pip\n")
    return made


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A find-links folder: a build requirement that wants torch, a newer torch, and one that wants that newer torch."""
    folder = tmp_path_factory.mktemp("links")

    def put(name: str, version: str, module: str, *requires: str) -> None:
        made = wheel(folder / f"{name}-{version}-py3-none-any.whl", {f"{module}.py": f'__version__ = "{version}"\n'.encode()},
                     tags=("py3-none-any",))  # fmt: skip
        with zipfile.ZipFile(made) as archive:
            members = {one: archive.read(one) for one in archive.namelist()}
        metadata = f"{name}-{version}.dist-info/METADATA"
        members[metadata] += "".join(f"Requires-Dist: {one}\n" for one in requires).encode()
        with zipfile.ZipFile(made, "w") as archive:
            for one, data in members.items():
                archive.writestr(one, data)

    put("helper_tool", "1.0", "helper_tool", "torch>=2")
    put("greedy", "1.0", "greedy", "torch>=2.14")
    put("torch", "2.14.0", "torch")
    put("ninja", "1.13.0", "ninja")
    put("setuptools", "80.0", "setuptools")
    put("wheel", "0.45", "wheel")
    return folder


@pytest.fixture
def job(tmp_path: Path, python: Path, links: Path) -> BuildJob:
    source = tmp_path / "kernels"
    (source / "payload").mkdir(parents=True)
    (source / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
    (source / "backend.py").write_text(BACKEND)
    (source / "payload/k.so").write_bytes(library("gfx90a", "gfx942"))
    recipe = ResolvedRecipe(
        "kernels", "1.0", "shipped", "kernels.toml", "digest", requires=("helper-tool>=1",),
        env=(Value("PYTORCH_ROCM_ARCH", "gfx90a;gfx942", "c"),), verify=Verify("kernels", True), memory_per_job=0.5,
    )  # fmt: skip
    target = TargetEnv(str(python), "3.11.0", "venv", str(python.parent.parent), (str(site_packages(python)),), "--python")
    return BuildJob(
        recipe=recipe,
        source=source,
        gfx=("gfx90a", "gfx942"),
        rocm_root="/opt/rocm",
        hip_root="/opt/rocm",
        rocm=parse_rocm("6.4.1"),
        torch="2.9.1+rocm6.4",
        target=target,
        pip_argv=(str(python), "-m", "pip"),
        pip_env={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links), "PIP_CONFIG_FILE": os.devnull},
        user_env=dict(os.environ),
        out_dir=tmp_path / "out",
        log_path=tmp_path / "logs/build.log",
        work_dir=tmp_path / "work",
        compile_cache=False,
    )


def quick(job: BuildJob) -> BuildJob:
    """The same without build requirements, for tests of what comes after them."""
    return replace(job, torch="", recipe=replace(job.recipe, requires=()))


def seen(path: Path) -> dict[str, object]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("kernels/seen.json"))


def nothing_left(job: BuildJob) -> bool:
    work, out = job.work_dir, job.out_dir
    return not (work and work.exists() and any(work.iterdir())) and not (out.exists() and any(out.iterdir()))


def test_a_good_build(job: BuildJob, python: Path) -> None:
    before = sorted(path.name for path in site_packages(python).iterdir())
    inputs = FingerprintInputs("kernels", "1.0", "s", "digest", ("gfx90a", "gfx942"), "6.4.1", "2.9.1+rocm6.4")
    record = Provenance(fingerprint(inputs), inputs, rocmpip="0.1", recipe="kernels (shipped)")
    moments: list[Progress] = []
    made = build(replace(job, provenance=record, config_settings=("a=b",)), progress=moments.append)

    assert made.path.parent == job.out_dir and made.report.gfx == ("gfx90a", "gfx942") and made.seconds > 0
    inside = read_wheel(made.path)
    assert inside == replace(record, code_objects=("gfx90a", "gfx942"))
    with zipfile.ZipFile(made.path) as archive:
        assert "kernels-1.0.dist-info/rocmpip.json,sha256=" in archive.read("kernels-1.0.dist-info/RECORD").decode()
        assert archive.testzip() is None
    told = seen(made.path)
    overlay = str(job.work_dir)
    assert str(told["helper_tool"][0]).startswith(overlay), "the build requirement stands in the overlay"  # type: ignore[index]
    assert told["torch"] == [str(site_packages(python) / "torch/__init__.py"), "2.9.1+rocm6.4"], "the target's own torch"
    assert told["settings"] == {"a": "b"}
    env = told["env"]
    assert isinstance(env, dict)
    assert (env["HIP_PLATFORM"], env["ROCM_PATH"], env["PYTORCH_ROCM_ARCH"]) == ("amd", "/opt/rocm", "gfx90a;gfx942")
    assert env["TMPDIR"].startswith(overlay)
    assert sorted(path.name for path in site_packages(python).iterdir()) == before, "nothing was installed into the target"
    assert not any(job.work_dir.iterdir())  # type: ignore[union-attr]
    stages = list(dict.fromkeys(moment.stage for moment in moments))
    assert stages == ["unpack", "requirements", "compile", "examine"]
    assert any((moment.done, moment.total) == (2, 2) for moment in moments)
    log = job.log_path.read_text()
    assert "rocmpip: PYTORCH_ROCM_ARCH=gfx90a;gfx942" in log and "[2/2] c++ b.so" in log and "helper-tool==1.0" in log
    assert any("job" in note for note in made.notes)


def test_secrets_do_not_reach_the_log(job: BuildJob) -> None:
    user = {**job.user_env, "MY_TOKEN": "hf_verysecret", "PIP_INDEX_URL": "https://me:pw12345@pypi.example/simple"}
    build(replace(job, user_env=user))
    log = job.log_path.read_text()
    assert "my token is ****" in log and "hf_verysecret" not in log and "pw12345" not in log


def failing(job: BuildJob, **more: object) -> BuildFailed:
    with pytest.raises(BuildFailed) as caught:
        build(job, **more)  # type: ignore[arg-type]
    assert caught.value.exit_code == 41
    assert nothing_left(job)
    return caught.value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (library(), "said success, but its wheel holds no device code at all; asked for gfx90a, gfx942"),
        (library("gfx90a"), "no device code for gfx942 (it has gfx90a)"),
        (library("gfx803"), "no device code for gfx90a, gfx942 (it has gfx803)"),
        (library("gfx90a", "gfx942", needed=("libcudart.so.12",)), "is a CUDA build: k.so links libcudart.so.12"),
        (library("gfx90a", "gfx942")[:300], "no device code at all"),
    ],
)
def test_a_build_that_said_success(content: bytes, words: str, job: BuildJob) -> None:
    """xformers and torch-scatter make CPU wheels without an error where they see no GPU."""
    assert job.source is not None
    (job.source / "payload/k.so").write_bytes(content)
    problem = failing(quick(job))
    assert words in problem.message and str(job.log_path) in problem.hint and job.log_path.exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("../evil.py", b"x", "member '../evil.py' lies outside of it"),
        ("/etc/evil.py", b"x", "member '/etc/evil.py' lies outside of it"),
        ("kernels-1.0.dist-info/RECORD", b"\xff\xfe", "codec can't decode"),
        ("kernels-1.0.dist-info/RECORD", b"a" * 200_000, "field larger than field limit"),
        ("kernels/__init__.py", b"", "it has no RECORD"),
    ],
)
def test_a_wheel_that_is_none_gets_no_record(name: str, content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "kernels-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        if "evil" in name:
            archive.writestr("kernels-1.0.dist-info/RECORD", "")
        archive.writestr(name, content)
    inputs = FingerprintInputs("kernels", "1.0", "s", "digest", ("gfx90a",), "6.4.1")
    with pytest.raises(BuildFailed, match="is no proper wheel") as caught:
        write_record(path, tmp_path / "out.whl", Provenance(fingerprint(inputs), inputs))
    assert words in caught.value.why


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other-1.0-py3-none-any.whl", "it made a wheel of other"),
        ("kernels-2.0-py3-none-any.whl", "it made version 2.0"),
        ("kernels-1.0-cp35-cp35m-linux_x86_64.whl", "its wheel is for cp35-cp35m-linux_x86_64, not for Python 3.11.0 on"),
        ("kernels-1.0-py3-none-win_amd64.whl", "its wheel is for py3-none-win_amd64, not for Python 3.11.0 on"),
    ],
)
def test_a_build_that_makes_something_else(name: str, words: str, job: BuildJob) -> None:
    """A wheel is kept under the package that was asked for: what is none of it would come back for every later request."""
    assert job.source is not None
    (job.source / "mode").write_text(name)
    inputs = FingerprintInputs("kernels", "1.0", "s", "digest", job.gfx, "6.4.1", python_abi="cp311")
    problem = failing(replace(quick(job), provenance=Provenance(fingerprint(inputs), inputs)))
    assert f"said success, but {words}" in problem.message


@pytest.mark.parametrize(
    ("name", "source", "version"),
    [
        ("kernels-1.0+rocm6.4-py3-none-any.whl", "s", "1.0"),
        ("kernels-0.1.dev1-py3-none-any.whl", "git:https://git.example/kernels@0123", "1.0"),
        ("something_else-3.0-py3-none-any.whl", "s", "0"),
    ],
)
def test_versions_that_are_the_builds_own_affair(name: str, source: str, version: str, job: BuildJob) -> None:
    """A local label; a git checkout without tags; a local folder, of which nothing is known before."""
    assert job.source is not None
    (job.source / "mode").write_text(name)
    inputs = FingerprintInputs("kernels", version, source, "digest", job.gfx, "6.4.1", python_abi="cp311")
    assert build(replace(quick(job), provenance=Provenance(fingerprint(inputs), inputs))).path.name == name


def test_a_generic_target_covers_its_gpus(job: BuildJob) -> None:
    assert job.source is not None
    (job.source / "payload/k.so").write_bytes(library("gfx90a", "gfx9-4-generic"))
    assert build(quick(job)).report.missing(job.gfx) == ()


def test_a_build_that_fails_tells_its_first_real_error(job: BuildJob) -> None:
    assert job.source is not None
    (job.source / "mode").write_text("fail")
    job = quick(job)
    problem = failing(job)
    assert problem.why == "kernel.hip:3:10: fatal error: 'missing.h' file not found"
    assert str(job.log_path) in problem.hint and "missing.h" in job.log_path.read_text()
    problem = failing(job, diagnose=lambda path: f"the header is not installed ({Path(path).name})")
    assert problem.why == "the header is not installed (build.log)"
    assert problem.details == ("kernel.hip:3:10: fatal error: 'missing.h' file not found",)


def test_a_build_requirement_that_wants_another_torch(job: BuildJob, python: Path) -> None:
    problem = failing(replace(job, recipe=replace(job.recipe, requires=("greedy",))))
    assert "another torch than the one installed" in problem.message and "torch==2.14.0" in problem.message
    assert (site_packages(python) / "torch-2.9.1+rocm6.4.dist-info").is_dir()


def test_a_build_requirement_that_is_nowhere(job: BuildJob) -> None:
    problem = failing(replace(job, recipe=replace(job.recipe, requires=("not-there>=3",))))
    assert "not-there" in problem.why and "No matching distribution" not in problem.message


def test_torch_in_the_requirements_is_the_targets(job: BuildJob) -> None:
    """`requires = ["torch==2.14.0"]` in pyproject.toml is what isolation would obey with a CUDA build."""
    assert job.source is not None
    path = job.source / "pyproject.toml"
    path.write_text(path.read_text().replace("requires = []", 'requires = ["torch==2.14.0", "helper-tool"]'))
    made = build(replace(job, recipe=replace(job.recipe, requires=())))
    told = seen(made.path)
    assert told["torch"][1] == "2.9.1+rocm6.4" and told["helper_tool"][1] == "1.0"  # type: ignore[index]


def test_constraints_hold_build_requirements(job: BuildJob) -> None:
    problem = failing(replace(job, constraints=("helper-tool<1",)))
    assert "helper-tool" in problem.why


def test_missing_things_are_refused_before_any_work(job: BuildJob) -> None:
    need = SystemNeed("header", "not/there.h", apt="there-dev")
    with pytest.raises(Refused) as caught:
        build(replace(job, recipe=replace(job.recipe, system=(need,))))
    assert caught.value.exit_code == 44 and "apt-get install there-dev" in caught.value.hint
    assert nothing_left(job) and not job.log_path.exists()


def test_prepare_runs_in_the_source(job: BuildJob) -> None:
    assert job.source is not None
    (job.source / "prepare.py").write_text(
        "import sys, pathlib; pathlib.Path('payload', sys.argv[1]).write_text('made'); print('prepared')"
    )
    made = build(replace(job, recipe=replace(job.recipe, prepare=(("python", "prepare.py", "new file"),))))
    with zipfile.ZipFile(made.path) as archive:
        assert archive.read("kernels/new file") == b"made"
    assert not (job.source / "payload/new file").exists(), "the user's own folder is left alone"
    (job.source / "prepare.py").write_text("raise ValueError('no such kernel')")
    problem = failing(replace(job, recipe=replace(job.recipe, prepare=(("python", "prepare.py"),)), out_dir=job.out_dir / "2"))
    assert problem.why == "ValueError: no such kernel" and "prepare.py" in problem.message


def test_with_pips_own_isolation(job: BuildJob) -> None:
    assert job.source is not None
    path = job.source / "pyproject.toml"
    path.write_text(path.read_text().replace("requires = []", 'requires = ["ninja"]'))
    made = build(replace(job, torch="", recipe=replace(job.recipe, isolation=True, requires=())))
    told = seen(made.path)
    assert "No module named" in str(told["torch"]), "isolation does not see the target"
    assert str(job.work_dir) + "/overlay" not in str(told["path"])


def test_the_build_folder_is_kept_when_asked(job: BuildJob) -> None:
    made = build(replace(quick(job), keep_build=True))
    kept = [note for note in made.notes if "is kept" in note]
    assert kept and Path(kept[0].rpartition(": ")[2]).is_dir()


def test_a_compressed_source(job: BuildJob, tmp_path: Path) -> None:
    import shutil

    assert job.source is not None
    archive = shutil.make_archive(str(tmp_path / "kernels-1.0"), "gztar", job.source.parent, job.source.name)
    assert build(replace(quick(job), source=Path(archive))).report.gfx == ("gfx90a", "gfx942")


_INTERRUPTED = """
import pickle, sys
from rocmpip.build.engine import build
job = pickle.loads(open(sys.argv[1], "rb").read())
build(job)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing(number: int, job: BuildJob, tmp_path: Path) -> None:
    import pickle

    assert job.source is not None
    (job.source / "mode").write_text("sleep")
    mark = tmp_path / "mark"
    stored = tmp_path / "job"
    stored.write_bytes(pickle.dumps(replace(quick(job), user_env={**job.user_env, "MARK": str(mark)})))
    child = subprocess.Popen([sys.executable, "-c", _INTERRUPTED, str(stored)], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
        assert child.poll() is None, child.communicate()[1]
        time.sleep(0.05)
    child.send_signal(number)
    child.communicate(timeout=30)
    assert nothing_left(job)
    assert not Path(f"/proc/{mark.read_text()}").exists()
    assert job.log_path.exists()


def test_beside_each_other(job: BuildJob, tmp_path: Path) -> None:
    """Two builds of one package at once share nothing."""
    from concurrent.futures import ThreadPoolExecutor

    job = quick(job)
    other = replace(job, gfx=("gfx90a",), log_path=tmp_path / "logs/other.log", out_dir=tmp_path / "out2")
    work: Callable[[BuildJob], object] = build
    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(work, (job, other)))) == 2
