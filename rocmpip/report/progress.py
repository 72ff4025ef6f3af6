"""One line that tells how far a long job is: rewritten in place on a terminal, one line a stage elsewhere."""

from __future__ import annotations

import shutil
import sys

from rocmpip.model.redact import redact
from rocmpip.report.say import printable, step

_STAGES = {
    "unpack": "unpacking the source",
    "requirements": "installing its build requirements beside it",
    "compile": "compiling",
    "examine": "examining the wheel",
}


def duration(seconds: float) -> str:
    """``75`` → ``1:15``; hours when there are some."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    text = f"{rest // 60}:{rest % 60:02d}"
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else text


def moment(subject: str, stage: str, elapsed: float, done: int, total: int, expected: float | None) -> str:
    """``flash-attn 2.8.3: compiling [12/345] 1:15 of about 20:00``."""
    words = [f"{subject}: {_STAGES.get(stage, stage)}"]
    if total:
        words.append(f"[{done}/{total}]")
    words.append(duration(elapsed))
    left = _left(elapsed, done, total, expected)
    if left is not None:
        words.append(f"(about {duration(left)} to go)")
    return " ".join(words)


def _left(elapsed: float, done: int, total: int, expected: float | None) -> float | None:
    """From earlier builds when known, else from ninja's count once a tenth is done."""
    if expected is not None and expected > elapsed:
        return expected - elapsed
    if total and done * 10 >= total and done < total and elapsed > 30:
        return elapsed * (total - done) / done
    return None


class ProgressLine:
    """Call ``tell`` with each moment, ``close`` at the end (it clears the line)."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self._live = sys.stderr.isatty()
        self._stage = ""
        self._drawn = False

    def tell(self, stage: str, elapsed: float, done: int, total: int, expected: float | None, line: str = "") -> None:
        """``line`` is the last line of output; it follows the moment where there is room."""
        text = moment(self.subject, stage, elapsed, done, total, expected)
        if not self._live:
            if stage != self._stage:
                self._stage = stage
                step(text.removesuffix(f" {duration(elapsed)}") if elapsed < 1 else text)
            return
        width = shutil.get_terminal_size().columns - 1
        shown = redact(printable(f"{text}  {line}" if line else text)).replace("\t", " ").replace("\n", " ")
        self._write(f"\r\x1b[2K{shown[:width]}")
        self._drawn = True

    def close(self) -> None:
        if self._drawn:
            self._write("\r\x1b[2K")
            self._drawn = False

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._live = False
