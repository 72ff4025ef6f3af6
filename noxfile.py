"""Sessions: ``nox -l`` lists them. Tests run on every supported Python that is present."""

from __future__ import annotations

import nox

nox.needs_version = ">=2024.10"
nox.options.sessions = ["tests", "lint", "types", "docs"]
nox.options.error_on_missing_interpreters = False

PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The test suite; arguments after -- go to pytest."""
    session.install("-e", ".[test]")
    session.run("pytest", *(session.posargs or ["-n", "2"]))


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, and the import law."""
    session.install("-e", ".[lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict."""
    session.install("-e", ".[test,lint]")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """The generated pages are as the code says, and the examples in the documentation run."""
    session.install("-e", ".[test]")
    session.run("python", "docs/generate.py", "--check")
    session.run("pytest", "tests/docs")


@nox.session
def demo(session: nox.Session) -> None:
    """The demo, as a newcomer runs it."""
    session.install(".")
    session.run("rocmpip", "demo")
