"""Files that pip gets through the router: made here, handed on, or pointed to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256

from rocmpip.model.filenames import is_wheel
from rocmpip.model.packages import File
from rocmpip.model.record import replace
from rocmpip.model.routing import Synthetic
from rocmpip.router.alias import hollow_wheel
from rocmpip.router.loopback import NOT_FOUND, Question, Reply
from rocmpip.router.pages import Entry
from rocmpip.router.upstream import Body, Upstream

_KEY = 20
_ON = ("content-range", "etag", "last-modified", "accept-ranges")


class Files:
    """Which files have a link of ours, and what it answers. Safe for threads."""

    def __init__(
        self,
        client: Upstream,
        root: str,
        *,
        stream: bool,
        hollow: bool,
        metadata: Callable[[File, str], bytes] | None = None,
        tells: Callable[[File], bool] | None = None,
    ) -> None:
        """``root``: the URL below which file links live, with a slash at its end. ``stream``: hand on files with credentials.
        ``hollow``: answer for wheels with their metadata alone. ``metadata``: of a file for a user agent, else the client's. ``tells``: files, sources too, for which it is always asked."""
        self._client = client
        self._root = root
        self._stream = stream
        self._hollow = hollow
        self._metadata = metadata or (lambda file, agent: client.metadata(file))
        self._tells = tells
        self._lock = threading.Lock()
        self._known: dict[str, File | Synthetic] = {}

    def entry(self, file: File, *, apart: bool = True) -> Entry:
        """How the page links ``file``: straight to its host where possible, so that pip downloads from there.

        ``apart``: a wheel whose metadata is not advertised is linked so that pip gets that without the wheel.
        """
        with self._lock:
            self._known[file.url] = file
        if not file.url.startswith(("http://", "https://")):
            return Entry(file, file.url, file.core_metadata)
        if self._hollow and is_wheel(file.filename) and self._client.secure(file.url):
            # The page may not promise a hash or size that the hollow wheel has not.
            return Entry(replace(file, hashes={}, size=None), self._link(file.url, file), file.core_metadata or "")
        ours = self._tells is not None and self._tells(file)
        if ours or self._streamed(file):
            metadata = "" if ours or (file.core_metadata is None and is_wheel(file.filename)) else file.core_metadata
            return Entry(file, self._link(file.url, file), metadata)
        if apart and file.core_metadata is None and is_wheel(file.filename) and self._client.secure(file.url):
            # Its metadata by range reads costs kilobytes; without it a dry run would download the wheel.
            return Entry(file, self._link(file.url, file), "")
        return Entry(file, file.url, file.core_metadata)

    def synthetic(self, made: Synthetic) -> Entry:
        digest = sha256(made.metadata).hexdigest()
        hashes = {} if made.content is None else {"sha256": sha256(made.content).hexdigest()}
        size = None if made.content is None else len(made.content)
        file = File(made.filename, "", hashes, size=size)
        return Entry(file, self._link(f"{made.filename} {digest}", made), f"sha256={digest}")

    def real_url(self, url: str) -> str:
        """The upstream's URL of a link of ours ("" for a file made here); any other URL as it is."""
        bare, _, fragment = url.partition("#")
        if not bare.startswith(self._root):
            return url
        known = self.file_of(url)
        if known is None:
            return ""
        return f"{known.url}#{fragment}" if fragment else known.url

    def file_of(self, url: str) -> File | None:
        """The upstream's file behind a link on a page of ours, whether it leads here or to its host."""
        bare = url.partition("#")[0]
        known = self._known.get(bare[len(self._root) :].partition("/")[0] if bare.startswith(self._root) else bare)
        return known if isinstance(known, File) else None

    def reply(self, rest: str, question: Question) -> Reply:
        """Answer for the path ``KEY/filename[.metadata]``. Raises RocmpipError when the upstream fails."""
        key, _, filename = rest.partition("/")
        known = self._known.get(key) if len(key) == _KEY else None
        if known is None or filename.removesuffix(".metadata") != known.filename:
            return NOT_FOUND
        if filename != known.filename:
            agent = question.headers.get("user-agent", "")
            data = known.metadata if isinstance(known, Synthetic) else self._metadata(known, agent)
            return Reply(200, data, (("Content-Type", "application/octet-stream"),))
        if isinstance(known, Synthetic):
            if known.content is None:
                return NOT_FOUND
            return Reply(200, known.content, (("Content-Type", "application/octet-stream"),))
        if self._hollow and is_wheel(filename):
            return Reply(
                200, hollow_wheel(filename, self._client.metadata(known)), (("Content-Type", "application/octet-stream"),)
            )
        if not self._streamed(known):
            return Reply(302, b"", (("Location", known.url),))
        return self._handed_on(known, question)

    def _streamed(self, file: File) -> bool:
        return self._stream and self._client.needs_credentials(file)

    def _handed_on(self, file: File, question: Question) -> Reply:
        wanted = {name: question.headers[name.lower()] for name in ("Range", "If-Range") if name.lower() in question.headers}
        stack = ExitStack()
        try:
            body = stack.enter_context(self._client.open(file, headers=wanted, method=question.method))
        except BaseException:
            stack.close()
            raise
        length = body.headers.get("content-length", "")
        headers = [(name.title(), body.headers[name]) for name in _ON if name in body.headers]
        headers.append(("Content-Type", "application/octet-stream"))
        return Reply(
            body.status,
            b"",
            tuple(headers),
            stream=_body(body),
            length=int(length) if length.isdigit() else None,
            close=stack.close,
        )

    def _link(self, identity: str, known: File | Synthetic) -> str:
        key = sha256(identity.encode()).hexdigest()[:_KEY]
        with self._lock:
            self._known[key] = known
        return f"{self._root}{key}/{known.filename}"


def _body(body: Body) -> Iterator[bytes]:
    try:
        yield from body.chunks()
    except Exception as problem:
        # The upstream broke off: pip sees a short answer and asks for the rest.
        raise ConnectionError(str(problem)) from None
