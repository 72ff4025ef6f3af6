"""A local replica of pytorch.org, AMD's indexes and PyPI: their layouts, names, versions, tags and requirements, small wheels.

Five hosts on 127.0.0.1, as in reality: PyPI's pages, PyPI's files, pytorch.org's pages, its download host, AMD. Files are made
when they are first asked for. ``Replica`` is a context manager; ``env()`` is what rocmpip and pip need to meet it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import TracebackType

from rocmpip.demo.embedded import source_archive
from rocmpip.demo.site import Shelf, Site
from rocmpip.demo.surroundings import clean_environment
from rocmpip.demo.torchlike import setuptools_wheel, torch_wheel, triton_wheel
from rocmpip.demo.wheels import Artifact, Sdist, Wheel
from tests.support import replica_tables as tables

LINUX = 'platform_system == "Linux"'
SOURCES = Path(__file__).parent / "sources"


def sdist(name: str, version: str, folder: Path, requires: tuple[str, ...] = (), **fills: str) -> Sdist:
    """A source archive of ``folder``, with @VERSION@ and other @MARKS@ filled in."""
    files: dict[str, str | bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            text = path.read_text(encoding="utf-8")
            for mark, value in {"VERSION": version, **fills}.items():
                text = text.replace(f"@{mark}@", value)
            files[path.relative_to(folder).as_posix()] = text
    return Sdist(name, version, requires, files=files)


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdigit())


def pythons(torch: str) -> list[str]:
    minor = release(torch)[:2]
    return next(tags for since, tags in tables.PYTHONS if minor >= since).split()


def tag(python: str, platform: str) -> str:
    """``cp314t`` → ``cp314-cp314t-PLATFORM``."""
    return f"{python.rstrip('t')}-{python}-{platform}"


def platform_of(torch: str) -> str:
    """pytorch.org's platform tag: linux_x86_64 through 2.5, then manylinux_2_28."""
    return "manylinux_2_28_x86_64" if release(torch) >= (2, 6) else "linux_x86_64"


def vision_wheel(version: str, torch: str, label: str, tag: str, extras: Mapping[str, str] | None = None) -> Wheel:
    pin = "torch>=2.14.0" if release(version) >= (0, 29, 1) else f"torch=={torch}"
    extra = [f'{need} ; extra == "{name}"' for name, need in (extras or {}).items()]
    return Wheel("torchvision", version + label, ("numpy", pin, "pillow!=8.3.*,>=5.3.0", *extra), tag=tag)


def audio_wheel(version: str, torch: str, label: str, tag: str) -> Wheel:
    pin = "torch>=2.11" if release(version) >= (2, 11) else f"torch=={torch}"
    return Wheel("torchaudio", version + label, (pin,), tag=tag)


@cache
def pure_wheels() -> tuple[Wheel, ...]:
    wheels = [
        Wheel(name, version, requires)
        for name, (versions, requires) in tables.PURE.items()
        for version in versions.split()
        if name != "packaging"
    ]
    parse = "def parse(text):\n    return tuple(text.split('.'))\n"
    for version in tables.PURE["packaging"][0].split():
        files = {"packaging/__init__.py": f'__version__ = "{version}"\n', "packaging/version.py": parse}
        wheels.append(Wheel("packaging", version, files=files))
    return (*wheels, setuptools_wheel("80.9.0"), setuptools_wheel("70.2.0"))


def triton_of(torch: str) -> tuple[str, str]:
    """(distribution, version) of the ROCm Triton that pytorch.org's ``torch`` requires."""
    name = "triton-rocm" if release(torch) >= (2, 10) else "pytorch-triton-rocm"
    return name, tables.TRITON[torch]


def rocm_sdist(version: str) -> Sdist:
    return sdist("rocm", version, SOURCES / "rocm", DEVICES=" ".join(tables.DEVICES))


class Replica:
    """``with Replica(tmp) as replica``: all hosts up. ``pypi``, ``files``, ``pytorch``, ``download``, ``amd`` are Sites."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pypi = Site(offers_json=True)
        self.files = Site()
        self.pytorch = Site(missing=403)
        self.download = Site(missing=403)
        self.amd = Site(missing=403)
        self.sites = (self.pypi, self.files, self.pytorch, self.download, self.amd)
        self.simple = Shelf(lambda artifact: self.files.put(f"/packages/{artifact.project}/", artifact))
        self.pypi.mount("/simple/", self.simple)
        self._pure = {wheel.filename: wheel for wheel in pure_wheels()}
        self._fill_pypi()
        for index in tables.PYTORCH:
            self._fill_pytorch(index)
        self._fill_channels()
        for prefix in tables.AMD:
            self._fill_amd(prefix)

    # The servers

    def __enter__(self) -> Replica:
        for site in self.sites:
            site.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for site in self.sites:
            site.stop()

    def add(self, *artifacts: Artifact) -> None:
        """Put more projects on the PyPI side."""
        self.simple.add(artifacts)

    def requests(self) -> list[str]:
        """Every path asked for so far, as ``host:path`` (pypi, files, pytorch, download, amd)."""
        names = ("pypi", "files", "pytorch", "download", "amd")
        return [f"{name}:{path}" for name, site in zip(names, self.sites, strict=True) for path in site.paths()]

    def forget(self) -> None:
        """Clear the record of requests and every failure set up."""
        for site in self.sites:
            site.requests.clear()
            site.failures.clear()

    def env(self, folder: Path | None = None, **extra: str) -> dict[str, str]:
        """The whole environment of a command that is to meet only this replica; its home, cache and state lie in ``folder``."""
        home = folder or self.folder
        (home / "home").mkdir(parents=True, exist_ok=True)
        return {
            **clean_environment(os.environ),
            "HOME": str(home / "home"),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.pypi.url + "/simple",
            "ROCMPIP_PYTORCH_URL": self.pytorch.url,
            "ROCMPIP_AMD_7_URL": self.amd.url + "/rocm/whl-multi-arch/",
            "ROCMPIP_AMD_10_URL": self.amd.url + "/rocm/whl-next/",
            "ROCMPIP_CACHE_DIR": str(home / "cache"),
            "ROCMPIP_STATE_DIR": str(home / "state"),
            "ROCMPIP_CONFIG": str(home / "config.toml"),
            **extra,
        }

    # What they hold

    def _fill_pypi(self) -> None:
        platform = "manylinux_2_28_x86_64"
        self.simple.add(self._pure.values())
        for version, (triton, vision, audio) in tables.CUDA_TORCH.items():
            for python in pythons(version):
                wheel_tag = tag(python, platform)
                requires = (*self._cuda_requires(version), f"{triton} ; {LINUX}")
                cuda = "12.8" if release(version) < (2, 11) else "13.0"
                self.simple.add(
                    [
                        torch_wheel(version, wheel_tag, requires=requires, cuda=cuda),
                        vision_wheel(vision, version, "", wheel_tag),
                        *([audio_wheel(audio, version, "", wheel_tag)] if audio else []),
                    ]
                )
        for version in ("3.0.0", "3.1.0", "3.2.0", "3.3.1", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0"):
            self.simple.add(triton_wheel("triton", version, tag(python, platform)) for python in pythons("2.9.1"))
        self.simple.add(Wheel(f"nvidia-{name}-cu12", "12.8.4.1", tag=f"py3-none-{platform}") for name in tables.CUDA12)
        self.simple.add(
            [
                Wheel("cuda-toolkit", "13.0.2", ('nvidia-cublas==13.1.0.3 ; extra == "cublas"',)),
                *(Wheel("cuda-bindings", "13.0.3", tag=tag(python, platform)) for python in pythons("2.14.1")),
                *(Wheel(f"nvidia-{name}", "13.1.0.3", tag=f"py3-none-{platform}") for name in ("cublas", "cuda-runtime")),
                *(Wheel(f"nvidia-{name}-cu13", "13.0.1", tag=f"py3-none-{platform}") for name in ("cudnn", "nccl")),
                Wheel("vllm", "0.33.0", ("torch==2.14.0", "numpy", "transformers>=4.56"), tag=f"cp38-abi3-{platform}"),
                Wheel("xformers", "0.0.35", ("torch>=2.10", "numpy"), tag=f"cp39-abi3-{platform}"),
                Wheel("bitsandbytes", "0.50.2", ("torch<3,>=2.3", "numpy>=1.17"), tag="py3-none-manylinux_2_24_x86_64"),
            ]
        )
        self.simple.add(Wheel(name, version) for name, version in tables.PLACEHOLDERS.items())
        self.simple.add(
            source_archive("flash_attn", version, "flash-attn") for version in ("2.7.4.post1", "2.8.3", "2.8.3.post2")
        )
        self.simple.add(
            [
                sdist(
                    "deepspeed", "0.19.8", SOURCES / "deepspeed", ("einops", "hjson", "packaging>=20.0", "torch>=2.0.0", "tqdm")
                ),
                sdist("tiny-torch-ext", "1.0", SOURCES / "tiny-torch-ext", ("torch",)),
                sdist("broken-torch-ext", "1.0", SOURCES / "broken-torch-ext", ("torch",)),
            ]
        )

    @staticmethod
    def _cuda_requires(version: str) -> tuple[str, ...]:
        if release(version) >= (2, 11):
            return (
                f"cuda-toolkit[cublas]==13.0.2 ; {LINUX}",
                f"cuda-bindings>=13.0.3 ; {LINUX}",
                f"nvidia-cudnn-cu13==13.0.1 ; {LINUX}",
                f"nvidia-nccl-cu13==13.0.1 ; {LINUX}",
            )
        machine = f'{LINUX} and platform_machine == "x86_64"'
        return tuple(f"nvidia-{name}-cu12==12.8.4.1 ; {machine}" for name in tables.CUDA12)

    def _pytorch_shelf(self, path: str, *, hashes: bool = True) -> Shelf:
        shelf = Shelf(lambda artifact: self.download.put(f"/whl/{path}/", artifact), hashes=hashes)
        mirrored = ("filelock-3.16.0", "sympy-1.13.3", "numpy-1.26.4", "setuptools-70.2.0", "requests-2.31.0", "jinja2-3.1.4")
        shelf.add(wheel for name, wheel in self._pure.items() if name.startswith(mirrored))
        self.pytorch.mount(f"/whl/{path}/", shelf)
        return shelf

    def _family(
        self,
        rows: Iterable[tuple[str, str, str]],
        label: str,
        triton: tuple[str, str],
        *,
        rocm: str,
        needs: tuple[str, ...] = (),
    ) -> list[Artifact]:
        """Wheels of (torch, vision, audio) ``rows`` ("" for none) for every Python, all with ``label`` and one Triton."""
        made: dict[str, Artifact] = {}
        for torch, vision, audio in rows:
            platform = platform_of(torch)
            marker = f'{LINUX} and platform_machine == "x86_64"'
            for python in pythons(torch):
                wheel_tag = tag(python, platform)
                requires = (f"{triton[0]}=={triton[1]} ; {marker}", *needs)
                wheels: list[Artifact] = [torch_wheel(torch + label, wheel_tag, requires=requires, rocm=rocm)]
                wheels += [vision_wheel(vision, torch, label, wheel_tag)] if vision else []
                wheels += [audio_wheel(audio, torch, label, wheel_tag)] if audio else []
                wheels.append(triton_wheel(*triton, wheel_tag))
                made.update((wheel.filename, wheel) for wheel in wheels)
        return list(made.values())

    def _fill_pytorch(self, index: str) -> None:
        shelf = self._pytorch_shelf(index)
        torches, visions, audios = (versions.split() for versions in tables.PYTORCH[index])
        needs = ("rocm[libraries,device-all]==7.14.*",) if index == "rocm7.14" else ()
        seen: set[str] = set()
        for position, torch in enumerate(torches):
            vision = visions[position]
            audio = audios[position] if position < len(audios) else ""
            family = self._family(
                [(torch, vision, audio)], f"+{index}", triton_of(torch), rocm=index.removeprefix("rocm"), needs=needs
            )
            shelf.add(wheel for wheel in family if wheel.filename not in seen)
            seen.update(wheel.filename for wheel in family)
        if index == "rocm7.14":
            # The SDK is not mirrored: its pages here link to AMD's server.
            shelf.add(self._sdk(["7.14.0", "7.14.0.post1"]), lambda item: self.amd.put("/rocm/whl-multi-arch/", item))
        if index == "rocm7.1":
            shelf.add([Wheel("xformers", "0.0.35", ("torch>=2.10", "numpy"), tag="cp39-abi3-manylinux_2_28_x86_64")])

    def _fill_channels(self) -> None:
        """Nightly (no hashes), release candidates, and the CUDA and CPU indexes that are traps."""
        for index, rocm in (("rocm7.14", "7.14"), ("rocm10.0", "10.0")):
            shelf = self._pytorch_shelf(f"nightly/{index}", hashes=False)
            sdk = ["7.14.0", "7.14.0.post1"] if rocm == "7.14" else ["10.0.0"]
            prefix = "/rocm/whl-multi-arch/" if rocm == "7.14" else "/rocm/whl-next/"
            for day in ("20261119", "20261120"):
                rows = [(f"2.15.0.dev{day}", f"0.30.0.dev{day}", "")]
                triton = ("triton-rocm", f"3.8.0+git{day[1:]}")
                needs = (f"rocm[libraries,device-all]=={rocm}.*",)
                shelf.add(self._family(rows, f"+{index}", triton, rocm=rocm, needs=needs))
            shelf.add(self._sdk(sdk), lambda item, prefix=prefix: self.amd.put(prefix, item))  # type: ignore[misc]
        test = self._pytorch_shelf("test/rocm7.14")
        needs = ("rocm[libraries,device-all]==7.14.*",)
        test.add(self._family([("2.15.0", "0.30.0", "")], "+rocm7.14", ("triton-rocm", "3.9.0"), rocm="7.14", needs=needs))
        test.add(self._sdk(["7.14.0.post1"]), lambda item: self.amd.put("/rocm/whl-multi-arch/", item))
        for index, versions in (("cu121", ("2.4.0", "2.5.1")), ("cu130", ("2.10.0", "2.14.1")), ("cpu", ("2.9.1", "2.14.1"))):
            shelf = self._pytorch_shelf(index)
            cuda = "" if index == "cpu" else f"{index[2:-1]}.{index[-1]}"
            for version in versions:
                for python in pythons(version):
                    requires = self._cuda_requires(version) if cuda else ()
                    wheel_tag = tag(python, platform_of(version))
                    shelf.add([torch_wheel(f"{version}+{index}", wheel_tag, requires=requires, cuda=cuda)])

    def _sdk(self, versions: Iterable[str]) -> list[Artifact]:
        platform = "py3-none-linux_x86_64"
        parts = ("core", "libraries", "devel", *(f"device-{gfx}" for gfx in tables.DEVICES))
        made: list[Artifact] = []
        for version in versions:
            made.append(rocm_sdist(version))
            made += [Wheel(f"rocm-sdk-{part}", version, tag=platform) for part in parts]
        return made

    def _fill_amd(self, prefix: str) -> None:
        def link(artifact: Artifact) -> str:
            self.amd.put(prefix, artifact)
            return "../" + artifact.filename.replace("+", "%2B")

        shelf = Shelf(link, core_metadata=prefix != "/rocm/whl-multi-arch/")
        self.amd.mount(prefix, shelf)
        versions, families = tables.AMD[prefix]
        shelf.add(self._sdk(versions.split()))
        platform = "linux_x86_64"
        tritons: dict[str, Artifact] = {}
        for torch, vision, audio, triton, rocm in families:
            label, triton_version = f"+rocm{rocm}", f"{triton}.rocm{rocm}"
            pins = {f"device-{gfx}": (f"rocm[device-{gfx}]=={rocm}", gfx) for gfx in tables.DEVICES}
            extras = [
                f'{need} ; extra == "{extra}"'
                for extra, (sdk, gfx) in pins.items()
                for need in (sdk, f"amd-torch-device-{gfx}=={torch}{label}")
            ]
            vision_extras = {extra: f"amd-torchvision-device-{gfx}=={vision}{label}" for extra, (_, gfx) in pins.items()}
            for python in pythons(torch):
                wheel_tag = tag(python, platform)
                requires = (f"triton=={triton_version} ; {LINUX}", f"rocm[libraries]=={rocm}", *extras)
                shelf.add(
                    [
                        torch_wheel(torch + label, wheel_tag, requires=requires, rocm=rocm),
                        vision_wheel(vision, torch, label, wheel_tag, vision_extras),
                        audio_wheel(audio, torch, label, wheel_tag),
                    ]
                )
                wheel = triton_wheel("triton", triton_version, wheel_tag)
                tritons.setdefault(wheel.filename, wheel)
            for gfx in tables.DEVICES:
                for name, version in ((f"amd-torch-device-{gfx}", torch), (f"amd-torchvision-device-{gfx}", vision)):
                    shelf.add([Wheel(name, version + label, tag=f"py3-none-{platform}")])
        shelf.add(tritons.values())
