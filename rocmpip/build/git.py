"""Sources from git: https alone, one full commit, no hooks, nothing of the user's git configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from rocmpip.build.firsterror import first_error
from rocmpip.build.run import Log, run_logged
from rocmpip.model.errors import NetworkError, Refused
from rocmpip.model.recipe import Source

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "NETRC", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def git_digest(source: Source) -> str:
    """The source's part of a fingerprint: a commit names its tree, so no byte needs to be fetched."""
    return f"git:{source.url}@{source.commit}"


def fetch_git(
    source: Source,
    folder: Path,
    *,
    env: Mapping[str, str],
    log: Log,
    on_beat: Callable[[str, tuple[int, int] | None], None] | None = None,
    protocols: tuple[str, ...] = ("https",),
) -> Path:
    """Check out ``source.commit`` into ``folder`` (made; must not exist), submodules too when the source says so.

    ``protocols`` are those git may use, also for submodules. Raises Refused for another URL or an abbreviated commit, or
    when git is missing; NetworkError when git fails.
    """
    protocol = source.url.partition("://")[0]
    if protocol not in protocols or any(char in source.url for char in "\0\n\r ") or "::" in source.url:
        raise Refused(f"sources come from git over {' or '.join(protocols)} only, not from {source.url!r}")
    if not _COMMIT.fullmatch(source.commit):
        raise Refused(f"{source.url}: {source.commit!r} is not a full commit", why="a tag or branch can be moved")
    folder.mkdir(parents=True)
    child = {key: env[key] for key in (*_KEPT, *_PROXIES) if key in env}
    child |= {
        "GIT_ALLOW_PROTOCOL": ":".join(protocols),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    safe = ["-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false", "-c", "core.fsmonitor=false"]
    steps = [
        ["init", "-q"],
        ["fetch", "-q", "--depth", "1", source.url, source.commit],
        ["checkout", "-q", "--detach", source.commit],
    ]
    if source.submodules:
        steps.append(["submodule", "update", "-q", "--init", "--recursive", "--depth", "1", "--jobs", "4"])
    for step in steps:
        argv = ["git", *safe, *step]
        log.write(f"rocmpip: {' '.join(argv)}")
        log.flush()
        start = log.path.stat().st_size
        try:
            code = run_logged(argv, env=child, cwd=folder, log=log, on_beat=on_beat)
        except FileNotFoundError:
            raise Refused("git is needed for this source and is not installed", hint="apt-get install git") from None
        if code:
            with log.path.open(encoding="utf-8", errors="replace") as stream:
                stream.seek(start)
                line = first_error(stream)
            raise NetworkError(
                f"{source.url} at {source.commit[:12]} could not be fetched",
                why=log.mask(line),
                hint=f"the full log is in {log.path}",
            )
    return folder
