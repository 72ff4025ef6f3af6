"""Pages of real indexes: JSON, HTML, relative and absolute links, what is absent and what is no index."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from rocmpip.index.client import Client
from rocmpip.model.errors import NetworkError
from rocmpip.model.packages import Absent, File, Page
from tests.index.index_server import JSON, Reply, Site, html_page, json_page

Make = Callable[..., Client]
SHA = "ab" * 32


def files(found: Page | Absent) -> tuple[File, ...]:
    assert isinstance(found, Page), found
    return found.files


def test_a_json_page_with_every_key(site: Site, make_client: Make) -> None:
    row = {
        "filename": "torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl",
        "url": "../../files/torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl#frag",
        "hashes": {"sha256": SHA.upper(), "unknown": "xyz"},
        "requires-python": ">=3.10",
        "yanked": "broken on gfx906",
        "core-metadata": {"sha256": SHA},
        "size": 5,
        "upload-time": "2026-01-02T03:04:05Z",
        "provenance": None,
    }
    site.paths["/simple/torch/"] = json_page("torch", [row])
    (file,) = files(make_client().page(f"{site.url}/simple/", "Torch"))
    assert file.url == f"{site.url}/files/torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl"
    assert (file.hashes, file.requires_python, file.yanked) == ({"sha256": SHA}, ">=3.10", "broken on gfx906")
    assert (file.core_metadata, file.size, file.upload_time) == (f"sha256={SHA}", 5, "2026-01-02T03:04:05Z")
    assert (file.index, file.trusted) == (f"{site.url}/simple", False)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, None),
        ({"core-metadata": True}, ""),
        ({"core-metadata": False}, None),
        ({"dist-info-metadata": {"sha256": SHA}}, f"sha256={SHA}"),
        ({"data-dist-info-metadata": True}, ""),
        ({"core-metadata": False, "dist-info-metadata": True}, None),
        ({"core-metadata": {"sha256": "wrong-hash"}}, "sha256=wrong-hash"),
        ({"core-metadata": {"sha256": "no digest --hash=x"}}, "sha256=unreadable"),
        ({"core-metadata": {"sha256": ""}}, ""),
        ({"core-metadata": {"blake2s": SHA}}, ""),
    ],
)
def test_how_json_advertises_metadata(site: Site, make_client: Make, keys: dict[str, object], expected: str | None) -> None:
    site.paths["/s/six/"] = json_page("six", [{"filename": "six-1-py3-none-any.whl", "url": "six-1-py3-none-any.whl", **keys}])
    assert files(make_client().page(f"{site.url}/s", "six"))[0].core_metadata == expected


def test_pytorch_html_with_absolute_links_to_another_host(site: Site, make_client: Make) -> None:
    site.paths["/whl/rocm6.4/torch/"] = html_page(
        f"""<!DOCTYPE html><html><body><h1>Links for torch</h1>
        <a href="https://files.example/whl/rocm6.4/torch-2.9.1%2Brocm6.4-cp312-cp312-manylinux_2_28_x86_64.whl#sha256={SHA}"
           data-dist-info-metadata="sha256={SHA}" data-core-metadata="sha256={SHA}" data-upload-time="2026-01-01T00:00:00Z"
           >torch-2.9.1+rocm6.4-cp312-cp312-manylinux_2_28_x86_64.whl</a><br/>
        <a href="https://files.example/nightly/torch-2.11.0.dev20260101%2Brocm7.1-cp312-cp312-linux_x86_64.whl">x</a>
        </body></html><!--TIMESTAMP 1-->"""
    )
    stable, nightly = files(make_client().page(f"{site.url}/whl/rocm6.4", "torch"))
    assert stable.filename == "torch-2.9.1+rocm6.4-cp312-cp312-manylinux_2_28_x86_64.whl"
    assert stable.url.startswith("https://files.example/whl/rocm6.4/torch-2.9.1%2Brocm6.4")
    assert (stable.hashes, stable.core_metadata) == ({"sha256": SHA}, f"sha256={SHA}")
    assert stable.upload_time == "2026-01-01T00:00:00Z"
    assert (nightly.hashes, nightly.core_metadata) == ({}, None)


def test_html_attributes_are_read_as_browsers_do(site: Site, make_client: Make) -> None:
    site.paths["/s/six/"] = html_page(
        """<html><head><base href="/files/"></head><body>
        <!-- <a href="six-0-py3-none-any.whl">no</a> --><script>"<a href='six-00-py3-none-any.whl'>"</script>
        <A HREF=six-1-py3-none-any.whl data-requires-python="&gt;=3.8">a</A>
        <a data-yanked href='six-2-py3-none-any.whl' data-requires-python=">=3.9,<4">b</a>
        <a href="six-3.tar.gz" data-yanked="say &quot;no&quot;" data-core-metadata="true" data-dist-info-metadata=false>c</a>
        <a name="top">d</a><a href="../">up</a><a href="six-4-py3-none-any.whl.asc">sig</a>"""
    )
    one, two, three = files(make_client().page(f"{site.url}/s", "six"))
    assert (one.url, one.requires_python, one.yanked) == (f"{site.url}/files/six-1-py3-none-any.whl", ">=3.8", None)
    assert (two.requires_python, two.yanked) == (">=3.9,<4", "")
    assert (three.yanked, three.core_metadata) == ('say "no"', "")


def test_links_are_relative_to_where_a_redirect_led(site: Site, make_client: Make) -> None:
    site.paths["/simple/six/"] = Reply(status=301, headers={"Location": "/mirror/a/six/"})
    site.paths["/mirror/a/six/"] = html_page('<title>Links for six</title><a href="six-1-py3-none-any.whl">x</a>')
    assert files(make_client().page(f"{site.url}/simple", "six"))[0].url == f"{site.url}/mirror/a/six/six-1-py3-none-any.whl"


@pytest.mark.parametrize("status", [403, 404, 410])
def test_what_is_not_there_is_absent(site: Site, make_client: Make, status: int) -> None:
    site.paths["/s/nothing/"] = Reply(b"<html>no</html>", status)
    assert make_client().page(f"{site.url}/s", "nothing") == Absent("nothing", f"{site.url}/s", f"HTTP {status}")
    assert site.asked("/s/nothing/") == 1


@pytest.mark.parametrize(
    "page",
    [
        json_page("six", []),
        html_page("<!DOCTYPE html><html><head><title>Links for six</title></head><body></body></html>"),
        html_page("<html><body></body></html>"),
        html_page("<html><head><meta name='pypi:repository-version' content='1.0'></head><body>None yet</body></html>"),
        html_page("<title>Index of /six</title><a href='?C=N;O=D'>Name</a><a href='../'>Parent Directory</a>"),
    ],
)
def test_an_empty_page_is_absent(site: Site, make_client: Make, page: Reply) -> None:
    site.paths["/s/six/"] = page
    assert isinstance(make_client().page(f"{site.url}/s", "six"), Absent)


def test_gzip_and_chunks(site: Site, make_client: Make) -> None:
    body = gzip.compress(json_page("six", [{"filename": "six-1.zip", "url": "six-1.zip"}]).body)
    chunks = (
        b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:10], body[10:11], body[11:])) + b"0\r\nX-T: 1\r\n\r\n"
    )
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
    site.paths["/s/six/"] = Reply(chunks, headers=headers)
    client = make_client()
    assert [file.filename for file in files(client.page(f"{site.url}/s", "six"))] == ["six-1.zip"]
    site.paths["/s/other/"] = json_page("other", [])
    assert isinstance(client.page(f"{site.url}/s", "other"), Absent)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (html_page("<html><h1>Welcome to nginx!</h1><a href='https://nginx.example/'>docs</a></html>"), "web page"),
        (
            html_page("<html><body><form><input name='password'></form>Please log in to the guest network</body></html>"),
            "web page",
        ),
        (html_page("<title>500</title>" + "x" * 100), "web page"),
        (Reply(b"\x00\xff\xfe" * 50, headers={"Content-Type": "text/html"}), "web page"),
        (Reply(b"torch 2.9", headers={"Content-Type": "text/plain"}), "text/plain"),
        (Reply(b"{", headers={"Content-Type": JSON}), "broken"),
        (Reply(b"\xff\xff", headers={"Content-Type": JSON}), "broken"),
        (Reply(b"[]", headers={"Content-Type": JSON}), "Expected `object`"),
        (Reply(b'{"meta": {}, "name": "six"}', headers={"Content-Type": JSON}), "files"),
        (Reply(b'{"files": [{"filename": "a", "url": 3}]}', headers={"Content-Type": JSON}), "url"),
        (Reply(b'{"files": [{"filename": "a", "url": "a", "hashes": []}]}', headers={"Content-Type": JSON}), "hashes"),
        (Reply(b'{"meta": {"api-version": "2.0"}, "files": []}', headers={"Content-Type": JSON}), "version 2.0"),
        (html_page("<meta name='pypi:repository-version' content='2.1'><a href='six-1.zip'>x</a>"), "version 2.1"),
        (json_page("six", [{"filename": "seven-1-py3-none-any.whl", "url": "x"}]), "other projects"),
        (Reply(b"[" * 100000, headers={"Content-Type": JSON}), "JSON"),
    ],
)
def test_what_is_no_index_is_an_error_that_names_url_and_package(site: Site, make_client: Make, reply: Reply, why: str) -> None:
    site.paths["/s/six/"] = reply
    with pytest.raises(NetworkError) as caught:
        make_client().page(f"{site.url}/s", "six")
    assert f"{site.url}/s/six/" in caught.value.message
    assert "six" in caught.value.message
    assert why in caught.value.why
    assert caught.value.exit_code == 42


def test_files_of_other_projects_and_unsafe_names_are_left_out(site: Site, make_client: Make) -> None:
    names = [
        "six-1-py3-none-any.whl",
        "six_extra-1-py3-none-any.whl",
        "sixty-1.tar.gz",
        "six-2.tar.gz",
        "../six-3.tar.gz",
        "six-4.tar.gz\nevil",
        "six-5-py3-none.whl",
        "six-1.0.exe",
        "",
    ]
    site.paths["/s/six/"] = json_page("six", [{"filename": name, "url": "f"} for name in names])
    assert [file.filename for file in files(make_client().page(f"{site.url}/s", "six"))] == [names[0], names[3]]


def test_a_server_cannot_point_into_this_machine(site: Site, make_client: Make) -> None:
    rows = [{"filename": "six-1.zip", "url": url} for url in ("file:///etc/six-1.zip", "javascript:x", "ftp://h/six-1.zip")]
    site.paths["/s/six/"] = json_page("six", [*rows, {"filename": "six-2.zip", "url": "//h.example/six-2.zip"}])
    assert [file.url for file in files(make_client().page(f"{site.url}/s", "six"))] == ["http://h.example/six-2.zip"]


def test_credentials_in_links_are_taken_out_and_used(site: Site, make_client: Make) -> None:
    site.paths["/s/six/"] = json_page("six", [{"filename": "six-1.zip", "url": f"http://me:s3cret@127.0.0.1:{site.port}/f"}])
    site.paths["/f"] = Reply(b"data")
    client = make_client()
    (file,) = files(client.page(f"{site.url}/s", "six"))
    assert file.url == f"{site.url}/f"
    with client.open(file) as response:
        assert b"".join(response.chunks()) == b"data"
    assert site.requests[-1][1]["authorization"] == "Basic bWU6czNjcmV0"


def test_plain_http_from_elsewhere_is_ignored_unless_trusted(make_client: Make) -> None:
    found = make_client().page("http://index.example/simple", "six")
    assert isinstance(found, Absent)
    assert "--trusted-host" in found.reason
    assert make_client().secure("https://index.example/")
    assert make_client(trusted_hosts=("index.example",)).secure("http://index.example/x")
    assert not make_client(trusted_hosts=("index.example:8080",)).secure("http://index.example/x")


def test_files_say_whether_their_host_is_trusted(site: Site, make_client: Make) -> None:
    rows = [{"filename": f"six-{place}.zip", "url": url} for place, url in enumerate(("x", "http://other.example/x"))]
    site.paths["/s/six/"] = json_page("six", rows)
    found = files(make_client(trusted_hosts=("other.example",)).page(f"{site.url}/s", "six"))
    assert [file.trusted for file in found] == [False, True]


def test_local_indexes(tmp_path: Path, make_client: Make) -> None:
    (tmp_path / "six").mkdir()
    (tmp_path / "six/six-1-py3-none-any.whl").write_bytes(b"")
    (tmp_path / "six/readme.txt").write_bytes(b"")
    (tmp_path / "seven").mkdir()
    (tmp_path / "seven/index.html").write_text('<a href="../pool/seven-2.tar.gz#sha256=' + SHA + '">x</a>')
    client = make_client()
    assert [file.url for file in files(client.page(tmp_path.as_uri(), "six"))] == [
        (tmp_path / "six/six-1-py3-none-any.whl").as_uri()
    ]
    (seven,) = files(client.page(str(tmp_path), "seven"))
    assert (seven.url, seven.hashes) == ((tmp_path / "pool/seven-2.tar.gz").as_uri(), {"sha256": SHA})
    assert isinstance(client.page(tmp_path.as_uri(), "eight"), Absent)
    with pytest.raises(NetworkError, match="no index"):
        client.page("no-such-folder", "six")


def test_the_indexes_of_the_user_in_pips_order(make_client: Make) -> None:
    client = make_client(
        index_url="https://me:pw@a.example/simple/", extra_index_urls=("https://b.example/x", "https://a.example/simple")
    )
    assert client.indexes() == ("https://a.example/simple", "https://b.example/x")
    assert make_client(no_index=True).indexes() == ()
    assert len(make_client(extra_index_urls=("https://b.example/x",)).indexes()) == 2


def test_find_links_of_every_shape(site: Site, tmp_path: Path, make_client: Make) -> None:
    (tmp_path / "six-1.zip").write_bytes(b"123")
    (tmp_path / "links.html").write_text('<a href="seven-1-py3-none-any.whl">x</a><a href="https://h.example/six-2.zip">y</a>')
    site.paths["/dir/"] = html_page(
        '<h1>Index of /dir/</h1><a href="../">../</a><a href="torch-2.4.0%2Brocm6.1-cp310-cp310-linux_x86_64.whl">t</a>'
    )
    client = make_client()
    (one,) = client.find_links(str(tmp_path))
    assert (one.filename, one.size, one.url) == ("six-1.zip", 3, (tmp_path / "six-1.zip").as_uri())
    assert client.find_links(tmp_path.as_uri()) == (replace(one, index=tmp_path.as_uri()),)
    assert [file.url for file in client.find_links(str(tmp_path / "links.html"))] == [
        (tmp_path / "seven-1-py3-none-any.whl").as_uri(),
        "https://h.example/six-2.zip",
    ]
    assert [file.filename for file in client.find_links(f"{site.url}/dir/")] == [
        "torch-2.4.0+rocm6.1-cp310-cp310-linux_x86_64.whl"
    ]
    assert client.find_links(str(tmp_path / "missing")) == ()
    assert client.find_links(f"{site.url}/missing/") == ()
    assert len(client.notes) == 2


def test_one_question_for_many_threads(site: Site, make_client: Make) -> None:
    import threading

    site.paths["/s/six/"] = json_page("six", [{"filename": "six-1.zip", "url": "x"}])
    client = make_client()
    found: list[Page | Absent] = []
    threads = [threading.Thread(target=lambda: found.append(client.page(f"{site.url}/s", "six"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert site.asked("/s/six/") == 1


def test_connections_are_kept(site: Site, make_client: Make) -> None:
    ports = set()

    def answer(handler: object) -> Reply:
        ports.add(handler.client_address[1])  # type: ignore[attr-defined]
        return Reply(json.dumps({"files": []}).encode(), headers={"Content-Type": JSON})

    client = make_client()
    for number in range(10):
        site.paths[f"/s/p{number}/"] = answer
        client.page(f"{site.url}/s", f"p{number}")
    assert len(ports) == 1


def test_requirement_text(site: Site, tmp_path: Path, make_client: Make) -> None:
    site.paths["/r.txt"] = Reply("torch # é\n".encode("latin-1"), headers={"Content-Type": "text/plain; charset=latin-1"})
    site.paths["/bom.txt"] = Reply(b"\xef\xbb\xbftorch")
    client = make_client()
    assert client.requirement_text(f"{site.url}/r.txt") == "torch # é\n"
    assert client.requirement_text(f"{site.url}/bom.txt") == "torch"
    (tmp_path / "r.txt").write_text("six")
    assert client.requirement_text((tmp_path / "r.txt").as_uri()) == "six"
    with pytest.raises(NetworkError, match=r"none\.txt"):
        client.requirement_text(f"{site.url}/none.txt")
