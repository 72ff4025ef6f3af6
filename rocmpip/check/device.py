"""Driver, device files, kernel and firmware, WSL2: can programs reach the GPU at all?"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence

from rocmpip.check.look import Look
from rocmpip.check.result import BROKEN, OK, SKIPPED, WARN, Check
from rocmpip.machine.driver import DXG, KERNEL, KFD_DEVICE, MODULE
from rocmpip.model.machine import Gpu

_NOBODY = 65534
"""What the kernel shows for a group that has no number in a user namespace (rootless containers)."""

KERNEL_FROM = {"gfx1151": ((6, 18, 4), "earlier kernels limit and leak its shared memory (GTT)")}
"""gfx → (recommended kernel, why). Source: the GPU table, Strix Halo."""

# Firmware of GPUs since RDNA3 is named after the graphics block's number (kernel: amdkfd/kfd_device.c maps it to the gfx).
_FIRMWARE = {
    "gfx1100": ("gc_11_0_0",), "gfx1101": ("gc_11_0_3",), "gfx1102": ("gc_11_0_2",), "gfx1103": ("gc_11_0_1", "gc_11_0_4"),
    "gfx1150": ("gc_11_5_0",), "gfx1151": ("gc_11_5_1",), "gfx1152": ("gc_11_5_2",), "gfx1153": ("gc_11_5_3",),
    "gfx1200": ("gc_12_0_0",), "gfx1201": ("gc_12_0_1",),
}  # fmt: skip
_FIRMWARE_FOLDERS = ("/lib/firmware/amdgpu", "/usr/lib/firmware/amdgpu", "/lib/firmware/updates/amdgpu")


def driver(look: Look) -> Check:
    """Is amdgpu loaded, did it take the GPU, and does it carry the installed ROCm?"""
    name, title = "driver", "amdgpu driver"
    platform = look.platform
    if platform.wsl:
        return Check(name, title, SKIPPED, why="WSL2 has no amdgpu module: Windows drives the GPU")
    if not platform.gpus and not platform.driver:
        return Check(name, title, SKIPPED, why="no AMD GPU and no amdgpu module are seen here")
    idle = [gpu for gpu in platform.gpus if gpu.node is None and gpu.location]
    if idle and not any(gpu.node is not None for gpu in platform.gpus):
        return _not_taken(look, idle, name, title)
    evidence = [f"amdgpu {platform.driver or 'loaded'} ({platform.driver_source or '/sys/class/kfd'})"]
    if not platform.gpus:
        evidence.append("/sys/class/kfd lists no GPU")
        why = "the driver is loaded, but offers no GPU for computing: it may be too old for it, or the kernel's log tells why"
        return Check(name, title, WARN, tuple(evidence), why, ("dmesg | grep -i -e amdgpu -e kfd",))
    window = look.catalogue.window(platform.driver)
    if window is not None and look.rocm is not None and look.kind in ("root", "distribution", "pip"):
        low, high = window.user_from, window.user_to
        carries = f"{low[0]}.{low[1]} to {high[0]}.{high[1]}"
        evidence += [f"driver {window.driver} carries ROCm {carries} ({window.source})", f"ROCm {look.rocm} ({look.root})"]
        if window.binding and not low <= look.rocm.minor <= high:
            what = "too old" if look.rocm.minor > high else "too new"
            why = f"this driver is {what} for ROCm {look.rocm}: programs may fail or hang"
            return Check(name, title, BROKEN, tuple(evidence), why, (look.install("amdgpu-dkms", "amdgpu-dkms"),))
    return Check(name, title, OK, tuple(evidence))


def _not_taken(look: Look, idle: Sequence[Gpu], name: str, title: str) -> Check:
    """A GPU on the bus that the compute driver does not list."""
    evidence = [", ".join(f"{gpu.gfx} ({gpu.pci_id}) at {gpu.location}" for gpu in idle) + " on the PCI bus"]
    if look.platform.driver:
        evidence += ["/sys/class/kfd lists no GPU", f"{MODULE} is loaded"]
        why = "the driver is loaded but did not take the GPU for computing: the kernel's log tells why"
        return Check(name, title, BROKEN, tuple(evidence), why, ("dmesg | grep -i -e amdgpu -e kfd",))
    evidence.append(f"{MODULE} is missing")
    fix = ["modprobe amdgpu"]
    blocked = _blocked(look)
    if blocked:
        evidence.append(f"{blocked} keeps the module from loading")
        fix.insert(0, f"sed -i '/^[[:space:]]*blacklist[[:space:]]\\+amdgpu/d' {blocked}")
    why = "the GPU's driver is not loaded, so no program can use it"
    return Check(name, title, BROKEN, tuple(evidence), why, tuple(fix))


def _blocked(look: Look) -> str:
    for file in look.names("/etc/modprobe.d"):
        path = f"/etc/modprobe.d/{file}"
        if any(line.split() == ["blacklist", "amdgpu"] for line in look.text(path).splitlines()):
            return path
    return ""


def devices(look: Look) -> Check:
    """Are /dev/kfd and the render nodes there, and may this user open them?"""
    name, title = "gpu-devices", "GPU device files and permissions"
    platform = look.platform
    if platform.wsl:
        return Check(name, title, SKIPPED, why="WSL2 offers the GPU as /dev/dxg")
    if not platform.gpus:
        if not look.exists(KFD_DEVICE):
            return Check(name, title, SKIPPED, why="no AMD GPU is seen here")
        return Check(name, title, OK, (f"{KFD_DEVICE} is there",))
    nodes = [f"/dev/dri/renderD{gpu.render_minor}" for gpu in platform.gpus if gpu.render_minor]
    wanted = list(dict.fromkeys([KFD_DEVICE, *nodes]))
    missing = [path for path in wanted if not look.exists(path)]
    if missing:
        return _missing(look, missing, name, title)
    denied = [path for path in wanted if not _may(look, path)]
    evidence = tuple(_shown(look, path) for path in wanted)
    if denied:
        return _denied(look, denied, (*evidence, _user(look)), name, title)
    return Check(name, title, OK, evidence)


def _missing(look: Look, missing: Sequence[str], name: str, title: str) -> Check:
    evidence = tuple(f"{path} is missing" for path in missing)
    if look.platform.container:
        options = "--device=/dev/kfd --device=/dev/dri"
        group = "".join(f" --group-add {gid}" for gid in _device_groups(look))
        program = "podman" if "containerenv" in look.platform.container_source else "docker"
        why = f"this container ({look.platform.container_source}) was started without the GPU's devices"
        return Check(name, title, BROKEN, evidence, why, (f'{program} run {options}{group} "$IMAGE"',))
    why = "the kernel knows the GPU, but its device file is not there, so no program can open it"
    fix = []
    for path in missing:
        number = look.text("/sys/class/kfd/kfd/dev").strip() if path == KFD_DEVICE else f"226:{path.rpartition('renderD')[2]}"
        major, _, minor = number.partition(":")
        if major.isdigit() and minor.isdigit():
            folder = path.rpartition("/")[0]
            fix += [f"mkdir -p {folder}", f"mknod -m 660 {path} c {major} {minor}"]
            fix += [f"chgrp render {path}"] if "render" in look.group_numbers else []
    return Check(name, title, BROKEN, evidence, why, tuple(fix) or ("modprobe amdgpu", "udevadm trigger"))


def _device_groups(look: Look) -> list[int]:
    found = [look.mode(path) for path in (KFD_DEVICE, *(f"/dev/dri/{node}" for node in look.names("/dev/dri")))]
    return sorted({one.st_gid for one in found if one is not None and one.st_gid not in (0, _NOBODY)})


def _may(look: Look, path: str) -> bool:
    """Can the user open it for reading and writing? For root: could anyone but root?"""
    found = look.mode(path)
    if found is None:
        return False
    mode = stat.S_IMODE(found.st_mode)
    who = look.who
    if who.uid == 0:
        return bool(mode & 0o066)
    if not who.simulated:
        return os.access(look.host(path), os.R_OK | os.W_OK)
    bits = 0o600 if who.uid == found.st_uid else 0o060 if found.st_gid in who.groups else 0o006
    return mode & bits == bits


def _shown(look: Look, path: str) -> str:
    found = look.mode(path)
    if found is None:
        return path
    group = look.group_names.get(found.st_gid, "no name here")
    return f"{path}: mode {stat.S_IMODE(found.st_mode):04o}, owner {found.st_uid}, group {found.st_gid} ({group})"


def _user(look: Look) -> str:
    numbers = ", ".join(
        f"{gid} ({look.group_names[gid]})" if gid in look.group_names else str(gid) for gid in sorted(look.who.groups)
    )
    return f"user {look.who.name} ({look.who.uid}) is in groups {numbers or 'none'}"


def _denied(look: Look, denied: Sequence[str], evidence: tuple[str, ...], name: str, title: str) -> Check:
    listed = look.listed_groups(look.who.name)
    join: dict[str, None] = {}
    make: list[str] = []
    repair: list[str] = []
    rootless = fresh = False
    for path in denied:
        found = look.mode(path)
        if found is None:
            continue
        mode, gid = stat.S_IMODE(found.st_mode), found.st_gid
        if look.who.uid == 0:
            repair += [f"chgrp render {path}"] if gid == 0 and "render" in look.group_numbers else []
            repair.append(f"chmod 660 {path}")
        elif gid == _NOBODY:
            rootless = True
        elif mode & 0o060 != 0o060 or gid == 0:
            # The rule of AMD's and the distributions' udev files: group render, 0660.
            if gid == 0 and "render" in look.group_numbers:
                repair.append(f"chgrp render {path}")
                join["render"] = None
            elif gid == 0:
                make.append("groupadd --system render")
                repair.append(f"chgrp render {path}")
                join["render"] = None
            else:
                join[look.group_names.get(gid, "rocm-render")] = None
            repair.append(f"chmod 660 {path}")
        elif gid in listed:
            fresh = True
        else:
            group = look.group_names.get(gid)
            if group is None:
                group = f"render-{gid}"
                make.append(f"groupadd -g {gid} {group}")
            join[group] = None
    why = f"{look.who.name} may not open {' and '.join(denied)}, so every GPU program fails or sees no GPU"
    if rootless:
        why += ": in a rootless container the host's groups must be kept"
        options = "--device=/dev/kfd --device=/dev/dri --group-add keep-groups"
        return Check(name, title, BROKEN, evidence, why, (f'podman run {options} "$IMAGE"',))
    if fresh and not join and not repair:
        group = next(
            look.group_names[gid] for gid in sorted(listed) if gid in {s.st_gid for p in denied if (s := look.mode(p))}
        )
        why += f". {look.who.name} is in the group since this session began: log in again, or open a new shell"
        return Check(name, title, BROKEN, evidence, why, (f"newgrp {group}",))
    if look.who.uid == 0:
        why = f"no user but root may open {' and '.join(denied)}"
        return Check(name, title, BROKEN, evidence, why, tuple(dict.fromkeys([*make, *repair])))
    names = [group for group in join if look.group_numbers.get(group) not in look.who.groups]
    if "render" in names and "video" in look.group_numbers and look.group_numbers["video"] not in look.who.groups:
        names.append("video")
    member = [f"usermod -aG {','.join(names)} {shlex.quote(look.who.name)}"] if names else []
    why += "; the new group counts from the next login on"
    if look.platform.container:
        numbers = " ".join(f"--group-add {gid}" for gid in _device_groups(look))
        why += f". In a container the same is done from outside by {numbers or '--group-add'} (numbers: names may differ)"
    return Check(name, title, BROKEN, evidence, why, tuple(dict.fromkeys([*make, *repair, *member])))


def kernel(look: Look) -> Check:
    """Notes on kernel and firmware for the GPUs that are there."""
    name, title = "kernel", "kernel and firmware for the GPU"
    if not look.platform.gpus or look.platform.wsl:
        return Check(
            name, title, SKIPPED, why="no AMD GPU is seen here" if not look.platform.gpus else "Windows drives the GPU"
        )
    evidence = [f"kernel {look.platform.kernel or 'unknown'} ({KERNEL})"]
    number = _numbers(look.platform.kernel)
    for gfx in dict.fromkeys(gpu.gfx for gpu in look.platform.gpus):
        wanted, reason = KERNEL_FROM.get(gfx, ((), ""))
        if wanted and number and number < wanted and look.platform.driver in ("", "in-kernel"):
            told = ".".join(map(str, wanted))
            evidence.append(f"{gfx} wants kernel {told} or newer")
            fix = look.install("linux-generic-hwe-24.04" if look.distribution == "apt" else "", "kernel")
            return Check(name, title, WARN, tuple(evidence), f"{reason}; kernel {told} mends it", (fix,))
    lacking = _no_firmware(look, [gpu for gpu in look.platform.gpus if gpu.node is None])
    if lacking:
        evidence.append(f"no firmware for {lacking} in {', '.join(f for f in _FIRMWARE_FOLDERS if look.is_folder(f))}")
        fix = look.install("firmware-amd-graphics" if _debian(look) else "linux-firmware", "linux-firmware")
        return Check(name, title, BROKEN, tuple(evidence), "without its firmware the driver cannot start the GPU", (fix,))
    return Check(name, title, OK, tuple(evidence))


def _debian(look: Look) -> bool:
    return any(line.strip() == "ID=debian" for line in look.text("/etc/os-release").splitlines())


def _no_firmware(look: Look, gpus: Sequence[Gpu]) -> str:
    """The first gfx without firmware. Only GPUs that the driver did not take: what runs has its firmware."""
    files = [file for folder in _FIRMWARE_FOLDERS for file in look.names(folder)]
    if not files or look.platform.container:
        return ""
    for gpu in gpus:
        blocks = _FIRMWARE.get(gpu.gfx, ())
        if blocks and not any(file.startswith(f"{block}_") for file in files for block in blocks):
            return gpu.gfx
    return ""


def _numbers(text: str) -> tuple[int, ...]:
    """``6.8.0-45-generic`` → (6, 8, 0)."""
    parts = text.partition("-")[0].split(".")[:3]
    return tuple(int(part) for part in parts) if parts and all(part.isdigit() for part in parts) else ()


def wsl(look: Look) -> Check:
    """WSL2: the bridge to Windows' driver."""
    name, title = "wsl", "WSL2"
    if not look.platform.wsl:
        return Check(name, title, SKIPPED, why="this is not WSL2")
    if not look.exists(DXG):
        evidence = (f"kernel {look.platform.kernel}", f"{DXG} is missing")
        why = "this WSL has no GPU: it is version 1, or Windows' driver or WSL itself is too old"
        return Check(name, title, BROKEN, evidence, why, ("wsl.exe --update", "wsl.exe --shutdown"))
    library = "/usr/lib/wsl/lib/libdxcore.so"
    # Under a root folder that only shows the device nothing can be said about Windows' side.
    if not look.exists(library) and (look.is_folder("/usr/lib/wsl") or not look.simulated):
        why = "Windows shares its GPU library with WSL through this folder; without it ROCm finds no GPU"
        return Check(name, title, BROKEN, (f"{library} is missing",), why, ("wsl.exe --update", "wsl.exe --shutdown"))
    return Check(name, title, OK, (f"{DXG} is there",))
