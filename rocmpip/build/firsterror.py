"""The first real error line of a build log: the compiler's or the traceback's, not what wraps it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmpip.build.run import plain

# Lines that only say that something below them failed: pip, setuptools, ninja, make, cmake.
_WRAPPERS = re.compile(
    r"subprocess-exited-with-error|subprocess\.CalledProcessError|Error compiling objects|did not run successfully"
    r"|ninja: build stopped|ninja: error: .*rebuilding|FAILED: |Failed (?:building wheel|to build)|Could not build wheels"
    r"|metadata-generation-failed|Encountered error while|failed with exit (?:code|status)|returned (?:a )?non-zero exit"
    r"|make(?:\[\d+\])?: \*\*\*|make: .*Error|Preparing metadata|Building wheel|process didn't exit successfully"
    r"|command ['\"].*['\"] failed|failed to build (?:bundled|extension)|gmake|exit code: \d+"
    r"|During handling of the above|The above exception was|note: This error originates|CMake configuration failed",
    re.IGNORECASE,
)
# file:line:column: error: … as clang, gcc, hipcc and nvcc write it; ld's and the driver's own complaints.
_COMPILER = re.compile(r"^(?:In file .*)?[^\s:][^:]*:\d+(?::\d+)?: (?:fatal )?error: ", re.IGNORECASE)
_LINE_ERROR = re.compile(
    r"(?:^|\s)(?:clang(?:\+\+)?(?:-\d+)?|hipcc|g\+\+|gcc|c\+\+|cc1plus|cc1|collect2|lld|ld\.lld|amdclang\+\+|ld|\S*/ld|\S+\.o)\s?: "
    r"(?:fatal )?error: |undefined reference to|ld: cannot find|/ld: .*(?:cannot|error)|LLVM ERROR|fatal error: |nvcc fatal"
    r"|error: (?:cannot find ROCm|invalid target ID|unknown argument|unable to execute command)"
)
_MEMORY = re.compile(
    r"Killed signal terminated program|virtual memory exhausted|out of memory|std::bad_alloc|Cannot allocate memory|MemoryError"
    r"|unable to execute command: Killed|^Killed$|: Killed\b",
    re.IGNORECASE,
)
_CMAKE = re.compile(r"^CMake Error(?: at [^:]+:\d+)?")
_PYTHON = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failed|NotFound)(?:: .*)?$|^(?:AssertionError|SystemExit)\b"
)
_GENERIC = re.compile(r"^\s*(?:error|ERROR|fatal)\s*:\s*\S", re.IGNORECASE)
_HARMLESS = re.compile(r"0 errors?\b|warning: |-Werror|error-limit|no error", re.IGNORECASE)


# Small test programs that configure scripts compile, expecting some to fail.
_PROBE = re.compile(
    r"(?:^|/)tmp\w*/(?:tmp|cc)\w+(?:/\w+)?\.c\w*:|conftest|CMakeTmp|CMakeScratch|TryCompile|_configtest|<stdin>"
)

_MOST_TELLING = "compiler", "memory", "tool", "cmake", "traceback", "exception", "generic", "probe", "last"
"""Kinds of lines, the most telling first."""


def first_error(lines: Iterable[str]) -> str:
    """The line a person should read first, without escapes; "" when the log is empty.

    Order: the first error that a compiler gives with its place in a source; running out of memory; the first error of a
    compiler driver or linker; CMake's; the first traceback's exception that wraps nothing; a line that looks like one; any
    other ``error:`` line; an error in a configuration probe; the last line.
    """
    found: dict[str, str] = {}
    in_traceback = False
    cmake_pending = False
    for raw in lines:
        text = plain(raw).strip().removeprefix("│ ").strip()
        if not text or text == "[end of output]":
            continue
        if cmake_pending:
            found["cmake"], cmake_pending = f"{found['cmake']}: {text}", False
        if text.startswith("Traceback (most recent call last)"):
            in_traceback = True
            continue
        wrapper = bool(_WRAPPERS.search(text))
        kind = "last" if wrapper else _kind(text, in_traceback)
        if _PYTHON.match(text):
            in_traceback = False
        if kind == "last":
            if not wrapper:
                found["last"] = text
        elif kind not in found:
            found[kind] = text.rstrip(":") if kind == "cmake" else text
            cmake_pending = kind == "cmake" and text.endswith(":")
    return next((found[kind] for kind in _MOST_TELLING if kind in found), "")


def _kind(text: str, in_traceback: bool) -> str:
    is_compiler = bool(_COMPILER.match(text))
    if (is_compiler or _LINE_ERROR.search(text)) and _PROBE.search(text):
        return "probe"
    if is_compiler:
        return "compiler"
    if _MEMORY.search(text):
        return "memory"
    if _LINE_ERROR.search(text):
        return "tool"
    if _CMAKE.match(text):
        return "cmake"
    if _PYTHON.match(text):
        return "traceback" if in_traceback else "exception"
    if _GENERIC.match(text) and not _HARMLESS.search(text):
        return "generic"
    return "last"


def out_of_memory(line: str) -> bool:
    """True when the line says that the machine (or a limit) ran out of memory."""
    return bool(_MEMORY.search(line))
