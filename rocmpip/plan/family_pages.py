"""The indexes as the choice sees them: a page asked for by URL and name, each one once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rocmpip.model.packages import Absent, Page


class Candidates(Protocol):
    """Answers for one project of one index. A client of a real index, or a table in tests.

    May also have ``expect(asked: Sequence[tuple[index_url, name]])``: pages that will be asked for soon, so that a client
    can fetch them side by side.
    """

    def page(self, index_url: str, name: str) -> Page | Absent:
        """The project's page, or Absent when the index answers that it has none (403 and 404 both mean no).

        Raises NetworkError when no answer could be had.
        """
        ...


class Pages:
    """``Candidates`` with a memo for the length of one choice."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._memo: dict[tuple[str, str], Page | Absent] = {}

    def page(self, index_url: str, name: str) -> Page | Absent:
        key = index_url, name
        if key not in self._memo:
            self._memo[key] = self._candidates.page(index_url, name)
        return self._memo[key]

    def expect(self, asked: Iterable[tuple[str, str]]) -> None:
        """Tell the client which pages come next."""
        wanted = [key for key in dict.fromkeys(asked) if key not in self._memo]
        expect = getattr(self._candidates, "expect", None)
        if wanted and callable(expect):
            expect(wanted)
