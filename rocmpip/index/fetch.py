"""Requests that end in an answer or in one NetworkError: redirects, credentials, retries and waits."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TypeVar

from rocmpip.index.address import Address, is_loopback, parse_address, trusts
from rocmpip.index.credentials import Credentials
from rocmpip.index.limits import Deadline, Limits
from rocmpip.index.pool import Pool
from rocmpip.index.response import Response
from rocmpip.index.wire_errors import Malformed, WireError
from rocmpip.model.errors import NetworkError
from rocmpip.model.record import Struct
from rocmpip.model.redact import EXAMPLE, redact

_T = TypeVar("_T")
_AGAIN = frozenset((429, 500, 502, 503, 504, 520, 524, 527))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class Answer(Struct, frozen=True):
    """A whole answer. ``url`` is where it came from after redirects."""

    status: int
    headers: dict[str, str]
    body: bytes
    url: str


class Fetcher:
    """Safe for threads. ``subject`` in the methods is what the request is for, in a person's words: "the page of torch"."""

    def __init__(
        self,
        pool: Pool,
        credentials: Credentials,
        limits: Limits,
        *,
        retries: int,
        trusted_hosts: tuple[str, ...] = (),
        offline: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.credentials = credentials
        self.limits = limits
        self.offline = offline
        self._pool = pool
        self._retries = max(0, retries)
        self._trusted = trusted_hosts
        self._sleep = sleep

    def secure(self, url: str) -> bool:
        """As in pip: https, loopback, or a host named by --trusted-host. pip ignores all other places."""
        try:
            address = parse_address(url)
        except ValueError:
            return url.startswith("file:")
        return address.scheme == "https" or is_loopback(address.host) or self.trusted(url)

    def trusted(self, url: str) -> bool:
        try:
            address = parse_address(url)
        except ValueError:
            return False
        return trusts(self._trusted, address.host, address.port)

    def read(
        self, url: str, *, subject: str, most: int, headers: dict[str, str] | None = None, seconds: float | None = None
    ) -> Answer:
        """The whole answer, whatever its final status below 500 (but 401, 407 and 429 raise). Retried within the limits."""
        deadline = Deadline(self.limits.page_seconds if seconds is None else seconds)

        def once() -> Answer:
            with self._followed(url, headers or {}, deadline, subject) as response:
                # An error's body is of no use: a small one is read to keep the connection, a large one drops it.
                body = response.read(most) if response.status < 400 else _rest(response)
                return Answer(response.status, response.headers, body, response.url)

        return self._tried(once, url, subject, deadline)

    def question(self, url: str, headers: dict[str, str]) -> tuple[Address, dict[str, str]] | None:
        """What goes onto the wire to ask for ``url``, credentials included; None for what must not or cannot be asked."""
        if self.offline or not self.secure(url):
            return None
        try:
            address = parse_address(self.credentials.learn(url))
        except ValueError:
            return None
        userinfo = self.credentials.of(address.url)
        return address, {**headers, "Authorization": _basic(userinfo)} if userinfo else headers

    @contextmanager
    def opened(
        self,
        url: str,
        *,
        subject: str,
        seconds: float,
        headers: dict[str, str] | None = None,
        method: str = "GET",
        retries: int | None = None,
    ) -> Iterator[Response]:
        """An answer whose body the caller reads; only what comes before the body is retried."""
        deadline = Deadline(min(self.limits.page_seconds, seconds))

        def once() -> _Open:
            manager = self._followed(url, headers or {}, deadline, subject, method)
            return _Open(manager, manager.__enter__())

        held = self._tried(once, url, subject, deadline, retries)
        held.response.allow(seconds)
        try:
            yield held.response
        finally:
            held.manager.__exit__(None, None, None)

    @contextmanager
    def _followed(
        self, url: str, headers: dict[str, str], deadline: Deadline, subject: str, method: str = "GET"
    ) -> Iterator[Response]:
        seen: set[str] = set()
        asked_keyring = False
        here = url
        while True:
            try:
                address = parse_address(self.credentials.learn(here))
            except ValueError as problem:
                raise Malformed(str(problem), final=True) from None
            userinfo = self.credentials.of(address.url)
            extra = {"Authorization": _basic(userinfo)} if userinfo else {}
            response = self._pool.open(address, {**headers, **extra}, deadline, method)
            response.url = address.url
            try:
                if response.status in _REDIRECTS and (there := response.headers.get("location")):
                    _rest(response)
                    here = self._next(address, there, seen)
                    continue
                if response.status == 401 and not asked_keyring:
                    asked_keyring = True
                    if self.credentials.from_keyring(address.url) is not None:
                        _rest(response)
                        continue
                if response.status == 401:
                    began = time.monotonic()
                    answer = self.credentials.from_person(address.url, userinfo)
                    deadline.at += time.monotonic() - began  # a person may think as long as he likes
                    if answer is not None:
                        _rest(response)
                        continue
                if response.status == 401:
                    raise _unauthorised(subject, address, sent=bool(extra))
                if response.status in _AGAIN or response.status >= 500:
                    raise _Busy(response.status, _retry_after(response.headers.get("retry-after")))
                yield response
                return
            finally:
                response.close()

    def _next(self, address: Address, there: str, seen: set[str]) -> str:
        from urllib.parse import urljoin

        try:
            url = urljoin(address.url, there)
        except ValueError:
            raise Malformed("the server redirects to a broken URL", final=True) from None
        seen.add(address.url)
        if url in seen:
            raise Malformed("the server redirects in a circle", final=True)
        if len(seen) > self.limits.redirects:
            raise Malformed(f"the server redirects more than {self.limits.redirects} times", final=True)
        if address.scheme == "https" and not self.secure(url):
            raise Malformed("the server redirects from https to plain http", final=True)
        return url

    def _tried(self, once: Callable[[], _T], url: str, subject: str, deadline: Deadline, retries: int | None = None) -> _T:
        most = self._retries if retries is None else retries
        if self.offline:
            raise NetworkError(
                f"{subject} is not in the cache, and rocmpip is offline", why=redact(url), hint="run it once without --offline"
            )
        tries = 0
        while True:
            try:
                return once()
            except WireError as problem:
                tries += 1
                wait = self._wait(problem, tries)
                if problem.final or tries > most or wait is None or not _fits(wait, deadline):
                    raise self._told(problem, url, subject, tries) from None
            self._sleep(wait)

    def pause(self, tries: int) -> None:
        """Wait before the next try, longer each time."""
        self._sleep(self._backoff(tries))

    def _backoff(self, tries: int) -> float:
        # A little chance keeps many processes from knocking in step.
        chance = 0.75 + os.urandom(1)[0] / 1024
        return min(self.limits.backoff * 2.0 ** (tries - 1), self.limits.backoff_most) * chance

    def _wait(self, problem: WireError, tries: int) -> float | None:
        asked = problem.after if isinstance(problem, _Busy) else None
        if asked is not None:
            return asked if asked <= self.limits.retry_after else None
        return self._backoff(tries)

    def _told(self, problem: WireError, url: str, subject: str, tries: int) -> NetworkError:
        times = "" if tries == 1 else f" ({tries} tries)"
        hint = problem.hint or "try again, or check the index URL, the proxy and the network"
        if isinstance(problem, _Busy) and problem.after is not None and problem.after > self.limits.retry_after:
            hint = f"the server asks to wait {problem.after:.0f} s: try again after that"
        return NetworkError(f"{subject} could not be had from {redact(url)}", why=f"{problem}{times}", hint=hint)


class _Open(Struct, frozen=True):
    manager: AbstractContextManager[Response]
    response: Response


class _Busy(WireError):
    """The server's own "not now"; ``after`` is its Retry-After in seconds."""

    def __init__(self, status: int, after: float | None) -> None:
        super().__init__(f"the server answers HTTP {status}")
        self.after = after


def _basic(userinfo: tuple[str, str]) -> str:
    return "Basic " + base64.b64encode(":".join(userinfo).encode()).decode("ascii")


def _fits(wait: float, deadline: Deadline) -> bool:
    return time.monotonic() + wait < deadline.at


def _rest(response: Response) -> bytes:
    """Read a small body so that the connection can be used again; a large or broken one costs the connection."""
    if response.length is not None and response.length <= 64 * 1024:
        with suppress(WireError):
            return b"".join(response.chunks())
    return b""


def _retry_after(text: str | None) -> float | None:
    if not text:
        return None
    if text.strip().isdigit():
        return float(text.strip()[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _unauthorised(subject: str, address: Address, *, sent: bool) -> NetworkError:
    return NetworkError(
        f"{address.authority} wants {'other ' if sent else ''}credentials for {subject}",
        why=f"HTTP 401 for {redact(address.url)}"
        + (": the ones from the index URL, netrc or keyring were refused" if sent else ""),
        hint=f"put them into the index URL (https://{EXAMPLE}host/…), a netrc file, or keyring",
    )
