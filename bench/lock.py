"""Lock a recorded piece of PyPI with rocmpip, uv and, when asked, pip lock and pip-compile: alternating, equal answers first.

    python bench/lock.py --mirror lock-mirror.tar.xz              # RTT 0 and 25 ms, three sets, cold and warm
    python bench/lock.py --mirror DIR --runs 3 --with pip,pip-compile
    python bench/lock.py --scale                                   # cost from 20 to 500 packages, no mirror needed

The mirror is served by nginx (gzip_static, ETag, keep-alive) from a configuration of this script's own, and at RTT 25 ms
through a delaying proxy of its own. Each cold run has a new empty cache. Trust the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON_VERSION = "3.12"
SETS = ("transformers", "jupyter-science", "vllm-common")

NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
  log_format brief '$status $bytes_sent'; access_log {folder}/access.log brief;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  sendfile on; tcp_nopush on; etag on; gzip_static on; keepalive_timeout 60; keepalive_requests 100000;
  types {{ application/vnd.pypi.simple.v1+json json; }} default_type application/octet-stream;
  server {{ listen 127.0.0.1:{port}; root {root}; index index.json; }}
}}
"""


@dataclass
class Tool:
    """A way to lock: ``command(index, requirements, cache, out)`` → argv; ``read`` gives name → version of its output."""

    name: str
    command: Callable[[str, Path, Path, Path], list[str]]
    env: dict[str, str]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.02)
    sys.exit(f"nothing listens on port {port}")


@contextlib.contextmanager
def served(root: Path, folder: Path) -> Iterator[int]:
    """nginx over ``root`` on a free port."""
    if shutil.which("nginx") is None:
        sys.exit("this benchmark needs nginx: slower servers hide what is measured")
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, root=root))
    child = subprocess.Popen(["nginx", "-c", str(config)], stdin=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield port
    finally:
        child.terminate()
        child.wait()


@contextlib.contextmanager
def delayed(port: int, rtt: float) -> Iterator[int]:
    """A TCP proxy to ``port`` that holds every byte back for half of ``rtt`` (seconds) each way."""
    if not rtt:
        yield port
        return
    here = free_port()
    child = subprocess.Popen([sys.executable, __file__, "--proxy", f"{here}:{port}:{rtt}"], stdin=subprocess.DEVNULL)
    try:
        wait_for(here)
        yield here
    finally:
        child.terminate()
        child.wait()


class Pipe(asyncio.Protocol):
    """One direction of a connection: what comes in goes out ``delay`` seconds later, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, delay: float, target: int = 0, peer: Pipe | None = None) -> None:
        self.loop, self.delay, self.target, self.peer = loop, delay, target, peer
        self.transport: asyncio.Transport | None = None
        self.early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.peer is None:
            # A new connection costs one round trip before it carries anything.
            self.peer = Pipe(self.loop, self.delay, peer=self)
            self.loop.call_later(2 * self.delay, lambda: self.loop.create_task(self.connect()))
        for data in self.early:
            transport.write(data)

    async def connect(self) -> None:
        assert self.peer is not None
        peer = self.peer
        await self.loop.create_connection(lambda: peer, "127.0.0.1", self.target)

    def data_received(self, data: bytes) -> None:
        self.loop.call_later(self.delay, self.peer.write if self.peer else self.write, data)

    def write(self, data: bytes) -> None:
        if self.transport is None:
            self.early.append(data)
        elif not self.transport.is_closing():
            self.transport.write(data)

    def connection_lost(self, problem: Exception | None) -> None:
        if self.peer is not None and self.peer.transport is not None:
            self.loop.call_later(self.delay, self.peer.transport.close)


async def proxy(here: int, there: int, rtt: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Pipe(loop, rtt / 2, there), "127.0.0.1", here, backlog=256)
    async with server:
        await server.serve_forever()


def tools(names: Sequence[str], interpreter: str) -> list[Tool]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_", "ROCMPIP_"))}
    clean["PIP_CONFIG_FILE"] = os.devnull
    empty = tempfile.mkdtemp(prefix="bench-sysroot-")
    here = Path(sys.executable).parent
    known = {
        "rocmpip": Tool(
            "rocmpip",
            lambda index, source, cache, out: [
                str(here / "rocmpip"), "lock", "-q", "-i", index, "-r", str(source), "-o", str(out),
                "--python-version", PYTHON_VERSION, "--cache-dir", str(cache),
            ],
            {**clean, "ROCMPIP_SYSROOT": empty},
        ),
        "uv": Tool(
            "uv",
            lambda index, source, cache, out: [
                str(here / "uv"), "pip", "compile", "-q", "--generate-hashes", "--default-index", index, str(source),
                "-o", str(out), "--cache-dir", str(cache), "--python-version", PYTHON_VERSION, "--python", interpreter,
            ],
            clean,
        ),
        "pip": Tool(
            "pip",
            lambda index, source, cache, out: [
                interpreter, "-m", "pip", "lock", "-q", "-i", index, "-r", str(source), "-o", str(out),
                "--cache-dir", str(cache),
            ],
            clean,
        ),
        "pip-compile": Tool(
            "pip-compile",
            lambda index, source, cache, out: [
                str(here / "pip-compile"), "-q", "--generate-hashes", "--allow-unsafe", "-i", index, str(source), "-o", str(out),
                "--cache-dir", str(cache),
            ],
            clean,
        ),
    }  # fmt: skip
    for name in names:
        if name not in known:
            sys.exit(f"--with knows {', '.join(known)}, not {name}")
    return [known[name] for name in names]


def answer(path: Path) -> dict[str, str]:
    """name → version of a lock in either form."""
    text = path.read_text()
    if path.suffix == ".toml":
        import tomllib

        return {row["name"]: row["version"] for row in tomllib.loads(text)["packages"]}
    found = {}
    for line in text.splitlines():
        name, pinned, rest = line.partition("==")
        if pinned and not line.startswith((" ", "#")):
            found[name.partition("[")[0].lower().replace("_", "-")] = rest.split()[0].rstrip("\\").strip()
    return found


def run(tool: Tool, index: str, source: Path, cache: Path, folder: Path) -> tuple[float, dict[str, str]]:
    out = folder / ("pylock.toml" if tool.name == "pip" else f"{tool.name}.txt")
    out.unlink(missing_ok=True)
    start = time.perf_counter()
    done = subprocess.run(
        tool.command(index, source, cache, out), env={**tool.env, "ROCMPIP_CACHE_DIR": str(cache)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{tool.name} failed on {source.name}:\n{done.stderr}")
    return seconds, answer(out)


def traffic(log: Path) -> tuple[int, int]:
    """(requests, bytes) since the last look."""
    lines = log.read_text().split("\n")[:-1]
    with log.open("w"):
        pass
    return len(lines), sum(int(line.split()[1]) for line in lines)


def prepare(mirror: Path, folder: Path) -> Path:
    """The mirror unpacked and with a gzip file beside each page and metadata file."""
    if mirror.is_file():
        with tarfile.open(mirror) as archive:
            archive.extractall(folder, filter="data")
        mirror = next(path.parent for path in folder.rglob("simple") if path.is_dir())
    else:
        mirror = Path(shutil.copytree(mirror, folder / "mirror"))
    for path in (*mirror.glob("simple/*/index.json"), *mirror.glob("files/*.metadata")):
        with gzip.open(f"{path}.gz", "wb", 6) as stream:
            stream.write(path.read_bytes())
    return mirror


def compare(mirror: Path, chosen: Sequence[Tool], runs: int, rtts: Sequence[float], sets: Sequence[str]) -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-lock-") as text:
        folder = Path(text)
        root = prepare(mirror, folder)
        with served(root, folder / "nginx") as port:
            log = folder / "nginx" / "access.log"
            for rtt in rtts:
                with delayed(port, rtt) as entry:
                    index = f"http://127.0.0.1:{entry}/simple/"
                    for name in sets:
                        source = root / "requirements" / f"{name}.in"
                        wanted = answer(root / "requirements" / f"{name}.uv-answer.txt")
                        times: dict[tuple[str, str], list[float]] = {}
                        used: dict[str, tuple[int, int]] = {}
                        for number in range(runs):
                            for tool in chosen[number % 2 :] + chosen[: number % 2]:
                                cache = folder / f"cache-{tool.name}"
                                shutil.rmtree(cache, ignore_errors=True)
                                traffic(log)
                                seconds, got = run(tool, index, source, cache, folder)
                                if got != wanted:
                                    sys.exit(f"{tool.name} {name}: {sorted(set(got.items()) ^ set(wanted.items()))}")
                                used[tool.name] = traffic(log)
                                times.setdefault((tool.name, "cold"), []).append(seconds)
                                times.setdefault((tool.name, "warm"), []).append(run(tool, index, source, cache, folder)[0])
                        for state in ("cold", "warm"):
                            base = statistics.median(times["uv", state]) if ("uv", state) in times else 0
                            for tool in chosen:
                                middle = statistics.median(times[tool.name, state])
                                requests, size = used[tool.name] if state == "cold" else (0, 0)
                                row = {
                                    "rtt_ms": rtt * 1000, "set": name, "packages": len(wanted), "state": state,
                                    "tool": tool.name, "median_s": round(middle, 3), "best_s": round(min(times[tool.name, state]), 3),
                                    "ratio_to_uv": round(middle / base, 2) if base else None,
                                    "requests": requests, "bytes": size,
                                }  # fmt: skip
                                rows.append(row)
                                print(
                                    f"RTT {rtt * 1000:3.0f} ms  {name:16} {len(wanted):4}  {state}  {tool.name:12}"
                                    f" {middle:7.3f} s  × uv {row['ratio_to_uv'] or 0:5.2f}"
                                    + (f"  {requests:4} requests {size / 2**20:6.1f} MiB" if state == "cold" else "")
                                )
    return rows


def synthetic(folder: Path, count: int) -> Path:
    """A mirror of ``count`` projects with 40 versions each, every one of which needs three others."""
    for number in range(count):
        name = f"pkg{number}"
        page = folder / "simple" / name
        page.mkdir(parents=True)
        files = []
        for version in range(40):
            filename = f"{name}-1.{version}-py3-none-any.whl"
            files.append(
                {
                    "filename": filename, "url": f"../../files/{filename}", "hashes": {"sha256": f"{version:064x}"},
                    "requires-python": ">=3.8", "core-metadata": True,
                }
            )  # fmt: skip
        (page / "index.json").write_text(json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": files}))
        needs = "".join(
            f"Requires-Dist: pkg{other}>=1.{other % 30}\n"
            for other in (2 * number + 1, 2 * number + 2, number // 2)
            if other < count and other != number
        )
        (folder / "files").mkdir(exist_ok=True)
        (folder / "files" / f"{name}-1.39-py3-none-any.whl.metadata").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.39\n{needs}"
        )
    return folder


def scale(tool: Tool, counts: Sequence[int], runs: int) -> list[dict]:
    rows = []
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="bench-scale-") as text:
            folder = Path(text)
            root = synthetic(folder / "mirror", count)
            source = folder / "in.txt"
            source.write_text("pkg0\n")
            with served(root, folder / "nginx") as port:
                times = []
                for _ in range(runs):
                    shutil.rmtree(folder / "cache", ignore_errors=True)
                    seconds, got = run(tool, f"http://127.0.0.1:{port}/simple/", source, folder / "cache", folder)
                    if len(got) != count:
                        sys.exit(f"{count} packages were expected, {len(got)} came")
                    times.append(seconds)
        middle = statistics.median(times)
        rows.append({"packages": count, "median_s": round(middle, 3), "ms_per_package": round(1000 * middle / count, 2)})
        print(f"{count:4} packages {middle:7.3f} s  {1000 * middle / count:6.2f} ms each  {'#' * int(middle * 40)}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirror", type=Path, help="lock-mirror.tar.xz, or the folder it unpacks to")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rtt", default="0,25", help="milliseconds, separated by commas")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--with", dest="more", default="", help="pip, pip-compile")
    parser.add_argument("--python", default=sys.executable, help=f"a Python {PYTHON_VERSION} for uv, pip and pip-compile")
    parser.add_argument("--scale", action="store_true", help="cost from 20 to 500 packages")
    parser.add_argument("--json", type=Path, help="write the rows here too")
    parser.add_argument("--proxy", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.proxy:
        here, there, rtt = given.proxy.split(":")
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(proxy(int(here), int(there), float(rtt)))
        return
    rows: list[dict] = []
    if given.scale:
        rows += scale(tools(["rocmpip"], given.python)[0], (20, 50, 100, 200, 350, 500), given.runs)
    if given.mirror:
        names = ["rocmpip", "uv", *(name for name in given.more.split(",") if name)]
        rtts = [float(one) / 1000 for one in given.rtt.split(",")]
        rows += compare(given.mirror, tools(names, given.python), given.runs, rtts, given.sets.split(","))
    if not rows:
        parser.error("say --mirror or --scale")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
