"""Sizes in a plan: asked of the server where the page does not tell, once, and never at the price of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rocmpip.app.sizes import with_sizes
from rocmpip.index.client import Client
from rocmpip.model.packages import File
from rocmpip.model.plan import Plan, PlanItem
from rocmpip.model.request import IndexOptions
from rocmpip.report.plan import plan_lines


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(IndexOptions(), env={}) as opened:
        yield opened


def wheel(url: str, size: int | None = None) -> File:
    return File("torch-2.9.1+rocm6.4-cp311-cp311-linux_x86_64.whl", url, index="https://pypi.example/simple", size=size)


def test_a_server_is_asked_for_the_size_that_its_page_leaves_out(client: Client, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/torch.whl", method="HEAD").respond_with_response(Response(headers={"Content-Length": "4321"}))
    assert client.size(wheel(httpserver.url_for("/torch.whl"))) == 4321
    assert client.size(wheel(httpserver.url_for("/torch.whl"), size=7)) == 7
    assert [request.method for request, _ in httpserver.log] == ["HEAD"]


@pytest.mark.parametrize("status", [403, 404, 405, 500, 501, 503])
def test_a_server_that_does_not_tell_is_asked_once(client: Client, httpserver: HTTPServer, status: int) -> None:
    httpserver.expect_request("/torch.whl").respond_with_data("no", status=status)
    assert client.size(wheel(httpserver.url_for("/torch.whl"))) is None
    assert len(httpserver.log) == 1


def test_no_server_no_size(client: Client) -> None:
    assert client.size(wheel("http://127.0.0.1:9/torch.whl")) is None
    assert client.size(wheel("file:///tmp/torch.whl")) is None


def test_the_plan_tells_the_sum_and_what_it_does_not_know() -> None:
    items = (
        PlanItem("torch", "2.9.1+rocm6.4", "install", "index", wheel("https://a.example/torch.whl"), because=("asked for",)),
        PlanItem("other", "1", "install", "index", wheel("https://a.example/other.whl"), because=("asked for",)),
        PlanItem("here", "1", "keep", "index", None, "1", because=("already installed and fits",)),
    )
    plan = with_sizes(Plan(items), lambda file: 4_300_000_000 if "torch" in file.url else None)
    assert [item.file.size if item.file else None for item in plan.items] == [4_300_000_000, None, None]
    assert "To download: 4.3 GB in 2 files (1 of unknown size not counted)" in plan_lines(plan)
