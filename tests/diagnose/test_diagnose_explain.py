"""A failed build of ours: the first cause with its commands, fitted to the machine, in the error and in the journal."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rocmpip.app.act import Outcome, pip_failed
from rocmpip.app.builds import run_build
from rocmpip.app.explain import CauseReader, explain, full_places
from rocmpip.app.notebook import remember_failure, remember_success
from rocmpip.model.errors import BuildFailed
from rocmpip.model.machine import Platform
from rocmpip.model.rocm import parse_rocm
from rocmpip.store.journal import Journal

PLATFORM = Platform((), ("gfx1100",), "test", parse_rocm("6.4.1"), "/opt/rocm-6.4.1", "test", ())
KILLED = "[3/9] /opt/rocm/bin/hipcc x.hip\nclang++: error: unable to execute command: Killed\nninja: build stopped: subcommand failed.\n"


def read(tmp_path: Path, text: str, package: str = "mamba-ssm") -> tuple[CauseReader, str | None]:
    log = tmp_path / "x.log"
    log.write_text(text)
    reader = CauseReader(PLATFORM, "2.9.1+rocm6.4", package)
    return reader, reader(str(log))


def test_the_cause_comes_with_commands_for_this_package(tmp_path: Path) -> None:
    reader, cause = read(tmp_path, KILLED)
    assert cause is not None and cause.startswith("clang++: error: unable to execute command: Killed (")
    problem = BuildFailed("mamba-ssm 1.0 could not be built", why=cause)
    explain(problem, reader)
    assert "do: rocmpip install --jobs 2 mamba-ssm" in problem.details
    assert problem.as_json()["details"] == list(problem.details)


def test_the_commands_name_this_machines_rocm(tmp_path: Path) -> None:
    log = "clang-17: error: cannot find ROCm device library; provide its path via '--rocm-path'\n"
    reader, _ = read(tmp_path, log)
    assert reader.found is not None
    assert any("/opt/rocm-6.4.1" in command for command in reader.found.fix)


def test_an_unknown_failure_gets_no_invented_cause(tmp_path: Path) -> None:
    reader, cause = read(tmp_path, "x.c:3:1: error: expected ';' before '}' token\nninja: build stopped\n")
    assert cause is None and reader.found is None
    problem = BuildFailed("x could not be built")
    explain(problem, reader)
    assert problem.details == () and problem.finding is None
    assert CauseReader(PLATFORM, "", "x")(str(tmp_path / "missing.log")) is None


def test_run_build_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "build.log"
    log.write_text(KILLED)

    def fails(package: Any, tools: Any, **_: Any) -> None:
        raise BuildFailed("template 1.0 could not be built", why=tools.diagnose(str(log)))

    from rocmpip.app import builds

    monkeypatch.setattr(builds, "build_package", fails)
    monkeypatch.setattr(builds, "replace", lambda tools, diagnose: SimpleNamespace(diagnose=diagnose))
    package = SimpleNamespace(name="mamba-ssm", version="1.0", recipe=SimpleNamespace(name="template"))
    tools = SimpleNamespace(platform=PLATFORM, torch="2.9.1+rocm6.4")
    with pytest.raises(BuildFailed) as caught:
        run_build(cast(Any, package), cast(Any, tools))
    assert caught.value.message.startswith("mamba-ssm 1.0") and "memory" in caught.value.why
    assert any(row.startswith("do: ") for row in caught.value.details)


def test_the_journal_gets_the_diagnosis_and_later_what_mended_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader, cause = read(tmp_path, KILLED)
    problem = BuildFailed("mamba-ssm 1.0 could not be built", why=cause or "")
    explain(problem, reader)
    context: Any = SimpleNamespace(
        env={"HOME": str(tmp_path), "ROCMPIP_STATE_DIR": str(tmp_path / "state")},
        settings=SimpleNamespace(state_dir=str(tmp_path / "state")),
        platform=PLATFORM,
        installed=(),
        target=SimpleNamespace(version="3.12.1"),
    )
    facts = {"command": "build", "package": "mamba-ssm", "torch": "2.9.1+rocm6.4"}
    remember_failure(context, problem, version="1.0", **facts)
    assert capsys.readouterr().err == ""
    (entry,) = Journal(str(tmp_path / "state")).entries()
    assert (entry.diagnosis, entry.family) == ("build-out-of-memory", "host-toolchain")
    assert entry.fix and entry.gfx == ("gfx1100",) and entry.rocm == "6.4.1" and not entry.worked
    remember_failure(context, problem, version="1.0", **facts)
    assert "this looks like mamba-ssm" in capsys.readouterr().err
    remember_success(context, version="1.1", **facts)
    assert "what failed before works now" in capsys.readouterr().err
    assert all(one.worked for one in Journal(str(tmp_path / "state")).entries())


def test_a_full_disk_is_named_when_pip_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=0 if place == "/full" else 10**12))
    assert full_places(["/full", "/roomy", "/full"]) == ["/full"]
    problem = pip_failed(Outcome(code=1), places=["/full"])
    assert "no room left in /full" in problem.why and "TMPDIR" in problem.hint and problem.exit_code == 1
    assert "room" not in pip_failed(Outcome(code=1), places=["/roomy"]).why
