"""Real pips and uv behind the router, against real servers with the layouts of pytorch.org and PyPI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rocmpip.index.client import Client
from rocmpip.index.credentials import private_netrc
from rocmpip.model.request import IndexOptions
from rocmpip.model.routing import Route
from rocmpip.router.alias import alias_wheel
from rocmpip.router.server import Router
from tests.index.index_server import Reply, Site, html_page, json_page, sha256, wheel
from tests.support.environments import installed, make_venv

VERSIONS = ["23.3.2", "24.3.1", "25.3", "26.3"]
if sys.version_info < (3, 12):
    VERSIONS.insert(0, "23.0.1")

pytestmark = pytest.mark.pip


@dataclass
class World:
    """Two hosts of pages and files, the user's private index among them."""

    pages: Site
    files: Site
    made: dict[str, tuple[str, bytes, bytes]] = field(default_factory=dict)

    def put(
        self, name: str, version: str, *requires: str, padding: int = 0, metadata: bool = True, **keys: object
    ) -> dict[str, object]:
        """One wheel on the files host; its row of a JSON page."""
        filename, content, text = wheel(name, version, requires, padding=padding)
        self.files.paths[f"/{filename}"] = Reply(content, ranges=True)
        self.made[filename] = (filename, content, text)
        row = {"filename": filename, "url": f"{self.files.url}/{filename}", "hashes": {"sha256": sha256(content)}, **keys}
        if metadata:
            self.files.paths[f"/{filename}.metadata"] = Reply(text)
            row["core-metadata"] = {"sha256": sha256(text)}
        return row

    def page(self, name: str, *rows: dict[str, object]) -> None:
        self.pages.paths[f"/simple/{name}/"] = json_page(name, rows)

    def fetched(self, filename: str) -> int:
        """How often the whole file was asked for."""
        return sum(1 for path, headers in self.files.requests if path == f"/{filename}" and "range" not in headers)


@pytest.fixture
def world() -> Iterator[World]:
    with Site() as pages, Site() as files:
        world = World(pages, files)
        cuda = world.put("torch", "2.9.9", "nvidia-cublas-cu12", "triton==3.5.9")
        world.page("torch", cuda)
        world.page("nvidia-cublas-cu12", world.put("nvidia-cublas-cu12", "12.1"))
        world.page("triton", world.put("triton", "3.5.9"))
        world.page(
            "numpy",
            world.put("numpy", "2.1"),
            world.put("numpy", "2.2", yanked="broken"),
            world.put("numpy", "2.3", **{"requires-python": ">=4"}),
        )
        world.page("accelerate", world.put("accelerate", "1.0", "torch>=2.8", "numpy", "needs-triton"))
        world.page("needs-triton", world.put("needs-triton", "1.0", "triton>=3"))
        world.page("wants-cuda", world.put("wants-cuda", "1.0", "nvidia-cublas-cu12"))
        links = []
        for name, version, *requires in (
            ("torch", "2.9.1+rocm6.4", "pytorch-triton-rocm==3.5.1"),
            ("pytorch-triton-rocm", "3.5.1"),
        ):
            row = world.put(name, version, *requires, padding=3_000_000, metadata=name != "torch")
            text = world.made[str(row["filename"])][2]
            mark = f'data-core-metadata="sha256={sha256(text)}"' if "core-metadata" in row else ""
            link = str(row["url"]).replace("+", "%2B")
            links.append((name, f'<h1>Links for {name}</h1><a href="{link}#sha256={row["hashes"]["sha256"]}" {mark}>x</a>'))  # type: ignore[index]
        for name, page in links:
            pages.paths[f"/whl/rocm6.4/{name}/"] = html_page(page)
        yield world


@dataclass
class Run:
    code: int
    text: str
    router: Router


class Behind:
    """Runs a tool in an environment of its own, behind a router."""

    def __init__(self, world: World, python: Path, client: Client) -> None:
        self.world = world
        self.python = python
        self.client = client

    def route(self, name: str) -> Route:
        family = f"{self.world.pages.url}/whl/rocm6.4"
        if name.startswith("nvidia-"):
            return Route(name, "forbidden", because=f"{name} is CUDA")
        if name in ("torch", "pytorch-triton-rocm"):
            return Route(name, "family", (family,))
        if name == "triton":
            return Route(name, "family", synthetic=(alias_wheel("triton", "3.5.1", "pytorch-triton-rocm==3.5.1"),))
        return Route(name, "plain", (f"{self.world.pages.url}/simple",))

    def run(self, tool: list[str], env: dict[str, str], *arguments: str, stream: bool = True, hollow: bool = False) -> Run:
        with Router(self.route, self.client, stream=stream, hollow=hollow) as router:
            done = subprocess.run(
                [*tool, *arguments],
                env={**os.environ, "PIP_INDEX_URL": router.url, "UV_DEFAULT_INDEX": router.url, **env},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            return Run(done.returncode, done.stdout + done.stderr, router)


@pytest.fixture
def behind(world: World, tmp_path: Path) -> Iterator[Behind]:
    with Client(IndexOptions(), env={}) as client:
        yield Behind(world, make_venv(tmp_path / "venv"), client)


@pytest.fixture(params=VERSIONS)
def pip(request: pytest.FixtureRequest, pip_path: Callable[[str], Path], behind: Behind) -> Callable[..., Run]:
    folder = pip_path(request.param)

    def run(*arguments: str, stream: bool = True, hollow: bool = False, **env: str) -> Run:
        tool = [str(behind.python), "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--no-input"]
        return behind.run(tool, {"PYTHONPATH": str(folder), **env}, *arguments, stream=stream, hollow=hollow)

    return run


def packages(python: Path) -> dict[str, str]:
    return {name: version for name, version in installed(python).items() if name not in ("pip", "setuptools")}


ROCM = {
    "torch": "2.9.1+rocm6.4",
    "pytorch-triton-rocm": "3.5.1",
    "triton": "3.5.1",
    "accelerate": "1.0",
    "needs-triton": "1.0",
    "numpy": "2.1",
}


def test_torch_transitively_is_rocm_and_the_check_is_clean(pip: Callable[..., Run], behind: Behind) -> None:
    run = pip("install", "accelerate")
    assert run.code == 0, run.text
    assert packages(behind.python) == ROCM
    assert "warning" not in run.text.lower()
    check = pip("check")
    assert check.code == 0, check.text
    again = pip("install", "torch", "triton", "accelerate")
    assert "Successfully installed" not in again.text


def test_a_dry_run_downloads_no_wheel_with_a_hollow_router(
    pip: Callable[..., Run], behind: Behind, world: World, tmp_path: Path
) -> None:
    run = pip("install", "--dry-run", "--report", str(tmp_path / "report.json"), "accelerate", hollow=True)
    assert run.code == 0, run.text
    rows = json.loads((tmp_path / "report.json").read_text())["install"]
    torch = next(row["download_info"] for row in rows if row["metadata"]["name"] == "torch")
    filename = "torch-2.9.1+rocm6.4-py3-none-any.whl"
    assert run.router.real_url(torch["url"]) == f"{world.files.url}/torch-2.9.1%2Brocm6.4-py3-none-any.whl"
    file = run.router.file_of(torch["url"])
    assert file is not None
    assert file.hashes["sha256"] == sha256(world.made[filename][1])
    assert {row["metadata"]["name"]: row["metadata"]["version"] for row in rows} == ROCM
    assert sum(world.fetched(name) for name in world.made) == 0


def test_hash_mode(pip: Callable[..., Run], behind: Behind, world: World, tmp_path: Path) -> None:
    lines = [
        f"{name}=={version} --hash=sha256:{sha256(world.made[f'{name}-{version}-py3-none-any.whl'][1])}"
        for name, version in (("torch", "2.9.1+rocm6.4"), ("numpy", "2.2"))
    ]
    triton = world.made["pytorch_triton_rocm-3.5.1-py3-none-any.whl"][1]
    (tmp_path / "r.txt").write_text("\n".join([*lines, f"pytorch-triton-rocm==3.5.1 --hash=sha256:{sha256(triton)}"]))
    run = pip("install", "--require-hashes", "-r", str(tmp_path / "r.txt"))
    assert run.code == 0, run.text
    assert packages(behind.python)["numpy"] == "2.2"
    (tmp_path / "r.txt").write_text(f"numpy==2.1 --hash=sha256:{'0' * 64}")
    assert pip("install", "--require-hashes", "-r", str(tmp_path / "r.txt")).code == 1


def test_a_forbidden_name_is_known_by_the_router(pip: Callable[..., Run], behind: Behind) -> None:
    run = pip("install", "wants-cuda")
    assert run.code == 1
    assert [record.name for record in run.router.forbidden] == ["nvidia-cublas-cu12"]
    assert packages(behind.python) == {}


@pytest.mark.parametrize("stream", [True, False])
def test_a_private_index_whose_files_need_credentials(
    pip: Callable[..., Run], behind: Behind, world: World, tmp_path: Path, stream: bool
) -> None:
    import base64

    sign = "Basic " + base64.b64encode(b"me:s3cret").decode()
    row = world.put("numpy", "9.0")
    for site, path in ((world.pages, "/private/numpy/"), (world.files, "/numpy-9.0-py3-none-any.whl")):
        reply = json_page("numpy", [row]) if site is world.pages else site.paths[path]
        site.paths[path] = lambda handler, reply=reply: reply if handler.headers["Authorization"] == sign else Reply(status=401)  # type: ignore[misc]
    credentials = [site.url.replace("://", "://me:s3cret@") for site in (world.pages, world.files)]
    options = IndexOptions(index_url=f"{credentials[0]}/private", extra_index_urls=(credentials[1],))
    netrc = private_netrc(tmp_path / "run", options, {})
    with Client(options, env={}) as client:
        behind.client = client
        behind.route = lambda name: Route(name, "plain", (f"{world.pages.url}/private",))  # type: ignore[method-assign]
        run = pip("install", "numpy", stream=stream, **({} if stream else {"NETRC": str(netrc)}))
    assert run.code == 0, run.text
    assert packages(behind.python) == {"numpy": "9.0"}
    assert "s3cret" not in run.text


def test_uv(behind: Behind, world: World, tmp_path: Path) -> None:
    from uv import find_uv_bin

    tool = [find_uv_bin(), "pip", "install", "--python", str(behind.python)]
    env = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
    run = behind.run(tool, env, "accelerate")
    assert run.code == 0, run.text
    assert packages(behind.python) == ROCM
    check = behind.run([find_uv_bin(), "pip", "check", "--python", str(behind.python)], env)
    assert check.code == 0, check.text
    run = behind.run(tool, env, "wants-cuda")
    assert run.code != 0
    assert [record.name for record in run.router.forbidden] == ["nvidia-cublas-cu12"]
