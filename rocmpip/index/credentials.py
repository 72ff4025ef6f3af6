"""User and password for a URL, found where pip finds them: the index URL, netrc, keyring.

Credentials live in memory only, with one exception: :func:`private_netrc`, a file of mode 0600 in a folder of ours, which lets
pip's child fetch files by links that hold no credentials.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

from rocmpip.index.address import parse_address, split_userinfo
from rocmpip.model.request import IndexOptions

Userinfo = tuple[str, str]
Ask = Callable[[str], "Userinfo | None"]


class Credentials:
    """Safe for threads. ``sources`` are the URLs that a person wrote, credentials included."""

    def __init__(
        self, options: IndexOptions, env: Mapping[str, str], sources: Iterable[str] = (), ask: Ask | None = None
    ) -> None:
        """``ask`` puts the question to a person, host and port → an answer or None. Never called with --no-input."""
        self._env = env
        self._ask = None if options.no_input else ask
        self._asking = threading.Lock()
        self._answered: set[str] = set()
        self._provider = options.keyring_provider
        self._no_input = options.no_input
        self._lock = threading.Lock()
        self._known: list[tuple[tuple[str, str, int], str, Userinfo]] = []
        """Origin, path prefix, credentials, from URLs."""
        self._ring: dict[tuple[str, str, int], Userinfo] = {}
        """From keyring: it is asked after a 401 only, so what it says is better than what was sent."""
        self._asked_keyring: set[str] = set()
        self._netrc: dict[str, Userinfo] | None = None
        for url in (options.index_url, *options.extra_index_urls, *options.find_links, *sources):
            self.learn(url)

    def learn(self, url: str) -> str:
        """Remember what ``url`` holds; the URL without credentials."""
        bare, userinfo = split_userinfo(url)
        if userinfo is not None:
            self.remember(bare, userinfo)
        return bare

    def remember(self, url: str, userinfo: Userinfo) -> None:
        try:
            address = parse_address(url)
        except ValueError:
            return
        row = (address.origin, address.target, userinfo)
        with self._lock:
            if row not in self._known:
                self._known.append(row)

    def of(self, url: str) -> Userinfo | None:
        """What to send with the first request for ``url`` (without asking keyring, unless keyring was asked for by name)."""
        found = self.written(url) or self._from_netrc(url)
        if found is None and self._provider in ("import", "subprocess"):
            found = self.from_keyring(url)
        return found

    def written(self, url: str) -> Userinfo | None:
        """From a URL of the same origin that a person wrote, or from keyring: the one with the longest common path."""
        try:
            address = parse_address(url)
        except ValueError:
            return None
        with self._lock:
            if address.origin in self._ring:
                return self._ring[address.origin]
            rows = [row for row in self._known if row[0] == address.origin]
        best, most = None, -1
        for _, path, userinfo in rows:
            common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, address.target, strict=False)))
            if common > most:
                best, most = userinfo, common
        if best is not None and best[1] == "":
            # A user without a password: netrc or keyring may have the rest; else it is a token.
            return self._from_netrc(url, user=best[0]) or best
        return best

    def _from_netrc(self, url: str, user: str = "") -> Userinfo | None:
        if self._netrc is None:
            self._netrc = read_netrc(self._env)
        host = urlsplit(url).hostname or ""
        found = self._netrc.get(host) or self._netrc.get("default")
        return found if found and (not user or found[0] == user) else None

    def from_keyring(self, url: str) -> Userinfo | None:
        """Ask keyring once per host, after a 401. Never with --no-input unless a provider was named, since keyring may prompt."""
        if self._provider == "disabled" or (self._provider == "auto" and self._no_input):
            return None
        try:
            address = parse_address(url)
        except ValueError:
            return None
        with self._lock:
            if address.authority in self._asked_keyring:
                return None
            self._asked_keyring.add(address.authority)
        user = (self.written(url) or ("", ""))[0]
        for service in (f"{address.scheme}://{address.authority}/", address.authority):
            found = self._ask_keyring(service, user)
            if found is not None:
                with self._lock:
                    self._ring[address.origin] = found
                return found
        return None

    def from_person(self, url: str, sent: Userinfo | None) -> Userinfo | None:
        """Ask once per host, after a 401 to what was ``sent``. Others wait for the answer and get it too."""
        if self._ask is None:
            return None
        try:
            address = parse_address(url)
        except ValueError:
            return None
        with self._asking:
            now = self.of(url)
            if now is not None and now != sent:
                return now
            if address.authority in self._answered:
                return None
            self._answered.add(address.authority)
            found = self._ask(address.authority)
            if found is not None:
                with self._lock:
                    self._ring[address.origin] = found
            return found

    def _ask_keyring(self, service: str, user: str) -> Userinfo | None:
        if self._provider in ("auto", "import"):
            try:
                import keyring

                got = keyring.get_credential(service, user or None)
                return (got.username, got.password) if got is not None and got.password else None
            except ImportError:
                pass
            except Exception:  # a back end that fails means no credentials, whatever it raises
                return None
        if self._provider in ("auto", "subprocess"):
            return self._keyring_program(service, user or "__token__")
        return None

    def _keyring_program(self, service: str, user: str) -> Userinfo | None:
        import shutil
        import subprocess

        program = shutil.which("keyring", path=self._env.get("PATH"))
        if program is None:
            return None
        try:
            done = subprocess.run(
                [program, "get", service, user],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**self._env, "PYTHONIOENCODING": "utf-8"},
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        password = done.stdout.decode("utf-8", "replace").strip("\r\n")
        return (user, password) if done.returncode == 0 and password else None


def netrc_path(env: Mapping[str, str]) -> Path | None:
    """NETRC, else ~/.netrc, else ~/_netrc: the first that exists."""
    if named := env.get("NETRC"):
        return Path(named) if Path(named).is_file() else None
    home = env.get("HOME")
    for name in (".netrc", "_netrc"):
        if home and (Path(home) / name).is_file():
            return Path(home) / name
    return None


def read_netrc(env: Mapping[str, str]) -> dict[str, Userinfo]:
    """Machine → credentials. A file that cannot be read or parsed counts as empty, as it does for pip."""
    path = netrc_path(env)
    if path is None:
        return {}
    import netrc

    try:
        rows = netrc.netrc(str(path)).hosts
    except (netrc.NetrcParseError, OSError, UnicodeError):
        return {}
    return {host: (row[0] or row[1] or "", row[2] or "") for host, row in rows.items()}


def _words(row: Userinfo, quotes: bool) -> str | None:
    """``login … password …``; None for what a netrc cannot say (line ends; before Python 3.11 spaces and empty words)."""
    words = []
    for text in row:
        if "\n" in text or "\r" in text or (not quotes and (not text or any(char.isspace() for char in text))):
            return None
        if quotes and (not text or text.startswith("#") or any(char.isspace() or char in '"\\' for char in text)):
            text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        words.append(text)
    return f"login {words[0]} password {words[1]}"


def private_netrc(
    folder: Path,
    options: IndexOptions,
    env: Mapping[str, str],
    hosts: Iterable[str] | None = None,
    *,
    quotes: bool = sys.version_info >= (3, 11),
) -> Path | None:
    """Write ``folder/netrc`` (mode 0600): the user's own machines, and those of index URLs with credentials.

    ``hosts``: only these host names (None: all). A URL's credentials win over the user's netrc, as in pip. None when no
    URL holds credentials: pip then reads the user's own file. ``quotes``: the Python that will read it knows quoted words
    (3.11 and later); without them credentials with spaces are left out, since one bad word would make the whole file void.
    """
    wanted = None if hosts is None else set(hosts)
    ours: dict[str, Userinfo] = {}
    for url in (options.index_url, *options.extra_index_urls, *options.find_links):
        bare, userinfo = split_userinfo(url)
        host = urlsplit(bare).hostname
        if userinfo is not None and host and (wanted is None or host in wanted):
            ours.setdefault(host, userinfo)
    if not ours:
        return None
    rows = {**read_netrc(env), **ours}
    default = rows.pop("default", None)
    lines = [f"machine {host} {words}" for host, row in rows.items() if (words := _words(row, quotes))]
    if default and (words := _words(default, quotes)):
        lines.append(f"default {words}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "netrc"
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")
    return path
