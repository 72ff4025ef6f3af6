"""The first real error line of a build log: the compiler's or the traceback's, not what wraps it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

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
    r"|unable to execute command: Killed|^Killed$|\(core dumped\)|: Killed\b",
    re.IGNORECASE,
)
_CMAKE = re.compile(r"^CMake Error(?: at [^:]+:\d+)?")
_PYTHON = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failed|NotFound)(?:: .*)?$|^(?:AssertionError|SystemExit)\b"
)
_GENERIC = re.compile(r"^\s*(?:error|ERROR|fatal)\s*:\s*\S", re.IGNORECASE)
_HARMLESS = re.compile(r"0 errors?\b|warning: |-Werror|error-limit|no error", re.IGNORECASE)


@dataclass
class _Found:
    """The first of each kind."""

    memory: str = ""
    compiler: str = ""
    cmake: str = ""
    tracebacks: list[str] = field(default_factory=list)
    generic: str = ""
    last: str = ""


def first_error(lines: Iterable[str]) -> str:
    """The line a person should read first, without escapes; "" when the log is empty.

    Order: a compiler's or linker's error, running out of memory, CMake's error, the traceback's own exception (the first that
    wraps nothing), any other ``error:`` line, the last line.
    """
    found = _Found()
    in_traceback = False
    cmake_pending = False
    for raw in lines:
        line = plain(raw).rstrip()
        text = line.strip().removeprefix("│ ").strip()
        if not text:
            continue
        found.last = text
        if cmake_pending:
            found.cmake, cmake_pending = f"{found.cmake}: {text}", False
        if text.startswith("Traceback (most recent call last)"):
            in_traceback = True
            continue
        wrapper = bool(_WRAPPERS.search(text))
        if in_traceback and _PYTHON.match(text):
            in_traceback = False
            if not wrapper:
                found.tracebacks.append(text)
            continue
        if wrapper:
            continue
        if not found.memory and _MEMORY.search(text):
            found.memory = text
        elif not found.compiler and (_COMPILER.match(text) or _LINE_ERROR.search(text)) and not _probe(text):
            found.compiler = text
        elif not found.cmake and _CMAKE.match(text):
            found.cmake, cmake_pending = text.rstrip(":"), text.endswith(":")
        elif not found.generic and _GENERIC.match(text) and not _HARMLESS.search(text):
            found.generic = text
    first_traceback = found.tracebacks[0] if found.tracebacks else ""
    return found.compiler or found.memory or found.cmake or first_traceback or found.generic or found.last


def out_of_memory(line: str) -> bool:
    """True when the line says that the machine (or a limit) ran out of memory."""
    return bool(_MEMORY.search(line))


_PROBE = re.compile(
    r"(?:^|/)tmp\w*/(?:tmp|cc)\w+(?:/\w+)?\.c\w*:|conftest|CMakeTmp|CMakeScratch|TryCompile|_configtest|<stdin>"
)


def _probe(text: str) -> bool:
    """Errors of small test programs that configure scripts compile on purpose."""
    return bool(_PROBE.search(text))
