"""TOML of any origin: every fault is one error, in little time."""

from __future__ import annotations

import pytest

from rocmpip.model.toml import DEEPEST_KEY, TomlError, loads


def test_good_documents_are_read() -> None:
    text = 'a.b.c = 1\n"d.e".f = "x.y.z"\n[g.h]\ni = [1.5, {j = true}]\n'
    assert loads(text) == {"a": {"b": {"c": 1}}, "d.e": {"f": "x.y.z"}, "g": {"h": {"i": [1.5, {"j": True}]}}}
    dots = "." * 500
    assert loads(f'a = "{dots}"\n# {dots}\n') == {"a": dots}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a =", "Invalid value"),
        ("a = 1\na = 2\n", "overwrite"),
        (f"a = {'9' * 5000}", "digits"),
        (f"a = {'[' * 100_000}", "nested too deeply"),
        ("a = " + "{b = " * 100_000, "nested too deeply"),
        (".".join("a" * 100_000) + " = 1", f"more than {DEEPEST_KEY} parts"),
        ("[" + ".".join(["a"] * 50_000) + "]", f"more than {DEEPEST_KEY} parts"),
        ("x = {" + ' . '.join(['"a"'] * 50_000) + " = 1}", f"more than {DEEPEST_KEY} parts"),
    ],
    ids=["no value", "twice", "digits", "arrays", "tables", "key", "header", "inline"],
)  # fmt: skip
def test_every_fault_is_one_error(text: str, words: str) -> None:
    with pytest.raises(TomlError, match=words):
        loads(text)
