"""Other people's versions of a log: their paths, names, versions, tools and noise. What a log means stays."""

from __future__ import annotations

import random
import re

HOMES = ("/home/alice", "/root", "/users/b.meier", "/mnt/data/李雷", "/scratch/proj_42/x", "/Users/kim", "/home/tom.o'neil")
NAMES = ("fastkernels", "my-attn", "tiny_llm", "quantkit", "neuro.ops", "speedyattention")
NOISE = (
    "/usr/include/c++/13/bits/stl_algo.h:120:5: warning: unused parameter 'first' [-Wunused-parameter]",
    "warning: argument unused during compilation: '-fno-fat-lto-objects' [-Wunused-command-line-argument]",
    "3 warnings generated when compiling for host.",
    "WARNING: Running pip as the 'root' user can result in broken permissions",
    "DEPRECATION: Loading egg at /x/y.egg is deprecated. pip 25.1 will enforce this behaviour change.",
    "[notice] A new release of pip is available: 25.2 -> 26.3",
    "  Downloading einops-0.8.1-py3-none-any.whl (64 kB)",
    "Collecting packaging>=20.0",
    "Requirement already satisfied: wheel in ./venv/lib/python3.12/site-packages (0.45.1)",
    "-- Performing Test HAVE_FLAG_WERROR - Failed",
    "-- Looking for pthread_create in pthreads - not found",
    "checking for sys/epoll.h... no",
    "[17/2000] Building CXX object src/CMakeFiles/lib.dir/error.cpp.o",
    "[18/2000] c++ -Wall -Werror -Wno-error=deprecated -c handle_error.cpp -o handle_error.o",
    "note: candidate function not viable: requires 2 arguments, but 1 was provided",
    "copying pkg/errors.py -> build/lib/pkg",
    "running build_ext",
    "      ^~~~~~~~~~~~~~",
    "100%|██████████| 12/12 [00:03<00:00,  3.41it/s]",
    "2026-11-30 12:00:01 INFO worker started",
    "FutureWarning: this call is deprecated",
    "Died at 0 errors, 12 warnings",
)
WRAPPERS = (
    "error: subprocess-exited-with-error",
    "  note: This error originates from a subprocess, and is likely not a problem with pip.",
    "ERROR: Failed building wheel for somepkg",
    "ERROR: Could not build wheels for somepkg, which is required to install pyproject.toml-based projects",
    "ninja: build stopped: subcommand failed.",
    "make[1]: *** [CMakeFiles/Makefile2:120: all] Error 2",
    "gmake: *** [Makefile:136: all] Error 2",
    "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
    "RuntimeError: Error compiling objects for extension",
    "error: metadata-generation-failed",
    "WARNING: Retrying (Retry(total=4, connect=None, read=None)) after connection broken by 'ReadTimeoutError'",
    "The above exception was the direct cause of the following exception:",
    "UserWarning: No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'",
    "[aiter] Current hipcc not support: -mllvm -amdgpu-coerce-illegal-types=1, skip it.",
    "W0000 00:00:1732960000.000000 gpu_device.cc:2344] Cannot dlopen some GPU libraries.",
)
"""What stands around a cause in real logs and says nothing."""
_VERSION = re.compile(r"(?<![\w.+-])(\d+)\.(\d+)\.(\d+)(?![\w.])")
_LABEL = re.compile(r"(?<=rocm)\d\.\d+(?:\.\d+)?(?![\w])|(?<=\+cu)\d{3}")
_SONAME = re.compile(r"(?<=\.so\.)\d+(?![\w.])")
_LINE = re.compile(r"(?<=line )\d+|(?<=\.(?:py|pp|cu|.h):)\d+")
_ROOT = re.compile(r"/opt/rocm-\d+\.\d+(?:\.\d+)?")
_USER_HOME = re.compile(r"/home/user\b")
_PYTHON = re.compile(r"python3\.\d+")
# These names are what the message is about.
KEPT = frozenset(
    "torch torchvision torchaudio triton rocm rocblas jax hip onnxruntime xformers bitsandbytes aiter cupy numpy libtorch".split()
)


def mutated(log: str, package: str, seed: int) -> str:
    """``log`` with other paths, versions and names, and unrelated lines between (never inside a wrapped message)."""
    rng = random.Random(seed)
    home = rng.choice(HOMES)
    log = _USER_HOME.sub(lambda _: home, log)
    log = _ROOT.sub(f"/opt/rocm-{rng.randint(5, 9)}.{rng.randint(0, 4)}.{rng.randint(0, 3)}", log)
    log = _PYTHON.sub(f"python3.{rng.randint(9, 14)}", log)
    log = _VERSION.sub(lambda m: f"{m[1]}.{rng.randint(0, 30)}.{rng.randint(0, 9)}", log)
    log = _LABEL.sub(
        lambda m: (
            str(rng.randint(118, 131)) if len(m[0]) == 3 and "." not in m[0] else f"{rng.randint(5, 8)}.{rng.randint(0, 4)}"
        ),
        log,
    )
    log = _SONAME.sub(lambda m: str(max(1, int(m[0]) + rng.choice((-1, 0, 1)))) if int(m[0]) not in (6,) else m[0], log)
    log = _LINE.sub(lambda _: str(rng.randint(2, 4000)), log)
    if package not in KEPT and re.fullmatch(r"[\w.-]{4,}", package):
        name = rng.choice(NAMES)
        for old, new in ((package, name), (package.replace("-", "_"), name.replace("-", "_"))):
            log = re.sub(rf"(?<![\w/.]){re.escape(old)}(?![\w])", new, log)
    lines: list[str] = []
    for line in log.splitlines():
        while rng.random() < 0.35:
            lines.append(rng.choice(NOISE if rng.random() < 0.7 else WRAPPERS))
        lines.append(line)
    lines += [rng.choice(NOISE) for _ in range(rng.randint(0, 6))]
    return dressed("\n".join(lines) + "\n", rng)


def dressed(log: str, rng: random.Random) -> str:
    """The log as a terminal, docker, a log collector or a quoting person hands it over."""
    way = rng.randrange(9)
    lines = log.split("\n")
    if way == 1:
        return "\r\n".join(lines)
    if way == 2:
        return "\n".join(f"\x1b[31m{line}\x1b[0m" if rng.random() < 0.5 else line for line in lines)
    if way == 3:
        return "\n".join(f"#18 {number / 7 + 0.1:.2f} {line}" for number, line in enumerate(lines))
    if way == 4:
        return "\n".join(
            f"2026-11-30T12:{number // 60 % 60:02}:{number % 60:02}.123456Z {line}" for number, line in enumerate(lines)
        )
    if way == 5:
        return "\n".join(f"> {line}" for line in lines)
    if way == 6:
        return "\n".join(f"Nov 30 12:00:{number % 60:02} node7 slurmstepd[4211]: {line}" for number, line in enumerate(lines))
    if way == 7:
        return "\n".join(re.sub("error:", "\x1b[01;31m\x1b[Kerror:\x1b[m\x1b[K", line) for line in lines)
    return log
