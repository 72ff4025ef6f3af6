"""Where the indexes stand: the catalogue's own roots, or the user's mirrors."""

from __future__ import annotations

PYTORCH = "https://download.pytorch.org/"
AMD_7 = "https://repo.amd.com/rocm/whl-multi-arch/"
AMD_10 = "https://stable.repo.amd.com/rocm/whl-next/"
_AMD_NIGHTLIES = "https://rocm.nightlies.amd.com/"


def roots(pytorch: str = "", amd_7: str = "", amd_10: str = "") -> dict[str, str]:
    """Root name → URL with a slash at its end, "" for a place that cannot be known (then it is not asked).

    A mirror of one root never lets a request escape to the public host of its siblings: they are looked for beside the
    mirror where its layout shows how (``…/rocm/whl-multi-arch/`` → ``…/rocm/whl/``, ``stable.`` → ``nightly.``), else left out.
    """
    seven = slashed(amd_7 or AMD_7)
    ten = slashed(amd_10 or AMD_10)
    return {
        "pytorch": slashed(pytorch or PYTORCH),
        "amd_7": seven,
        "amd_7_families": _sibling(seven),
        "amd_7_nightly": _AMD_NIGHTLIES + "whl-multi-arch/" if seven == AMD_7 else "",
        "amd_7_nightly_families": _AMD_NIGHTLIES + "v2/" if seven == AMD_7 else "",
        "amd_10": ten,
        "amd_10_nightly": _stream(ten, "nightly"),
        "amd_10_rc": _stream(ten, "rc"),
    }


def slashed(url: str) -> str:
    return url if url.endswith("/") else url + "/"


def _sibling(multi_arch: str) -> str:
    head = multi_arch.removesuffix("whl-multi-arch/")
    return head + "whl/" if head != multi_arch else ""


def _stream(stable: str, stream: str) -> str:
    """AMD's 10.x streams are host names: ``https://stable.repo…`` → ``https://nightly.repo…``. A mirror has one stream: itself."""
    scheme, sep, rest = stable.partition("://")
    userinfo, at, host = rest.rpartition("@") if "@" in rest.partition("/")[0] else ("", "", rest)
    if sep and host.startswith("stable."):
        return f"{scheme}://{userinfo}{at}{stream}.{host.removeprefix('stable.')}"
    return stable
