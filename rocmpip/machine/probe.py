"""See what is there: files first, programs only when sysfs has no answer. Nothing is changed on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rocmpip.machine.driver import KFD_DEVICE, container_mark, is_wsl, kfd_state, read_driver, read_kernel
from rocmpip.machine.files import Tree
from rocmpip.machine.kfd import read_topology
from rocmpip.machine.roots import find_roots
from rocmpip.machine.variables import relevant
from rocmpip.model.machine import Evidence, RocmRoot


def _unknown(device: str) -> str | None:
    return None


def probe(
    *,
    sysroot: str | None,
    env: Mapping[str, str],
    programs: bool = True,
    time_limit: float = 5.0,
    gfx_of_pci: Callable[[str], str | None] = _unknown,
    pip_roots: Sequence[RocmRoot] = (),
    conda: str = "",
) -> Evidence:
    """Read the machine (or the tree under ``sysroot``).

    ``time_limit`` is in seconds for each helper program; ``programs=False`` runs none. ``gfx_of_pci`` maps the four hex
    digits of a PCI device id to a gfx name. ``pip_roots`` are ROCm roots of the target environment, ``conda`` its
    prefix.
    Never raises for what it reads: oddities become ``notes``.
    """
    tree = Tree(sysroot)
    kernel = read_kernel(tree)
    driver, driver_source = read_driver(tree)
    wsl = is_wsl(tree, kernel)
    container = container_mark(tree, env)
    kfd = kfd_state(tree)
    gpus, masked, answered = read_topology(tree)
    roots = find_roots(tree, env, pip_roots, conda)
    if not gpus and not masked:
        from rocmpip.machine.fallback import look_elsewhere

        gpus = look_elsewhere(
            tree,
            env=env,
            roots=[root.path for root in roots if root.kind != "pip"],
            # A topology without GPUs is an answer too; programs would read the same files.
            programs=programs and not answered,
            time_limit=time_limit,
            gfx_of_pci=gfx_of_pci,
        )
    if gpus and kfd == "denied":
        tree.note(
            f"{KFD_DEVICE}: permission denied. Programs cannot use the GPU until this user is in the device's group "
            "(render or video)"
        )
    elif gpus and kfd == "missing" and not wsl:
        where = f" in this container ({container})" if container else ""
        tree.note(f"{KFD_DEVICE} is missing{where}: packages can be installed for the GPU, but not run on it here")
    return Evidence(
        gpus=gpus,
        roots=roots,
        driver=driver,
        driver_source=driver_source,
        kernel=kernel,
        kfd=kfd,
        masked_nodes=masked,
        wsl=wsl,
        container=bool(container),
        env=relevant(env),
        notes=tuple(tree.notes),
        container_source=container,
    )
