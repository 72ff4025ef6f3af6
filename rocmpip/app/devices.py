"""Who asks the router for plain ``torch`` gets the packages of this machine's GPUs too.

AMD's multi-arch torch has its kernels in packages of their own, behind an extra (``torch[device-gfx942]``); without them it
computes nothing. uv and pip before 26 are told by torch's metadata. Later pips compare that with the wheel's own and refuse: for
those that we run the packages are installed afterwards, to a person's own the router says what to ask for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from rocmpip.model.packages import Absent, File, Page
from rocmpip.plan.asked import read_filename

if TYPE_CHECKING:
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

    def metadata_for(self, file: File, agent: str) -> bytes:
        """The file's metadata as the program with this user agent is to see it."""
        data = self._client.metadata(file)
        name = read_filename(file.filename)[0]
        extras = self._extras(name)
        if not extras:
            return data
        if not compares(agent):
            return with_extras(data, extras, self._policy().context.markers)
        if self._told is not None and name == "torch":
            self._told(
                f"this pip takes torch without the kernels of {', '.join(self._policy().context.platform.gfx_targets)}: "
                f"ask for torch[{','.join(extras)}]"
            )
        return data

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
    from email.parser import HeaderParser

    from packaging.markers import UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement

    added: list[str] = []
    for text in HeaderParser().parsestr(metadata.decode("utf-8", "replace")).get_all("Requires-Dist") or ():
        try:
            wanted = Requirement(str(text))
            marker = wanted.marker
            if marker is None or marker.evaluate({**environment, "extra": ""}):
                continue
            if any(marker.evaluate({**environment, "extra": extra}) for extra in extras):
                wanted.marker = None
                added.append(f"Requires-Dist: {wanted}\n")
        except (InvalidRequirement, UndefinedEnvironmentName):
            continue
    head, blank, rest = metadata.replace(b"\r\n", b"\n").partition(b"\n\n")
    return head.rstrip(b"\n") + b"\n" + "".join(added).encode() + (b"\n" + rest if blank else b"")
