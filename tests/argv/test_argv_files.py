"""Requirement files: pip's grammar, nesting, options, and what pip refuses."""

from __future__ import annotations

import codecs
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.argv.text import LIMIT, decode, logical_lines
from rocmpip.model.errors import InputError


def lines(text: str, env: dict[str, str] | None = None) -> list[tuple[int, str]]:
    return list(logical_lines(text, env or {}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n\n# c\nb # c\n", [(1, "a"), (4, "b")]),
        ("a#not-a-comment\n", [(1, "a#not-a-comment")]),
        ("a \\\n  b\\\n c\nd", [(1, "a   b c"), (4, "d")]),
        ("a \\\n# comment\nb", [(1, "a"), (3, "b")]),
        ("# comment \\\nb", [(2, "b")]),
        ("a \\", [(1, "a")]),
        ("a\r\nb\r\n", [(1, "a"), (2, "b")]),
    ],
)
def test_logical_lines(text: str, expected: list[tuple[int, str]]) -> None:
    assert lines(text) == expected


def test_variables_in_their_one_form() -> None:
    env = {"NAME_1": "torch", "lower": "x", "EMPTY": ""}
    assert lines("${NAME_1} $NAME_1 ${lower} ${EMPTY} ${GONE}", env) == [(1, "torch $NAME_1 ${lower} ${EMPTY} ${GONE}")]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é".encode(), "é"),
        (codecs.BOM_UTF8 + "é".encode(), "é"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "é"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), "é"),
        (codecs.BOM_UTF32_LE + "é".encode("utf-32-le"), "é"),
        (b"# -*- coding: latin-1 -*-\n\xe9", "# -*- coding: latin-1 -*-\né"),
        (b"\n# coding=latin-1\n\xe9", "\n# coding=latin-1\né"),
        (b"\xe9", "é"),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert decode(data, "r.txt") == text


@pytest.mark.parametrize("data", [b"# coding: utf-8\n\xff", b"# coding: no-such\nx", codecs.BOM_UTF16_LE + b"\x00\xd8\x00"])
def test_an_encoding_that_is_not_there(data: bytes) -> None:
    with pytest.raises(InputError, match=r"Could not read requirements file r\.txt"):
        decode(data, "r.txt")


def test_a_huge_file_is_refused_at_once(ask: Any) -> None:
    with pytest.raises(InputError, match=r"big\.txt is too large: 100 MiB"):
        ask("install", "-r big.txt", files={"/project/big.txt": "x" * (100 * 1024 * 1024)})
    assert decode(b"#" * LIMIT, "r.txt")


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for number, line in logical_lines(text, {}):
        assert number >= 1
        assert line == line.strip() != ""


def test_nested_files_are_relative_to_the_file_that_names_them(ask: Any) -> None:
    files = {
        "/project/sub/a.txt": "-r deeper/b.txt\n-c ../c.txt\n--requirement=/abs/d.txt\ntorch\n",
        "/project/sub/deeper/b.txt": "-r ../e.txt\nnumpy\n",
        "/project/sub/e.txt": "einops\n",
        "/project/c.txt": "torch<3\n",
        "/abs/d.txt": "pillow\n",
    }
    request, _ = ask("install", "-r sub/a.txt", files=files)
    assert [line.name for line in request.requirements] == ["einops", "numpy", "pillow", "torch"]
    assert [line.name for line in request.constraints] == ["torch"]
    assert request.requirements[0].origin == "/project/sub/e.txt:1"
    assert request.requirements[3].origin == "sub/a.txt:4"
    assert set(request.files) == set(files)
    assert request.requirement_files == ("/project/sub/a.txt",)


def test_files_of_a_url_are_relative_to_it(ask: Any) -> None:
    files = {
        "https://r.example/x/a.txt": "-r b.txt\n-c /c.txt\n",
        "https://r.example/x/b.txt": "numpy",
        "https://r.example/c.txt": "y",
    }
    request, _ = ask("install", "-r https://r.example/x/a.txt", files=files)
    assert [line.name for line in request.requirements + request.constraints] == ["numpy", "y"]


def test_recursion_is_found(ask: Any) -> None:
    files = {"/project/a.txt": "-r b.txt", "/project/b.txt": "-r ./a.txt"}
    with pytest.raises(InputError, match=r"^/project/a\.txt recursively references itself in /project/b\.txt$"):
        ask("install", "-r a.txt", files=files)


def test_recursion_names_the_first_place_too(ask: Any) -> None:
    files = {"/project/a.txt": "-r b.txt", "/project/b.txt": "-r c.txt", "/project/c.txt": "-r b.txt"}
    with pytest.raises(InputError, match=r"b\.txt recursively references itself in /project/c\.txt and again in a\.txt$"):
        ask("install", "-r a.txt", files=files)


def test_the_same_file_twice_is_no_recursion(ask: Any) -> None:
    files = {"/project/a.txt": "-r c.txt\n-r b.txt", "/project/b.txt": "-r c.txt", "/project/c.txt": "x"}
    assert len(ask("install", "-r a.txt", files=files)[0].requirements) == 2


@pytest.mark.parametrize(("option", "kind"), [("-r", "requirements"), ("-c", "constraint")])
def test_a_missing_file_in_pips_words(ask: Any, option: str, kind: str) -> None:
    with pytest.raises(InputError) as caught:
        ask("install", f"{option} gone.txt x")
    assert caught.value.message == f"Could not open {kind} file: [Errno 2] No such file or directory: 'gone.txt'"


def test_missing_files_that_pip_names_otherwise(ask: Any) -> None:
    with pytest.raises(InputError) as caught:
        ask("install", "--build-constraint gone.txt x")
    assert caught.value.message == "Could not open requirements file: [Errno 2] No such file or directory: 'gone.txt'"
    with pytest.raises(InputError) as caught:
        ask("install", "-r file:///gone/r.txt")
    assert caught.value.message == "404 Client Error: FileNotFoundError for url: file:///gone/r.txt"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("torch>=", "(from line 2 of r.txt)"),
        ("--no-such", "Invalid requirement: --no-such\nno such option: --no-such"),
        ("torch --hash=md5:00", "Allowed hash algorithms for --hash are sha256, sha384, sha512."),
        ("torch --hash=00", "Arguments to --hash must be a hash name"),
        ("torch --config-settings x", "must be of the form KEY=VAL"),
        ('-e "x', "Could not split options"),
        ("torch=2", "Invalid requirement: 'torch=2'"),
    ],
)
def test_bad_lines(ask: Any, line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ask("install", "-r r.txt", files={"/project/r.txt": f"numpy\n{line}\n"})
    assert message in caught.value.message
    assert caught.value.exit_code == 1


def test_options_of_a_line(ask: Any) -> None:
    text = 'torch --hash=sha256:aa --hash sha256:bb --config-settings "a=b c"\n-e ./x -C k=v\n'
    request, _ = ask("install", "-r r.txt", files={"/project/r.txt": text}, kinds={"/project/x": "project"})
    torch, editable = request.requirements
    assert (torch.hashes, torch.config_settings, torch.text) == (("sha256:aa", "sha256:bb"), ("a=b c",), "torch")
    assert (editable.path, editable.editable, editable.config_settings) == ("/project/x", True, ("k=v",))
    assert request.require_hashes


def test_index_options_of_nested_files_the_last_index_wins(ask: Any) -> None:
    files = {
        "/project/a.txt": "--index-url https://one.example/simple\n--extra-index-url https://lost.example\notherpkg\n",
        "/project/b.txt": "--index-url https://two.example/whl/rocm6.4 --extra-index-url https://three.example\ntorch\n",
        "/project/top.txt": "-r a.txt\n-r b.txt\n",
    }
    index = ask("install", "-r top.txt --extra-index-url https://argv.example", files=files)[0].index
    assert (index.index_url, index.extra_index_urls) == ("https://two.example/whl/rocm6.4", ("https://three.example",))
    backwards = ask("install", "-r b.txt -r a.txt", files=files)[0].index
    assert (backwards.index_url, backwards.extra_index_urls) == ("https://one.example/simple", ("https://lost.example",))


def test_a_cuda_index_line_stays_in_the_index_options(ask: Any) -> None:
    url = "https://download.pytorch.org/whl/cu121"
    request, _ = ask("install", "-r r.txt", files={"/project/r.txt": f"--extra-index-url {url}\ntorch==2.5.1+cu121\n"})
    assert request.index.extra_index_urls == (url,)
    assert request.requirements[0].specifier == "==2.5.1"


def test_no_index_in_a_file_takes_the_indexes_away(ask: Any) -> None:
    files = {"/project/r.txt": "--no-index\n-i https://x.example\n-f ./wheels\n-f gone\n"}
    request, _ = ask("install", "-r r.txt -i https://a.example y", files=files, kinds={"/project/./wheels": "folder"})
    assert request.index.no_index
    assert request.index.index_url == ""
    assert request.index.find_links == ("/project/./wheels", "gone")


def test_other_options_of_files(ask: Any) -> None:
    text = "--pre\n--prefer-binary\n--no-binary=:all:\n--only-binary numpy\n--trusted-host h.example\n--use-feature fast-deps\n"
    request, _ = ask("install", "-r r.txt x", files={"/project/r.txt": text})
    assert (request.pre, request.prefer_binary, request.no_binary, request.only_binary) == (True, True, (":all:",), ("numpy",))
    assert request.index.trusted_hosts == ("h.example",)
    for word in ("--pre", "--prefer-binary", "--trusted-host", "--use-feature"):
        assert word in request.options


def test_an_option_beside_a_requirement_has_no_effect_as_in_pip(ask: Any) -> None:
    request, _ = ask("install", "-r r.txt", files={"/project/r.txt": "x --index-url https://x.example --pre\n"})
    assert request.index.index_url == ""
    assert not request.pre


def test_editables_are_no_constraints(ask: Any) -> None:
    with pytest.raises(InputError, match="Editable requirements are not allowed as constraints"):
        ask("install", "-c c.txt x", files={"/project/c.txt": "-e ./x"}, kinds={"/project/x": "project"})


def test_secrets_stay_out_of_errors(ask: Any) -> None:
    with pytest.raises(InputError) as caught:
        ask("install", "-r r.txt", files={"/project/r.txt": "--extra-index-url https://me:s3cret@x.example --no-such"})
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "x" + " " * 600_000 + "y",
        " " * 2_000_000 + "#",
        "x" + "[" * 10_000,
        "torch" + " " * 10_000 + "@",
        "torch" + "=" * 10_000 + "+",
        "torch;" + "(" * 10_000,
        "-e " + "a:" * 5_000,
        "git+" * 3_000,
        "\\\n" * 200_000,
        "https://" + "x@" * 5_000,
    ],
)
def test_hostile_lines_are_read_or_refused_without_a_hang(ask: Any, text: str) -> None:
    try:
        request, _ = ask("install", "-r r.txt", files={"/project/r.txt": text})
    except InputError as problem:
        assert problem.message
    else:
        assert len(request.requirements) <= 1


def test_too_much_is_refused(ask: Any) -> None:
    with pytest.raises(InputError, match=r"line 1 of r\.txt is too long"):
        ask("install", "-r r.txt", files={"/project/r.txt": "a" * 20_000})
    with pytest.raises(InputError, match="more than 100000 lines"):
        ask("install", "-r r.txt", files={"/project/r.txt": "--pre\n" * 100_001})


def test_files_that_include_each_other_without_end(ask: Any) -> None:
    class Endless(dict[str, str]):
        def get(self, place: str, default: object = None) -> str:
            return f"-r {place.rpartition('/')[2]}x"

    with pytest.raises(InputError, match="nested more than 100 deep"):
        ask("install", "-r a", files=Endless(x=""))


def test_remote_files_are_fetched_with_the_options_of_the_command_line(ask: Any) -> None:
    seen = []

    def remote(place: str, *, index: Any) -> bytes:
        seen.append((place, index.cert, index.extra_index_urls))
        return b"--extra-index-url https://late.example\n-r more.txt\n" if place.endswith("a.txt") else b"torch\n"

    request, _ = ask("install", "-r https://r.example/a.txt --cert ca.pem --extra-index-url https://e.example", remote=remote)
    assert [line.name for line in request.requirements] == ["torch"]
    expected = ("ca.pem", ("https://e.example",))
    assert seen == [("https://r.example/a.txt", *expected), ("https://r.example/more.txt", *expected)]
