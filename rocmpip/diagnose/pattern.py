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
    if re.search(r"\\[1-9]|\(\?P=|\(\?\(", text):
        return "has a back reference, which rules do not take"
    try:
        regex = re.compile(bounded(text))
    except (re.error, OverflowError, RecursionError) as problem:
        return f"is no regular expression: {problem}"
    return "matches an empty text" if regex.search("") else ""


def _tokens(pattern: str) -> list[str]:
    """``pattern`` cut into escapes, classes, groups' openings, quantifiers and single characters."""
    tokens: list[str] = []
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
        tokens.append(pattern[start:at])
    return tokens


def bounded(pattern: str) -> str:
    """``pattern`` with ``*`` and ``+`` cut to ``WIDE`` repetitions; possessive forms and laziness stay."""
    out: list[str] = []
    for token in _tokens(pattern):
        after_quantifier = bool(out) and (out[-1] in ("?",) or out[-1].startswith("{"))
        if token == "*":
            out.append("{0,%d}" % WIDE)
        elif token == "+" and not after_quantifier:
            out.append("{1,%d}" % WIDE)
        else:
            out.append(token)
    return "".join(out)


def nested_quantifier(pattern: str) -> bool:
    """True when a group that is repeated holds something that is repeated without a small bound: ``(a+)*``, ``(.*x){9}``."""
    groups = [False]
    tokens = _tokens(pattern)
    for number, token in enumerate(tokens):
        if token.startswith("("):
            groups.append(False)
        elif token == ")":
            inner = groups.pop() if len(groups) > 1 else False
            after = tokens[number + 1] if number + 1 < len(tokens) else ""
            repeated = after in ("*", "+") or after.startswith("{")
            if inner and repeated:
                return True
            groups[-1] = groups[-1] or inner or repeated
        elif token in ("*", "+") or (token.startswith("{") and len(token) > 1):
            groups[-1] = True
    return False


def literals_of(pattern: str) -> tuple[str, ...]:
    """Texts of which every match of ``pattern`` contains one, found without running it; () when there are none."""
    found: list[str] = []
    for branch in _branches(pattern):
        literal = _literal(branch)
        if len(literal) < 3:
            return ()
        found.append(literal)
    return tuple(dict.fromkeys(found))


def _branches(pattern: str) -> list[list[str]]:
    """The alternatives at the top level, as tokens."""
    branches: list[list[str]] = [[]]
    depth = 0
    for token in _tokens(pattern):
        depth += 1 if token.startswith("(") else -1 if token == ")" else 0
        if token == "|" and depth == 0:
            branches.append([])
        else:
            branches[-1].append(token)
    return branches


def _literal(tokens: list[str]) -> str:
    """The longest plain text outside all groups."""
    best, current, depth = "", "", 0
    for number, token in enumerate(tokens):
        if token.startswith("("):
            if "i" in token.rstrip(":"):
                return ""
            depth += 1
        elif token == ")":
            depth -= 1
        elif depth == 0:
            plain = token if token not in _META and len(token) == 1 else ""
            if len(token) == 2 and token[0] == "\\" and not token[1].isalnum():
                plain = token[1]
            after = tokens[number + 1] if number + 1 < len(tokens) else ""
            if plain and after not in ("?", "*") and not after.startswith("{"):
                current += plain
                best = max(best, current, key=len)
                if after == "+":
                    current = ""
                continue
        current = ""
    return best
