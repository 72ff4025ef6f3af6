"""How a log ends, which lines are only probes, and which are worth reading when nothing is known."""

from __future__ import annotations

import re

_GOOD = re.compile(
    r"\s{0,8}(?:Successfully (?:installed|built|tagged|uninstalled)\b|Build (?:succeeded|successful|completed?|finished)\b|BUILD SUCCESS"
    r"|Installed \d+ packages?|Finished (?:`|dev|release|processing dependencies)|Created wheel for |Stored in directory: "
    r"|=+ [^=]{0,100}\d+ passed[^=]{0,100} =+|-- Build files have been written|INFO: Build completed successfully"
    r"|\[ ?100%\] (?:Built target|Linking )|-- (?:Installing|Up-to-date): |\+ [\w.-]{1,80}==\S|\*\*\* Created \S{1,200}\.whl|Wrote \S{1,200}\.whl"
    r"|Writing \S{1,200}\.egg-info$|[Bb]uild successful\b|exit 0$|exporting to image|naming to |writing image |Install the project|All checks passed"
    r"|Building wheel for \S+ (?:\([^)]{1,40}\))?(?:: finished with status 'done'| \.\.\. done)|removing build/bdist"
    r"|Complete!$|Setup complete|done in \d+|exit(?:ed with)? (?:code|status)[ :=]+0\b|test result: ok"
    r"|adding '[^']{1,200}\.dist-info/RECORD'|config\.status: (?:creating|executing) |configure: exit 0)"
)
_LAST_STEP = re.compile(r"\[(\d{1,6})/(\d{1,6})\] ")
_BAD = re.compile(
    r"\s{0,12}(?:ERROR\b|error:|Error:|fatal:|FAILED\b|Traceback \(most recent call last\)|ninja: (?:error|build stopped)"
    r"|g?make(?:\[\d+\])?: \*\*\* |subprocess\.CalledProcessError|[\w.]{1,80}(?:Error|Exception): |[^\s:]{1,200}: (?:fatal )?error: "
    r"|CMake Error|[^\s:]{1,200}:\d+(?::\d+)?: (?:fatal )?(?:error|错误|Fehler): )"
)
_BAD_ANYWHERE = (
    "core dumped",
    "Aborted",
    "Segmentation fault",
    "returned non-zero",
    "returned a non-zero",
    "did not run successfully",
    "undefined symbol",
    "cannot open shared object",
    "fatal error: ",
    "errors occurred!",
)
_PROBE = re.compile(
    r"(?:-- |checking |\[aiter\] Current hipcc|configure: (?:WARNING|checking)|Performing C\w* SOURCE FILE Test)"
    r"|[^\n]{0,300}?(?:Performing Test |conftest|CMakeTmp|CMakeScratch|TryCompile|CheckFunctionExists|CheckSymbolExists|_configtest"
    r"|cmTC_[0-9a-f]{3,8}|CMakeFiles/(?:CMakeError|CMakeOutput|CMakeConfigureLog)|testCCompiler|CheckIncludeFile|try_compile)"
)
# What CMake itself says in such a line is no probe's fault.
_VERDICT = re.compile(
    r"-- Configuring incomplete|-- ROCM_PATH environment variable is not set|-- The (?:HIP|CXX|C) compiler identification is unknown"
    r"|-- Check for working HIP compiler: [^\n]{0,300} broken"
)
_OPENS = re.compile(r"configure:\d+: |Run Build Command\(s\):|Performing C\w* SOURCE FILE Test")
_CLOSES = re.compile(
    r"config\.status: |configure: creating|\[ *\d{1,3}%\] |\[\d+/\d+\] (?!.*cmTC_)|CMake (?:Error|Warning)|make(?:\[\d\])?: (?:Entering|\*\*\*)|Traceback"
)
_NOISE = re.compile(
    r"originates from a subprocess|subprocess-exited-with-error|metadata-generation-failed|Failed to build|ninja: build stopped"
    r"|returned non-zero|legacy-install-failure|exit (?:code|status)|failed-wheel-build|Command '\[|_NOT_FOUND|-Werror|error-limit"
    r"|\berror\.(?:o|c|cc|cu|hip|cpp|h|hpp|py)\b|\d+ warnings?|WARNING: |DeprecationWarning|UserWarning|end of output|\b0 errors?\b"
    r"|Traceback \(most|During handling|The above exception|errors generated|error generated|DEPRECATION"
)
_WORTH = (
    "error",
    "fatal",
    "exception:",
    "undefined",
    "cannot open",
    "no such file",
    "not found",
    "killed",
    "aborted",
    "core dumped",
    "错误",
    "fehler",
    "failed",
)
_FIRST = re.compile(r"error: |Error: |fatal|Exception: |undefined|Killed|Aborted|core dumped|错误")
_PACKAGE = re.compile(
    r"(?:satisfies the requirement|[Bb]uilding wheel for|Failed to (?:download and )?build:?|Failed building wheel for) [`'\"]?([A-Za-z][A-Za-z0-9._-]{0,60}?)(?=[`'\"=\s]|$)"
)
MOST = 12


class Probes:
    """Fed line by line; tells the lines of configure scripts that only try whether something is there."""

    def __init__(self) -> None:
        self._inside = False

    def see(self, text: str) -> bool:
        """True when ``text`` is a probe's."""
        if text.startswith(("-- ", "checking ")):
            self._inside = False
            return _VERDICT.match(text) is None
        # autoconf's and CMake's own logs print a test program's command, its errors and its source.
        if _OPENS.match(text):
            self._inside = True
            return True
        if self._inside and _CLOSES.match(text):
            self._inside = False
        return self._inside or _PROBE.match(text) is not None


class Outcome:
    """Fed line by line; knows in the end whether the log ends well and what is worth reading."""

    def __init__(self) -> None:
        self._good = self._bad = 0
        self._first: list[tuple[int, str]] = []
        self._other: list[tuple[int, str]] = []
        self._seen: set[str] = set()
        self.package = ""
        """What was being built, as pip or uv says."""

    def see(self, number: int, text: str, *, probe: bool) -> None:
        if not self.package and ("uild" in text or "satisfies the requirement" in text) and (match := _PACKAGE.search(text)):
            self.package = match[1]
        if _GOOD.match(text) or (text[0] == "[" and _is_last_step(text)):
            self._good = number
        elif not probe and (_BAD.match(text) or any(part in text for part in _BAD_ANYWHERE)):
            self._bad = number
        low = text.lower()
        if not probe and len(self._seen) < 400 and any(word in low for word in _WORTH) and not _NOISE.search(text):
            line = text.strip()[:300]
            if line not in self._seen:
                self._seen.add(line)
                (self._first if _FIRST.search(line) else self._other).append((number, line))

    @property
    def ends_well(self) -> bool:
        """True when a sign of success stands after the last sign of failure."""
        return self._good > self._bad

    @property
    def worth(self) -> tuple[tuple[int, str], ...]:
        """(number, text) of the lines to read when no rule holds: in the log's order, errors before mere mentions."""
        return tuple(sorted([*self._first[:MOST], *self._other[: max(0, MOST - len(self._first))]]))


def _is_last_step(text: str) -> bool:
    """ninja's last step, ``[96/96] Linking …``."""
    match = _LAST_STEP.match(text)
    return match is not None and match.group(1) == match.group(2)
