"""Listings and errors taken apart for the way between a scout and its maker, and put together again."""

from __future__ import annotations

from typing import Any

from rocmpip.app.scout_errand import pack, unpack
from rocmpip.index.fast import FastPages, Packed, Slim, SlimPage, unpacked
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import File
from rocmpip.model.record import msgspec
from rocmpip.plan.gather import Best
from rocmpip.plan.listing import Row, Unusable

EAGER = 32
"""Versions of a listing that are sent with it, the newest; the older ones follow when someone asks."""
_FILE = -1


class Packer:
    """Rows of one listing → bytes. ``pages`` collects the (index, URL) of the pages they stand on."""

    def __init__(self) -> None:
        self.pages: list[tuple[str, str]] = []
        self._numbers: dict[int, int] = {}

    def best(self, best: Best) -> bytes:
        return pack((*self.row(best.row), best.from_source, best.yanked, best.stretched))

    def row(self, row: Row) -> tuple[int, object]:
        if isinstance(row, Slim):
            page: SlimPage = row.place
            number = self._numbers.get(id(page))
            if number is None:
                number = self._numbers[id(page)] = len(self.pages)
                self.pages.append((page.index, page.url))
            return number, row.packed()
        if isinstance(row, File):
            return _FILE, row
        raise TypeError(type(row))


class Unpacker:
    """The way back, in another process."""

    def __init__(self, pages: FastPages) -> None:
        self._pages = pages
        self._known: dict[tuple[str, str], SlimPage] = {}

    def best(self, data: bytes, pages: list[list[str]]) -> Best:
        number, values, from_source, yanked, stretched = unpack(data)
        return Best(self.row(number, values, pages), from_source, yanked, stretched)

    def row(self, number: int, values: Any, pages: list[list[str]]) -> Row:
        if number == _FILE:
            return msgspec.convert(values, File)
        index, url = pages[number]
        page = self._known.get((index, url))
        if page is None:
            page = self._known[index, url] = SlimPage(self._pages, index, url, ())
        packed: Packed = values
        return unpacked(packed, page)


def pack_problem(problem: Exception) -> list[object] | None:
    """What another process needs to raise it again; None for a kind it should find for itself."""
    if isinstance(problem, Unusable):
        return [str(problem)]
    if type(problem) is NetworkError:
        return [problem.message, problem.why, problem.hint, list(problem.details), problem.about_page]
    return None


def unpack_problem(values: list[Any]) -> Exception:
    if len(values) == 1:
        return Unusable(values[0])
    message, why, hint, details, about_page = values
    problem = NetworkError(message, why=why, hint=hint, details=tuple(details))
    problem.about_page = about_page
    return problem
