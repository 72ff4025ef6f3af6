"""Names are looked up once for many connections, and every address of a name has its turn."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rocmpip.index.client import Client
from rocmpip.index.names import Names
from rocmpip.model.packages import Page
from tests.index.index_server import Site, json_page

Make = Callable[..., Client]


def rows(*places: str, port: int = 80) -> list[Any]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port)) for place in places]


def test_threads_that_ask_at_once_share_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    on_the_way = threading.Semaphore(0)

    def look_up(host: str, *args: Any, **more: Any) -> list[Any]:
        asked.append(host)
        assert all(on_the_way.acquire(timeout=20) for _ in range(8))
        return rows("127.0.0.1", "127.0.0.2", "127.0.0.1")

    def ask(_: int) -> list[str]:
        on_the_way.release()
        return names.addresses("files.example", 80)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    names = Names()
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == [["127.0.0.1", "127.0.0.2"]] * 8
    assert asked == ["files.example"]


def test_a_name_that_was_not_found_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [socket.gaierror(socket.EAI_AGAIN, "try again"), rows("127.0.0.1")]

    def look_up(*args: Any, **more: Any) -> list[Any]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    names = Names()
    with pytest.raises(socket.gaierror):
        names.addresses("files.example", 80)
    assert names.addresses("files.example", 80) == ["127.0.0.1"]


def test_the_next_address_is_tried_where_nobody_answers(site: Site, make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    site.paths["/s/torch/"] = json_page(
        "torch", [{"filename": "torch-2.9.1.tar.gz", "url": "torch-2.9.1.tar.gz", "hashes": {}}]
    )
    real = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **more: Any) -> list[Any]:
        # The site listens on 127.0.0.1 alone.
        return rows("127.0.0.9", "127.0.0.1", port=site.port) if host == "files.example" else real(host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    page = make_client(retries=0, trusted_hosts=("files.example",)).page(f"http://files.example:{site.port}/s", "torch")
    assert isinstance(page, Page)
    assert [file.filename for file in page.files] == ["torch-2.9.1.tar.gz"]
