"""The first real error line: the compiler's or the exception's, never pip's, ninja's or make's wrapping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.build.firsterror import first_error, out_of_memory

NINJA = """
[1/2] /opt/rocm/bin/hipcc -I/x -c a.hip -o a.o
FAILED: [code=1] a.o
/opt/rocm/bin/hipcc -I/x -c a.hip -o a.o
a.hip:3:10: fatal error: 'missing.h' file not found
#include <missing.h>
1 error generated when compiling for gfx90a.
ninja: build stopped: subcommand failed.
Traceback (most recent call last):
  File "cpp_extension.py", line 2595, in _run_ninja_build
    subprocess.run(
subprocess.CalledProcessError: Command '['ninja', '-v', '-j', '2']' returned non-zero exit status 1.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "<string>", line 2, in <module>
RuntimeError: Error compiling objects for extension
error: subprocess-exited-with-error
  × Building wheel for x (pyproject.toml) did not run successfully.
  │ exit code: 1
  ╰─> [12 lines of output]
      [end of output]
  ERROR: Failed building wheel for x
ERROR: Failed to build one or more wheels
"""

METADATA = """
  Preparing metadata (pyproject.toml): started
  error: subprocess-exited-with-error
      Traceback (most recent call last):
        File "setup.py", line 300, in <module>
      AssertionError: One of GPU archs of ['gfx1100'] is invalid or not supported
  note: This error originates from a subprocess, and is likely not a problem with pip.
error: metadata-generation-failed
"""


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (NINJA, "a.hip:3:10: fatal error: 'missing.h' file not found"),
        (METADATA, "AssertionError: One of GPU archs of ['gfx1100'] is invalid or not supported"),
        ("x.cpp: In function:\nx.cpp:7:5: error: 'foo' was not declared\nx.cpp:9:5: error: second\n", "x.cpp:7:5: error: 'foo' was not declared"),
        ("c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n", "c++: fatal error: Killed signal terminated program cc1plus"),
        ("clang: error: unable to execute command: Killed\nclang: error: clang frontend command failed due to signal\n", "clang: error: unable to execute command: Killed"),
        ("clang-15: error: cannot find ROCm device library; provide its path\n", "clang-15: error: cannot find ROCm device library; provide its path"),
        ("lld: error: undefined hidden symbol: foo\nninja: build stopped\n", "lld: error: undefined hidden symbol: foo"),
        ("/usr/bin/ld: cannot find -lamdhip64: No such file\ncollect2: error: ld returned 1 exit status\n", "/usr/bin/ld: cannot find -lamdhip64: No such file"),
        ("CMake Error at CMakeLists.txt:5 (find_package):\n  Could not find hipblas\n-- Configuring incomplete\n", "CMake Error at CMakeLists.txt:5 (find_package): Could not find hipblas"),
        ("Traceback (most recent call last):\n  x\nModuleNotFoundError: No module named 'torch'\nTraceback (most recent call last):\nRuntimeError: later\n", "ModuleNotFoundError: No module named 'torch'"),
        ("error: option --use-rocm not recognized\nerror: subprocess-exited-with-error\n", "error: option --use-rocm not recognized"),
        ("ERROR: Could not find a version that satisfies the requirement nope\nERROR: No matching distribution found for nope\n", "ERROR: Could not find a version that satisfies the requirement nope"),
        ("\x1b[31ma.cu:1:2: error: \x1b[0mbad\n", "a.cu:1:2: error: bad"),
        ("all fine\nlast words\n", "last words"),
        ("", ""),
    ],
)  # fmt: skip
def test_first_error(log: str, expected: str) -> None:
    assert first_error(log.splitlines()) == expected


def test_a_probe_that_may_fail_is_not_the_error() -> None:
    log = ["/tmp/tmpabc123/a.c:1:10: fatal error: libaio.h: No such file or directory", "op.cpp:5:1: error: real one"]
    assert first_error(log) == "op.cpp:5:1: error: real one"
    assert first_error(log[:1]) == log[0], "alone it is better than nothing"


@pytest.mark.parametrize(
    ("line", "memory"),
    [
        ("c++: fatal error: Killed signal terminated program cc1plus", True),
        ("virtual memory exhausted: Cannot allocate memory", True),
        ("LLVM ERROR: out of memory", True),
        ("a.cpp:1:1: error: no", False),
        ("Segmentation fault (core dumped)", False),
    ],
)
def test_out_of_memory(line: str, memory: bool) -> None:
    assert out_of_memory(line) is memory


@given(st.lists(st.text(max_size=80), max_size=30))
def test_any_lines(lines: list[str]) -> None:
    answer = first_error(lines)
    assert "\x1b" not in answer and "\n" not in answer
