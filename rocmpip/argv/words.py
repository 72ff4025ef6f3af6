"""optparse's algorithm over a Grammar: words → options and positionals, with optparse's error texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rocmpip.argv.table import Grammar, Option
from rocmpip.model.errors import UsageError
from rocmpip.model.record import Struct


class Given(Struct, frozen=True):
    """One option as it was given. ``value`` is None for options without one."""

    option: Option
    spelled: str
    """The full option name: ``--requirement``, ``-r``."""
    value: str | None = None


class Words(Struct, frozen=True):
    """A command line taken apart. ``given`` and ``positionals`` each keep their order."""

    given: tuple[Given, ...]
    positionals: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    """Options that the table does not know, with their values, to hand on as they are."""
    plain: tuple[str, ...] = ()
    """All words without our own options and without ``--python``: what plain pip would be given."""
    routed: tuple[str, ...] = ()
    """``plain`` without the options that say where packages come from: what pip is given behind the router."""


PLACES = frozenset(("index_url", "extra_index_urls", "find_links", "no_index"))
"""Options that say where packages come from."""

Arity = Callable[[str], "int | None"]
"""An option's name → 0 (a flag), 1 (takes a value), or None (pip does not know it)."""


def take_apart(words: Sequence[str], grammar: Grammar, *, arity: Arity | None = None) -> Words:
    """Read ``words`` as optparse would. Raises UsageError in optparse's words.

    ``arity`` is asked about options that the table does not know (a pip newer than the table); without it they are errors.
    """
    queue = list(reversed(words))
    given: list[Given] = []
    positionals: list[str] = []
    unknown: list[str] = []
    plain: list[str] = []
    routed: list[str] = []
    while queue:
        start, count = len(words) - len(queue), len(given)
        word = queue.pop()
        if word == "--":
            positionals.extend(reversed(queue))
            plain.extend(words[start:])
            routed.extend(words[start:])
            break
        if word.startswith("--"):
            _long(word, queue, grammar, given, unknown, arity)
        elif word.startswith("-") and len(word) > 1:
            _cluster(word, queue, grammar, given)
        else:
            positionals.append(word)
        if not any(one.spelled in grammar.ours or one.option.dest == "python" for one in given[count:]):
            taken = words[start : len(words) - len(queue)]
            plain.extend(taken)
            if not any(one.option.dest in PLACES for one in given[count:]):
                routed.extend(taken)
            elif any(one.option.dest not in PLACES for one in given[count:]):
                # A cluster: -vf PLACE is -v and -f PLACE.
                routed.extend(one.spelled for one in given[count:] if one.option.dest not in PLACES)
    return Words(tuple(given), tuple(positionals), tuple(unknown), tuple(plain), tuple(routed))


def _long(word: str, queue: list[str], grammar: Grammar, given: list[Given], unknown: list[str], arity: Arity | None) -> None:
    spelled, equals, attached = word.partition("=")
    if spelled in grammar.ours:
        name, option = spelled, grammar.ours[spelled]
    else:
        try:
            name = match_long(spelled, grammar)
        except UsageError:
            takes = arity(spelled) if arity is not None else None
            if takes is None:
                raise
            unknown.append(word)
            if takes and not equals:
                unknown.append(_next(queue, spelled))
            return
        option = grammar.longs[name]
    if not option.takes_value:
        if equals:
            raise _refuse(grammar, f"{name} option does not take a value", word)
        given.append(Given(option, name))
    else:
        given.append(Given(option, name, attached if equals else _next(queue, name, grammar)))


def match_long(spelled: str, grammar: Grammar) -> str:
    """The option that ``spelled`` names or abbreviates. Raises UsageError when it names none or several."""
    if spelled in grammar.longs:
        return spelled
    found = sorted(name for name in grammar.longs if name.startswith(spelled))
    if len(found) == 1:
        return found[0]
    if not found:
        raise _refuse(grammar, f"no such option: {spelled}", spelled)
    raise _refuse(grammar, f"ambiguous option: {spelled} ({', '.join(found)}?)", spelled)


def _cluster(word: str, queue: list[str], grammar: Grammar, given: list[Given]) -> None:
    for at, letter in enumerate(word[1:], start=2):
        name = "-" + letter
        option = grammar.shorts.get(name)
        if option is None:
            raise _refuse(grammar, f"no such option: {name}", name)
        if option.takes_value:
            given.append(Given(option, name, word[at:] or _next(queue, name, grammar)))
            return
        given.append(Given(option, name))


def _next(queue: list[str], name: str, grammar: Grammar | None = None) -> str:
    if not queue:
        raise _refuse(grammar, f"{name} option requires 1 argument", name)
    return queue.pop()


def _refuse(grammar: Grammar | None, text: str, word: str) -> UsageError:
    command = grammar.command if grammar is not None else ""
    known = command in ("install", "download", "wheel", "lock")
    problem = UsageError(text, hint=f"rocmpip {command} --help" if known else "")
    if grammar is not None and word.partition("=")[0] not in grammar.ours:
        problem.words = (word,)
    return problem
