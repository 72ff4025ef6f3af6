"""Within a watched pip: files that rocmpip has fetched already, to plan with, are answered for from disk.

Run by ``watched.py`` in the target's interpreter, so its syntax is old and it imports nothing of ours. A link to the copy on the
router's page would spare the second download too, but pip keys the wheels that it builds and caches by their link: those must stay
what they are without rocmpip.

pip's HTTP library is told at the moment pip loads it, by the method through which that library lets anybody answer for a URL. A pip
with another library, or another method, fetches the files itself, and so it does with every file that is not in the table.
"""

import sys

LIBRARY = "pip._vendor.requests.adapters"


def hand_over(path: str) -> None:
    """``path``: a JSON file, URL → path of the file that is there."""
    import json
    from urllib.parse import unquote

    try:
        with open(path, encoding="utf-8") as stream:
            known = {unquote(url): place for url, place in json.load(stream).items()}
    except (OSError, ValueError):
        return
    _when_loaded(LIBRARY, lambda module: _answer_for(known, module))


def _answer_for(known: "dict[str, str]", library: "object") -> None:
    import os
    from urllib.parse import unquote

    try:
        adapter, make = library.HTTPAdapter, library.Response  # type: ignore[attr-defined]
        fetch = adapter.send
    except AttributeError:
        return

    def send(self: "object", request: "object", *args: object, **more: object) -> "object":
        url, headers = request.url, request.headers  # type: ignore[attr-defined]
        place = known.get(unquote(url)) if request.method == "GET" and "Range" not in headers else None  # type: ignore[attr-defined]
        try:
            body = open(place, "rb") if place else None  # noqa: SIM115 - pip reads and closes it
        except OSError:
            body = None
        if body is None:
            return fetch(self, request, *args, **more)
        response = make()
        response.status_code, response.reason, response.url = 200, "OK", url
        response.request, response.raw = request, body
        response.headers["Content-Type"] = "application/octet-stream"
        response.headers["Content-Length"] = str(os.fstat(body.fileno()).st_size)
        return response

    adapter.send = send


def _when_loaded(name: str, act: "object") -> None:
    """Call ``act`` with the module ``name``: now if it is loaded, else when it has been."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        act(loaded)  # type: ignore[operator]
    else:
        sys.meta_path.insert(0, _Waiting(name, act))  # type: ignore[arg-type]


class _Waiting:
    """Finds nothing itself: it looks on while one module is loaded, and is gone then."""

    def __init__(self, name: str, act: "object") -> None:
        self._name, self._act = name, act

    def find_spec(self, name: str, path: "object" = None, target: "object" = None) -> "object":
        if name != self._name:
            return None
        import importlib.util

        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def loaded(module: "object") -> None:
            load(module)  # type: ignore[arg-type]
            self._act(module)  # type: ignore[operator]

        spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec
