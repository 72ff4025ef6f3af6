"""One pattern of a rule: compiled when first needed, found quickly, and bounded in time.

``*`` and ``+`` after something wide (``.``, ``\\S``, ``\\w``, a class) mean "up to ``WIDE`` characters". With lines of at most
``text.LONGEST`` characters and no quantifier inside another, no pattern can run away, whatever a log holds.
"""

from __future__ import annotations

import re
from functools import cached_property

LONGEST = 500
"""Characters of a pattern."""
WIDE = 240
"""What an unbounded quantifier of a pattern is cut to."""
MOST_WIDE = 6
"""Unbounded quantifiers on one way through a pattern: what a match can cost grows with the power of their number."""
_META = frozenset(".^$*+?{}[]\\|()")


class Pattern:
    """``literals``: every match contains one of these (a cheap first look); empty when none could be found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.literals = literals_of(text)

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(bounded(self.text))

    def may_match(self, line: str) -> bool:
        literals = self.literals
        return not literals or any(one in line for one in literals)


def fault_of(text: str) -> str:
    """Why ``text`` cannot be a pattern, or ""."""
    if not text or len(text) > LONGEST:
        return f"must be 1 to {LONGEST} characters"
    if nested_quantifier(text):
        return "has a quantifier inside a quantified group, which can run away; write the group without one of them"
    if wide_quantifiers(text) > MOST_WIDE:
        return f"has more than {MOST_WIDE} unbounded quantifiers one after the other, which can run long"
    if re.search(r"\\[1-9]|\(\?P=|\(\?\(", text):
        return "has a back reference, which rules do not take"
    try:
        regex = re.compile(bounded(text))
    except (re.error, OverflowError, RecursionError) as problem:
        return f"is no regular expression: {problem}"
    return "matches an empty text" if regex.search("") else ""


def _pieces(pattern: str) -> list[str]:
    """``pattern`` cut into escapes, classes, groups' openings, quantifiers and single characters."""
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        start, char = at, pattern[at]
        at += 1
        if char == "\\":
            at += 1
        elif char == "[":
            at += 1 if pattern[at : at + 1] == "^" else 0
            at += 1 if pattern[at : at + 1] == "]" else 0
            while at < len(pattern) and pattern[at] != "]":
                at += 2 if pattern[at] == "\\" else 1
            at += 1
        elif char == "(" and pattern[at : at + 1] == "?":
            at += 1
            while at < len(pattern) and pattern[at] in ":=!<Pimsx-":
                at += 1
                if pattern[at - 1] in ":=!":
                    break
        elif char == "{" and (match := re.compile(r"\d*,?\d*\}").match(pattern, at)):
            at = match.end()
        pieces.append(pattern[start:at])
    return pieces


def bounded(pattern: str) -> str:
    """``pattern`` with ``*`` and ``+`` cut to ``WIDE`` repetitions; possessive forms and laziness stay."""
    out: list[str] = []
    for piece in _pieces(pattern):
        after_quantifier = bool(out) and (out[-1] in ("?",) or out[-1].startswith("{"))
        if piece == "*":
            out.append(f"{{0,{WIDE}}}")
        elif piece == "+" and not after_quantifier:
            out.append(f"{{1,{WIDE}}}")
        else:
            out.append(piece)
    return "".join(out)


def nested_quantifier(pattern: str) -> bool:
    """True when a group that is repeated holds something that is repeated without a small bound: ``(a+)*``, ``(.*x){9}``."""
    groups = [False]
    pieces = _pieces(pattern)
    for number, piece in enumerate(pieces):
        if piece.startswith("("):
            groups.append(False)
        elif piece == ")":
            inner = groups.pop() if len(groups) > 1 else False
            after = pieces[number + 1] if number + 1 < len(pieces) else ""
            repeated = after in ("*", "+") or after.startswith("{")
            if inner and repeated:
                return True
            groups[-1] = groups[-1] or inner or repeated
        elif piece in ("*", "+") or (piece.startswith("{") and len(piece) > 1):
            groups[-1] = True
    return False


def wide_quantifiers(pattern: str) -> int:
    """How many unbounded quantifiers stand on one way through ``pattern``, at most."""
    return _wide(_pieces(pattern))


def _wide(pieces: list[str]) -> int:
    most = 0
    for branch in _branches(pieces):
        count, depth, group = 0, 0, [""]
        for number, piece in enumerate(branch):
            depth += 1 if piece.startswith("(") else -1 if piece == ")" else 0
            if depth > 0:
                group = [] if depth == 1 and piece.startswith("(") else [*group, piece]
            elif piece == ")":
                count += _wide(group)
            elif piece in ("*", "+") and not (number and branch[number - 1] in ("*", "+", "?")):
                count += 1
        most = max(most, count)
    return most


def literals_of(pattern: str) -> tuple[str, ...]:
    """Texts of which every match of ``pattern`` contains one, found without running it; () when there are none."""
    pieces = _pieces(pattern)
    # A flag group such as (?i) changes what the text means.
    if any(piece.startswith("(?") and set(piece) & set("imsxLau") for piece in pieces):
        return ()
    return tuple(dict.fromkeys(_alternatives(pieces)))


def _alternatives(pieces: list[str]) -> tuple[str, ...]:
    """One literal for each alternative at the top level, or ()."""
    found: list[str] = []
    for branch in _branches(pieces):
        literals = _best(branch)
        if not literals:
            return ()
        found += literals
    return tuple(found)


def _branches(pieces: list[str]) -> list[list[str]]:
    branches: list[list[str]] = [[]]
    depth = 0
    for piece in pieces:
        depth += 1 if piece.startswith("(") else -1 if piece == ")" else 0
        if piece == "|" and depth == 0:
            branches.append([])
        else:
            branches[-1].append(piece)
    return branches


def _best(pieces: list[str]) -> tuple[str, ...]:
    """Of one alternative: its longest plain text, or the texts of a group when those are longer."""
    best: tuple[str, ...] = ()
    current, group, opening, depth = "", [""], "", 0
    for number, piece in enumerate(pieces):
        after = pieces[number + 1] if number + 1 < len(pieces) else ""
        optional = after in ("?", "*") or after.startswith("{")
        if piece.startswith("("):
            if depth == 0:
                group, opening = [], piece
            else:
                group.append(piece)
            depth += 1
        elif piece == ")":
            depth -= 1
            if depth == 0:
                if opening in ("(", "(?:") and not optional:
                    best = _longer(best, _alternatives(group))
            else:
                group.append(piece)
        elif depth > 0:
            group.append(piece)
        elif (plain := _plain(piece)) and not optional:
            current += plain
            best = _longer(best, (current,))
            if after != "+":
                continue
        current = ""
    return best


def _longer(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """What tells more: the set whose shortest text is longer; nothing below three characters tells anything."""
    return max(one, other, key=lambda texts: min(map(len, texts), default=0)) if min(map(len, other), default=0) >= 3 else one


def _plain(piece: str) -> str:
    """The character that ``piece`` stands for, or ""."""
    if len(piece) == 1:
        return "" if piece in _META else piece
    return piece[1] if len(piece) == 2 and piece[0] == "\\" and not piece[1].isalnum() else ""
