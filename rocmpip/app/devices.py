"""Who asks the router for plain ``torch`` gets the packages of this machine's GPUs too.

AMD's multi-arch torch has its kernels in packages of their own, behind an extra (``torch[device-gfx942]``); without them it
computes nothing. uv and pip before 26 are told by torch's metadata. Later pips compare that with the wheel's own and refuse. They
compare wheels alone, so they are told by the metadata of ``rocm``, a source that this torch requires; where that is of no use
the packages are installed afterwards by those that we run, and to a person's own the router says what to ask for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rocmpip.model.packages import Absent, File, Page
from rocmpip.model.record import replace
from rocmpip.plan.asked import read_filename

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from rocmpip.app.pip_child import Pip
    from rocmpip.app.policy import Policy
    from rocmpip.index.client import Client
    from rocmpip.router.upstream import Body

_PIP = re.compile(r"pip/(\d+)")


class WithDevices:
    """The index client as the router sees it; ``policy`` tells the choice of torch's build once it is made."""

    def __init__(self, client: Client, policy: Callable[[], Policy], told: Callable[[str], None] | None = None) -> None:
        """``told`` hears what a person whose pip cannot be told otherwise should do."""
        self._client = client
        self._policy = policy
        self._told = told

        self._torch = b""
        """Metadata of the torch that a pip which compares has taken; what goes with it is yet to be brought by ``rocm``."""

    def _extras(self, name: str) -> tuple[str, ...]:
        made = self._policy().family.made
        return made.extras.get(name, ()) if made is not None else ()

    def page(self, index_url: str, name: str) -> Page | Absent:
        page = self._client.page(index_url, name)
        if isinstance(page, Absent) or not self._extras(name):
            return page
        # Without a mark of the server's own the router links the metadata here.
        return replace(page, files=tuple(replace(file, core_metadata=None) for file in page.files))

    def metadata(self, file: File) -> bytes:
        return self._client.metadata(file)

    def tells(self, file: File) -> bool:
        """True for a source whose metadata is told here, whatever its server has: ``rocm`` beside a torch with device packages."""
        return file.filename.startswith("rocm-") and file.filename.endswith(".tar.gz") and bool(self._extras("torch"))

    def metadata_for(self, file: File, agent: str) -> bytes:
        """The file's metadata as the program with this user agent is to see it."""
        if self.tells(file):
            return self._of_rocm(file, agent)
        data = self._client.metadata(file)
        name = read_filename(file.filename)[0]
        extras = self._extras(name)
        if not extras:
            return data
        if not compares(agent):
            return with_extras(data, extras, self._policy().context.markers)
        if name == "torch":
            self._torch = data
            if not _requires_rocm(data, self._policy().context.markers):
                self.end()
        return data

    def _of_rocm(self, file: File, agent: str) -> bytes:
        from packaging.version import Version

        from rocmpip.app.family import rocm_static

        policy = self._policy()
        choice = policy.family.made
        assert choice is not None  # else it is not told here
        data = rocm_static(Version(read_filename(file.filename)[1]), choice, policy.context, self._client)
        if compares(agent) and self._torch:
            data = _with(data, _behind(self._torch, self._extras("torch"), policy.context.markers))
            self._torch = b""
        return data

    def end(self) -> None:
        """Say what could not be brought by ``rocm`` (which may have been installed already)."""
        if self._torch and self._told is not None:
            self._told(
                f"this pip takes torch without the kernels of {', '.join(self._policy().context.platform.gfx_targets)}: "
                f"ask for torch[{','.join(self._extras('torch'))}]"
            )
        self._torch = b""

    def find_links(self, place: str) -> tuple[File, ...]:
        return self._client.find_links(place)

    def open(
        self, file: File, *, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> AbstractContextManager[Body]:
        return self._client.open(file, headers=headers, method=method)

    def needs_credentials(self, file: File) -> bool:
        return self._client.needs_credentials(file)

    def secure(self, url: str) -> bool:
        return self._client.secure(url)


def compares(agent: str) -> bool:
    """True for a pip that refuses a wheel whose metadata is not what the index said (from 26 on)."""
    found = _PIP.match(agent)
    return found is not None and int(found[1]) >= 26


def complete(pip: Pip) -> int:
    """Install the packages of the target GPUs beside a torch that pip took along by itself; pip's exit code."""
    from rocmpip.target.environment import installed

    context = pip.session.context
    choice = pip.session.policy.family.made
    extras = choice.extras.get("torch", ()) if choice is not None else ()
    if choice is None or not extras or context.request.command != "install" or context.request.dry_run:
        return 0
    here = {dist.name: dist.version for dist in installed(context.target.site_packages)}
    torch = here.get("torch", "")
    if torch != choice.pins.get("torch") or all(f"amd-torch-{extra}" in here for extra in extras):
        return 0
    return pip.install([f"torch[{','.join(extras)}]=={torch}"])


def with_extras(metadata: bytes, extras: tuple[str, ...], environment: Mapping[str, str]) -> bytes:
    """Core metadata in which what ``extras`` require is required without them."""
    return _with(metadata, _behind(metadata, extras, environment))


def _requirements(metadata: bytes) -> Iterator[Requirement]:
    from email.parser import HeaderParser

    from packaging.requirements import InvalidRequirement, Requirement

    for text in HeaderParser().parsestr(metadata.decode("utf-8", "replace")).get_all("Requires-Dist") or ():
        try:
            yield Requirement(str(text))
        except InvalidRequirement:
            continue


def _behind(metadata: bytes, extras: tuple[str, ...], environment: Mapping[str, str]) -> list[str]:
    """What only ``extras`` require, without its marker."""
    found: list[str] = []
    for wanted in _requirements(metadata):
        if not _holds(wanted, environment, "") and any(_holds(wanted, environment, extra) for extra in extras):
            wanted.marker = None
            found.append(str(wanted))
    return found


def _holds(wanted: Requirement, environment: Mapping[str, str], extra: str) -> bool:
    from packaging.markers import UndefinedEnvironmentName

    try:
        return wanted.marker is None or wanted.marker.evaluate({**environment, "extra": extra})
    except UndefinedEnvironmentName:
        return False


def _requires_rocm(metadata: bytes, environment: Mapping[str, str]) -> bool:
    return any(wanted.name == "rocm" and _holds(wanted, environment, "") for wanted in _requirements(metadata))


def _with(metadata: bytes, requirements: Sequence[str]) -> bytes:
    head, blank, rest = metadata.replace(b"\r\n", b"\n").partition(b"\n\n")
    added = "".join(f"Requires-Dist: {one}\n" for one in requirements)
    return head.rstrip(b"\n") + b"\n" + added.encode() + (b"\n" + rest if blank else b"")
