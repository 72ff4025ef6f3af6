"""The error base and its code table.

Tree::

    RocmpipError
    ├── UsageError            2    the command line is wrong
    ├── InputError            1    what pip itself refuses, in pip's words
    ├── InternalError         1    a fault of ours, told without a traceback
    ├── NoPlan               40    nothing fits, or a conflict that involves the torch family
    ├── BuildFailed          41    a build failed, or its wheel is not what was asked for
    ├── NetworkError         42    an index or a download could not be had
    ├── CheckFailed          43    a check (doctor, verify, lock --check) found a fault
    ├── Refused              44    a recipe or a policy says no
    ├── BadConfiguration     45    a recipe, a settings file or a ROCMPIP_ variable is wrong
    └── Interrupted     130/143    Ctrl-C or SIGTERM

Every error says what happened (``message``), why (``why``) and what to do next (``hint``), in that order.
"""

from __future__ import annotations


class RocmpipError(Exception):
    """Base of all errors that a user may see. ``exit_code`` is the process's exit code and ``errors[].code`` in JSON."""

    exit_code = 1
    slug = "error"
    meaning = "something went wrong"
    finding: object | None = None
    """What the rules found in a log of it (diagnose's Finding), for the journal."""
    evidence = ""
    """The line of that log that tells most, where the rules know no cause."""

    def __init__(self, message: str, *, why: str = "", hint: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.why = why
        self.hint = hint
        self.details = details

    def as_json(self) -> dict[str, object]:
        """One row of ``errors[]``: ``code`` (int), ``message``, ``hint``, and the slug as ``name``."""
        message = self.message if not self.why else f"{self.message}: {self.why}"
        row: dict[str, object] = {"code": self.exit_code, "message": message, "hint": self.hint, "name": self.slug}
        if self.details:
            row["details"] = list(self.details)
        return row


class UsageError(RocmpipError):
    exit_code = 2
    slug = "usage"
    meaning = "the command line is wrong"
    words: tuple[str, ...] = ()
    """The option, and its value, with which pip itself would refuse the command; empty where the option is ours."""


class InputError(RocmpipError):
    exit_code = 1
    slug = "input"
    meaning = "an input that pip refuses too: a missing or broken requirement file, a name that is no requirement"


class InternalError(RocmpipError):
    exit_code = 1
    slug = "internal"
    meaning = "a fault of rocmpip itself; the details are in a file that the message names"


class NoPlan(RocmpipError):
    exit_code = 40
    slug = "no-plan"
    meaning = "nothing fits this machine and request, or a conflict involves the torch family"


class BuildFailed(RocmpipError):
    exit_code = 41
    slug = "build-failed"
    meaning = "a build failed, or the wheel it made is not what was asked for"


class NetworkError(RocmpipError):
    exit_code = 42
    slug = "network"
    meaning = "an index or a download could not be had"
    about_page = False
    """The page of a project on an index could not be had, rather than a file."""


class CheckFailed(RocmpipError):
    exit_code = 43
    slug = "check-failed"
    meaning = "a check (doctor, verify, lock --check, wheelhouse verify) found a fault"


class Refused(RocmpipError):
    exit_code = 44
    slug = "refused"
    meaning = "a recipe or a policy refuses, or a tool that a build needs is missing"


class BadConfiguration(RocmpipError):
    exit_code = 45
    slug = "bad-configuration"
    meaning = "a recipe, a catalogue override, a settings file or a ROCMPIP_ variable is wrong"


class Interrupted(RocmpipError):
    exit_code = 130
    slug = "interrupted"
    meaning = "stopped by Ctrl-C (130) or SIGTERM (143)"


CODES: tuple[type[RocmpipError], ...] = (
    UsageError,
    InputError,
    InternalError,
    NoPlan,
    BuildFailed,
    NetworkError,
    CheckFailed,
    Refused,
    BadConfiguration,
    Interrupted,
)
"""The code table: the generated reference page and its check in CI read it."""
