"""``rocmpip router --export``: what another tool needs to get the same torch without rocmpip."""

from __future__ import annotations

from collections.abc import Mapping

from rocmpip.model.plan import FamilyChoice

TOOLS = ("uv", "pip")

_NAMES = ("torch", "torchvision", "torchaudio", "triton-rocm", "pytorch-triton-rocm", "rocm")


def export(tool: str, env: Mapping[str, str]) -> tuple[str, FamilyChoice]:
    """(the settings as text, the choice they hold) for this machine. Raises NoPlan, NetworkError."""
    from packaging.specifiers import SpecifierSet

    from rocmpip.app.family import choose
    from rocmpip.app.open_client import open_client
    from rocmpip.app.policy import standalone_context
    from rocmpip.plan.asked import Asked

    context = standalone_context(env)
    asked = Asked(family={name: SpecifierSet() for name in ("torch", "torchvision")})
    client = open_client(context)
    try:
        choice = choose(context, asked, client, extra={}, held={}, conflicts=())
    finally:
        client.close()
    return (_uv(choice) if tool == "uv" else _pip(choice)), choice


def _pins(choice: FamilyChoice) -> dict[str, str]:
    """name with its extras → version, torch first."""
    found = {}
    for name in _NAMES:
        if name in choice.pins:
            extras = choice.extras.get(name, ())
            found[f"{name}[{','.join(extras)}]" if extras else name] = choice.pins[name]
    return found


def _head(choice: FamilyChoice) -> list[str]:
    return [f"# {choice.family}, chosen by rocmpip for this machine:", *(f"#   {reason}" for reason in choice.because)]


def _uv(choice: FamilyChoice) -> str:
    """For pyproject.toml. An explicit index serves the names that point to it and no others."""
    names = sorted({name.partition("[")[0] for name in _pins(choice)} | {"torchaudio"})
    return "\n".join(
        (
            *_head(choice),
            "[tool.uv]",
            "constraint-dependencies = [",
            *(f'    "{name}=={version}",' for name, version in _pins(choice).items()),
            "]",
            "",
            "[[tool.uv.index]]",
            'name = "rocm"',
            f'url = "{choice.index_url}"',
            "explicit = true",
            "",
            "[tool.uv.sources]",
            *(f'{name} = {{ index = "rocm" }}' for name in names),
            "",
        )
    )


def _pip(choice: FamilyChoice) -> str:
    """A requirement file. pip knows no index for some names alone, so only exact versions keep the others' builds out."""
    return "\n".join(
        (
            *_head(choice),
            "# pip takes the highest version of every package from both indexes; these exact ones only exist on the second.",
            f"--extra-index-url {choice.index_url}",
            *(f"{name}=={version}" for name, version in _pins(choice).items()),
            "",
        )
    )
