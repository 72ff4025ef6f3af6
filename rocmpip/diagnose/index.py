"""Which patterns can match a line? Each pattern's literals, found by four characters of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rocmpip.diagnose.pattern import Pattern

_GRAM = 4
# Build logs are full of these: a gram of a literal that stands here would send every line to that literal.
_USUAL = (
    "/opt/rocm/lib/llvm/bin/clang++ hipcc -D__HIP_PLATFORM_AMD__=1 -DUSE_ROCM=1 --offload-arch=gfx942 -Wall -Werror -I/include "
    "python3.12/site-packages/torch/include/ build/temp.linux-x86_64-cpython-312 CMakeFiles/ .dir/src .cpp.o .hip.o warning: unused "
    "Downloading Collecting Using cached Requirement already satisfied: error: note: kernel not found Building CXX object "
)


class Index:
    """Made once for a rule book; ``candidates`` costs a few microseconds a line, whatever the number of patterns."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        by_literal: dict[str, list[int]] = {}
        for number, pattern in enumerate(patterns):
            for literal in pattern.literals:
                by_literal.setdefault(literal, []).append(number)
        self.without_literal = [number for number, pattern in enumerate(patterns) if not pattern.literals]
        rows = list(by_literal.items())
        self.with_digits = [row for row in rows if any(char.isdigit() for char in row[0])]
        usual = set(_grams(_USUAL))
        common = Counter(gram for literal in by_literal for gram in set(_grams(literal)))
        self._short = [row for row in rows if len(row[0]) < _GRAM]
        self._by_gram: dict[str, list[tuple[str, list[int]]]] = {}
        for row in rows:
            grams = list(_grams(row[0]))
            if grams:
                rarest = min(grams, key=lambda gram: (gram in usual, common[gram], gram.isspace()))
                self._by_gram.setdefault(rarest, []).append(row)
        self._keys = frozenset(self._by_gram)

    def candidates(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """(literal, pattern numbers) that may stand in ``text``: the caller looks whether the literal does."""
        yield from self._short
        for gram in self._keys.intersection(_grams(text)):
            yield from self._by_gram[gram]


def _grams(text: str) -> list[str]:
    return [text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)]
