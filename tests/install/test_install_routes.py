"""While a plan is carried out its names have its files; what stands in for a build that is still to be made is never handed to pip."""

from __future__ import annotations

from rocmpip.app.policy import pinned_route
from rocmpip.model.packages import File
from rocmpip.model.routing import Route
from rocmpip.router.alias import alias_wheel, static_metadata, virtual_wheel

STAND_IN = virtual_wheel("flash-attn", "2.8.3", static_metadata("flash-attn", "2.8.3", ("torch",)))
SOURCE = File("flash_attn-2.8.2.tar.gz", "https://h.example/flash_attn-2.8.2.tar.gz")
BUILT = File("flash_attn-2.8.3-cp312-cp312-linux_x86_64.whl", "file:///w/flash_attn-2.8.3-cp312-cp312-linux_x86_64.whl")


def planned(name: str) -> Route:
    if name == "flash-attn":
        return Route(name, "recipe", synthetic=(STAND_IN,), files=(SOURCE,))
    return Route(name, "plain", ("https://pypi.example/simple",))


def test_a_stand_in_is_gone_and_the_built_wheel_takes_its_place() -> None:
    files: dict[str, File] = {}
    route = pinned_route(files, {}, planned)
    assert (route("flash-attn").synthetic, route("flash-attn").files) == ((), (SOURCE,))
    files["flash-attn"] = BUILT
    assert (route("flash-attn").kind, route("flash-attn").files) == ("pinned", (BUILT,))


def test_a_dry_run_may_see_it() -> None:
    assert pinned_route({}, {}, planned, real=False)("flash-attn").synthetic == (STAND_IN,)


def test_aliases_and_other_names_are_as_planned() -> None:
    alias = alias_wheel("triton", "3.5.1", "triton-rocm==3.5.1")
    route = pinned_route({}, {"triton": alias}, planned)
    assert route("triton").synthetic == (alias,)
    assert route("numpy") == planned("numpy")
