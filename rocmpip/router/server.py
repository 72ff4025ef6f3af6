"""The loopback index that pip and uv are given instead of all others."""

from __future__ import annotations

import base64
import hmac
import os
import re
import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from types import TracebackType
from urllib.parse import unquote

from rocmpip.model.errors import InternalError, RocmpipError, UsageError
from rocmpip.model.once import Once
from rocmpip.model.packages import File, normalise
from rocmpip.model.record import Struct, msgspec
from rocmpip.model.routing import Route
from rocmpip.router.files import Files
from rocmpip.router.loopback import NOT_FOUND, Question, Reply, Server
from rocmpip.router.pages import HTML_TYPE, JSON_TYPE, Entry, as_html, as_json, gather, wants_json
from rocmpip.router.upstream import Upstream

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?\Z")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,}\Z")


class Asked(Struct, frozen=True):
    """What the router did with one name. pip's own words cannot tell these apart: an empty page, a 404 and an error look alike."""

    name: str
    kind: str
    """The route's kind, or "error" when there is none."""
    status: int
    candidates: int = 0
    because: str = ""
    error: RocmpipError | None = None
    absent: tuple[str, ...] = ()
    """Indexes that had nothing, with the reason."""


class _Answer(Struct, frozen=True, dict=True):
    record: Asked
    entries: tuple[Entry, ...] = ()

    @cached_property
    def as_json(self) -> bytes:
        return as_json(self.record.name, self.entries)

    @cached_property
    def as_html(self) -> bytes:
        return as_html(self.record.name, self.entries)


class Router:
    """One index on 127.0.0.1 under an unguessable path, for connections of our own uid.

    ``route`` is called once per name, in the thread of the first request for it, or ahead of that (``expect``). ``token`` (at least 16 letters, digits, ``_``
    or ``-``) is random unless given. ``stream``: files whose URL needs credentials that only the client has are handed on by the
    router; otherwise pip is pointed to them and needs a private netrc (``rocmpip.index.credentials.private_netrc``).

    ``hollow`` is for dry runs: every wheel of a server is answered with its metadata alone, for pip before 25.3 downloads what it
    only plans (gigabytes of torch). ``file_of`` has the true hashes; nothing may be installed from such a router.

    ``tell`` is called with each record as it is made, in the thread that made it. ``metadata`` may give a file other metadata
    than the client's, for the user agent that asks; ``tells`` says for which files it is asked in any case.

    ``direct``: where a plain name's index advertises no metadata, pip gets none from us either and reads the wheel, as it would
    alone. Not for dry runs, which should not download what they only plan.

    Use it as a context manager, or call ``start`` and ``close``.
    """

    def __init__(
        self,
        route: Callable[[str], Route],
        client: Upstream,
        *,
        port: int = 0,
        token: str | None = None,
        uid_check: bool = True,
        stream: bool = True,
        hollow: bool = False,
        tell: Callable[[Asked], None] | None = None,
        metadata: Callable[[File, str], bytes] | None = None,
        tells: Callable[[File], bool] | None = None,
        direct: bool = False,
    ) -> None:
        if token is not None and not _TOKEN.match(token):
            raise UsageError("the router's token must have at least 16 letters, digits, - or _")
        self._route = route
        self._client = client
        self._port = port
        self._token = token or base64.urlsafe_b64encode(os.urandom(24)).decode("ascii")
        self._stream = stream
        self._hollow = hollow
        self._tell = tell
        self._metadata = metadata
        self._tells = tells
        self._direct = direct
        self._answers: Once[str, _Answer] = Once()
        self._lock = threading.Lock()
        self._asked: list[Asked] = []
        self._trouble: list[RocmpipError] = []
        self._server: Server | None = None
        self._files: Files | None = None
        self._uid_check = uid_check

    def start(self) -> Router:
        """Open the port and answer. Raises UsageError when the port is taken."""
        try:
            server = Server(self._handle, self._port, uid_check=self._uid_check)
        except (OSError, OverflowError) as problem:
            raise UsageError(
                f"the router cannot listen on 127.0.0.1:{self._port}",
                why=getattr(problem, "strerror", None) or str(problem),
                hint="name another port, or 0 for any free one",
            ) from None
        self._server = server
        self._files = Files(
            self._client,
            f"{self._root}files/",
            stream=self._stream,
            hollow=self._hollow,
            metadata=self._metadata,
            tells=self._tells,
        )
        server.start()
        return self

    def close(self) -> None:
        """Close the port and every connection. Safe to call twice."""
        if self._server is not None:
            self._server.close()

    def __enter__(self) -> Router:
        return self if self._server is not None else self.start()

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def port(self) -> int:
        if self._server is None:
            raise InternalError("the router was not started")
        return self._server.port

    @property
    def _root(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self._token}/"

    @property
    def url(self) -> str:
        """The index URL for pip and uv. It holds the secret path: ``rocmpip.model.redact`` takes it out of texts."""
        return f"{self._root}simple/"

    @property
    def asked(self) -> list[Asked]:
        """What was asked so far, in order of the answers."""
        with self._lock:
            return list(self._asked)

    @property
    def errors(self) -> list[RocmpipError]:
        """Failures of routes, indexes and files, in order."""
        with self._lock:
            return [record.error for record in self._asked if record.error is not None] + list(self._trouble)

    @property
    def forbidden(self) -> list[Asked]:
        """Names that were asked for although the policy forbids them."""
        return [record for record in self.asked if record.kind == "forbidden"]

    @property
    def uid_checked(self) -> bool:
        """False where the kernel does not tell who connects: the path's secret alone guards then."""
        return self._server is not None and self._server.uid_check

    @property
    def refused(self) -> int:
        """Connections of other users that were closed at once."""
        return self._server.refused if self._server is not None else 0

    def real_url(self, url: str) -> str:
        """The upstream URL behind a file link of ours ("" when the file exists only here); other URLs as they are."""
        return self._files.real_url(url) if self._files is not None else url

    def file_of(self, url: str) -> File | None:
        """The file behind a link that a page of ours gave, with its hashes, size and index; None when there is none."""
        return self._files.file_of(url) if self._files is not None else None

    def expect(self, names: Iterable[str]) -> None:
        """Have the answers for these names ready before they are asked for, in this order. Does not wait for that."""

        def make() -> None:
            for name in names:
                if self._server is None or self._server.closing:
                    return
                _ = self._answer_for(normalise(name)).as_json

        threading.Thread(target=make, name="rocmpip-expect", daemon=True).start()

    # Answers

    def _answer_for(self, name: str) -> _Answer:
        return self._answers.get(name, lambda: self._answer(name))

    def _handle(self, question: Question) -> Reply:
        try:
            return self._reply(question)
        except RocmpipError as problem:
            self._note(problem)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as problem:  # one bad answer must not end the server, and pip must not wait for it
            self._note(InternalError(f"the router failed: {type(problem).__name__}: {problem}"))
        return NOT_FOUND

    def _note(self, problem: RocmpipError) -> None:
        with self._lock:
            self._trouble.append(problem)

    def _reply(self, question: Question) -> Reply:
        path = question.target.partition("?")[0]
        _, _, after = path.partition("/")
        token, _, rest = after.partition("/")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return NOT_FOUND
        place, _, rest = rest.partition("/")
        if place == "files" and self._files is not None:
            return self._files.reply(unquote(rest), question)
        if place != "simple":
            return NOT_FOUND
        name = unquote(rest.removesuffix("/"))
        wants = wants_json(question.headers.get("accept", ""))
        if not name:
            return self._projects(wants)
        if not _NAME.match(name):
            return NOT_FOUND
        answer = self._answer_for(normalise(name))
        if answer.record.status != 200:
            return NOT_FOUND
        return _page(wants, answer.as_json if wants else answer.as_html)

    def _projects(self, wants: bool) -> Reply:
        names = sorted({record.name for record in self.asked if record.status == 200})
        if wants:
            page = {"meta": {"api-version": "1.0"}, "projects": [{"name": name} for name in names]}
            return _page(True, msgspec.json.encode(page))
        links = "".join(f'<a href="{name}/">{name}</a><br>' for name in names)
        return _page(
            False, f"<!DOCTYPE html><html><head><title>Simple index</title></head><body>{links}</body></html>".encode()
        )

    def _answer(self, name: str) -> _Answer:
        kind = "error"
        try:
            route = self._route(name)
            kind = route.kind
            if kind == "forbidden":
                return self._recorded(_Answer(Asked(name, kind, 404, because=route.because)))
            files, absent = gather(route, self._client)
            assert self._files is not None
            apart = not (self._direct and kind == "plain")
            entries = tuple(self._files.entry(file, apart=apart) for file in files)
            entries += tuple(self._files.synthetic(made) for made in route.synthetic)
            record = Asked(name, kind, 200 if entries else 404, len(entries), route.because, absent=tuple(absent))
            return self._recorded(_Answer(record, entries))
        except RocmpipError as problem:
            return self._recorded(_Answer(Asked(name, kind, 404, because=str(problem), error=problem)))
        except Exception as problem:  # a fault in a policy: told like any other error, and pip gets its answer
            fault = InternalError(f"no answer for {name}: {type(problem).__name__}: {problem}")
            return self._recorded(_Answer(Asked(name, kind, 404, because=str(fault), error=fault)))

    def _recorded(self, answer: _Answer) -> _Answer:
        with self._lock:
            self._asked.append(answer.record)
        if self._tell is not None:
            self._tell(answer.record)
        return answer


def _page(wants_json_: bool, body: bytes) -> Reply:
    kind = JSON_TYPE if wants_json_ else f"{HTML_TYPE}; charset=utf-8"
    return Reply(200, body, (("Content-Type", kind), ("Vary", "Accept")))
