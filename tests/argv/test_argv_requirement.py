"""One requirement: names, markers, URLs, paths, editables, labels."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmpip.argv.labels import TORCH_FAMILY, without_cuda_label
from rocmpip.argv.requirement import Reading, read_editable, read_requirement
from rocmpip.model.errors import InputError
from rocmpip.model.packages import RequirementLine

KINDS = {
    "/project/pkg": "project",
    "/project/empty": "folder",
    "/project/dist/torch-2.9.1-cp311-cp311-linux_x86_64.whl": "file",
    "/project/x.tar.gz": "file",
    "/project/requirements.txt": "file",
    "/project/bad.whl": "file",
}


def read(text: str, **more: Any) -> RequirementLine:
    return read_requirement(text, "command line", Reading("/project", kind=lambda path: KINDS.get(path, "")), **more)


def editable(text: str) -> RequirementLine:
    return read_editable(text, "command line", Reading("/project", kind=lambda path: KINDS.get(path, "")))


@pytest.mark.parametrize(
    ("text", "name", "extras", "specifier", "marker"),
    [
        ("torch", "torch", (), "", ""),
        ("Torch (>=2.6)", "torch", (), ">=2.6", ""),
        (
            'torch[opt-einsum]>=2.6,<3; platform_system=="Linux" and python_version<"3.14"',
            "torch",
            ("opt-einsum",),
            "<3,>=2.6",
            'platform_system=="Linux" and python_version<"3.14"',
        ),
        ('torch>=2.6 ; sys_platform=="win32"', "torch", (), ">=2.6", 'sys_platform=="win32"'),
        ("Torch_Geometric==1.0", "torch-geometric", (), "==1.0", ""),
        ("torch==2.9.1+rocm6.4", "torch", (), "==2.9.1+rocm6.4", ""),
        ("a[B,c]~=1.0 ;", "a", ("B", "c"), "~=1.0", ""),
    ],
)
def test_names(text: str, name: str, extras: tuple[str, ...], specifier: str, marker: str) -> None:
    line = read(text)
    assert (line.name, line.extras, line.specifier, line.marker) == (name, extras, specifier, marker)
    assert (line.url, line.path) == ("", "")


@pytest.mark.parametrize(
    ("text", "name", "url", "path"),
    [
        ("https://x.example/torch-2.9.1-cp311-cp311-linux_x86_64.whl", "torch", "same", ""),
        ("https://x.example/flash_attn-2.8.3.tar.gz#sha256=00", "flash-attn", "same", ""),
        ("git+https://x.example/r.git@v1#egg=My_Name[a]&subdirectory=s", "my-name", "same", ""),
        ("git+ssh://git@x.example/r.git", "", "same", ""),
        ("name @ https://x.example/y.zip", "name", "https://x.example/y.zip", ""),
        ("name[x] @ git+https://x.example/y ; python_version>'3'", "name", "git+https://x.example/y", ""),
        ("name @ file:///a/b.whl", "name", "", "/a/b.whl"),
        ("file:///a/b%20c", "", "", "/a/b c"),
        ("file:../b%20c", "", "", "/b c"),
        ("./pkg", "", "", "/project/pkg"),
        ("./pkg[extra]", "", "", "/project/pkg"),
        (
            "dist/torch-2.9.1-cp311-cp311-linux_x86_64.whl",
            "torch",
            "",
            "/project/dist/torch-2.9.1-cp311-cp311-linux_x86_64.whl",
        ),
        ("x.tar.gz", "", "", "/project/x.tar.gz"),
    ],
)
def test_places(text: str, name: str, url: str, path: str) -> None:
    line = read(text)
    assert (line.name, line.url, line.path) == (name, text if url == "same" else url, path)


def test_extras_and_markers_of_places() -> None:
    assert read("./pkg[B,a]").extras == ("a", "b")
    line = read('https://x.example/a-1-py3-none-any.whl ; python_version<"3"')
    assert (line.marker, line.url) == ('python_version<"3"', "https://x.example/a-1-py3-none-any.whl")
    assert read("git+https://x.example/r.git#egg=n[e]").extras == ("e",)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("torch=2", "Invalid requirement: 'torch=2'", "= is not a valid operator. Did you mean == ?"),
        ("./gone", "Invalid requirement: './gone'", "It looks like a path. File './gone' does not exist."),
        ("./requirements.txt", "Invalid requirement: './requirements.txt'", "use the '-r' flag"),
        ("./empty", "Directory './empty' is not installable. Neither 'setup.py' nor 'pyproject.toml' found.", ""),
        ("gone.whl", "[Errno 2] No such file or directory: '/project/gone.whl'", ""),
        ("bad.whl", "Invalid wheel filename", ""),
        ("torch ; no_such == 1", "Invalid requirement: 'torch'", ""),
        ("numpy>=1.0+local", "Invalid requirement: 'numpy>=1.0+local'", ""),
        ("name @ ./folder", "Invalid URL given", ""),
        ("file://host.example/a", "non-local file URIs", ""),
    ],
)
def test_refusals(text: str, message: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_editables() -> None:
    assert editable("./pkg").path == "/project/pkg"
    assert editable("pkg[dev]").extras == ("dev",)
    assert editable("git+https://x.example/r.git#egg=n").name == "n"
    assert editable("n @ git+https://x.example/r.git").url == "git+https://x.example/r.git"
    assert editable("file:///a/b#egg=c").name == "c"
    assert editable("file:./b#egg=c").path.startswith("/")
    assert all(editable(text).editable for text in ("./pkg", "n @ git+https://x.example/r.git"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torch", "is not a valid editable requirement"),
        ("https://x.example/a.zip", "is not a valid editable requirement"),
        ("git+https://x.example/r.git", "Could not detect requirement name"),
    ],
)
def test_bad_editables(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        editable(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch>=1.7.1+cu110", "torch>=1.7.1"),
        ("torch==2.5.1+cu121", "torch==2.5.1"),
        ("torch===2.5.1+cu121", "torch==2.5.1"),
        ("torchvision~=0.20+cu121", "torchvision~=0.20"),
        ("Torch[x] >= 2.0+cu118, < 3.0+cu118", "Torch[x] >= 2.0, < 3.0"),
        ("torch (>=2.0+cu118)", "torch (>=2.0)"),
        ("torch==2.9.1+rocm6.4", "torch==2.9.1+rocm6.4"),
        ("torch>=2.9.1+rocm6.4", "torch>=2.9.1"),
        ("torch!=2.5.1+cu121", "torch!=2.5.1+cu121"),
        ("torchmetrics==1.0+cu1", "torchmetrics==1.0+cu1"),
        ("torch-scatter>=1.0+cu1", "torch-scatter>=1.0+cu1"),
        (
            "torch @ https://x.example/torch-2.0+cu118-py3-none-any.whl",
            "torch @ https://x.example/torch-2.0+cu118-py3-none-any.whl",
        ),
    ],
)
def test_labels(text: str, expected: str) -> None:
    notes: list[str] = []
    assert without_cuda_label(text, TORCH_FAMILY, notes) == expected
    assert bool(notes) == (text != expected)


@given(
    st.sampled_from(["torch", "torchvision", "Torchaudio"]),
    st.sampled_from(["==", ">=", "<=", "~=", "<", ">", "!="]),
    st.from_regex(r"\A[0-9]\.[0-9]{1,2}\Z"),
    st.sampled_from(["cu121", "cu118", "cu130"]),
)
def test_a_cuda_label_never_makes_a_family_requirement_unreadable(name: str, operator: str, version: str, label: str) -> None:
    line = read(f"{name}{operator}{version}+{label}")
    assert line.name == name.lower()
    assert operator == "!=" or "+cu" not in line.specifier


def test_the_note_says_what_was_read(ask: Any) -> None:
    request, _ = ask("install", ["torch>=1.7.1+cu110 ; python_version>'3'"])
    assert request.requirements[0].specifier == ">=1.7.1"
    assert request.requirements[0].text == "torch>=1.7.1; python_version>'3'"
    assert any("torch>=1.7.1+cu110" in note for note in request.notes)


@given(st.text(max_size=60))
def test_any_text_is_a_requirement_or_an_input_error(text: str) -> None:
    try:
        line = read(text)
    except InputError:
        return
    assert line.name or line.url or line.path
