"""Everything that doctor's checks look at: the verdict on the machine, its files through one bounded reader, its variables.

Under ROCMPIP_SYSROOT files and programs are those below that folder; the target environment's own folders stay real.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rocmpip.check.packages import install_command, package_tool
from rocmpip.machine.files import Tree
from rocmpip.machine.programs import Unanswered, output_of
from rocmpip.model.machine import InstalledDist, Platform, TargetEnv
from rocmpip.model.recipe import ResolvedRecipe
from rocmpip.model.record import Struct, field
from rocmpip.model.rocm import RocmVersion

if TYPE_CHECKING:
    from rocmpip.catalogue.catalogue import Catalogue

_MACHINE = frozenset("bin boot dev etc lib lib32 lib64 opt proc run sbin snap sys usr var".split())
"""Top folders that are the machine's: under a simulated root they are read there and nowhere else."""
_DEFAULT_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
MULTIARCH = ("x86_64-linux-gnu", "aarch64-linux-gnu")
_LIBRARY_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")


class Who(Struct, frozen=True):
    """The user whose access is judged. ``groups`` are numbers."""

    name: str
    uid: int
    groups: frozenset[int]
    simulated: bool = False


class Look(Struct, frozen=True, dict=True):
    """Frozen evidence, and readers for more of it. ``recipe`` is that of --for."""

    tree: Tree
    env: Mapping[str, str]
    platform: Platform
    catalogue: Catalogue
    target: TargetEnv | None = None
    dists: tuple[InstalledDist, ...] = ()
    recipe: ResolvedRecipe | None = None
    brought: frozenset[str] = frozenset()
    """Normalised names that the recipe's build requirements bring by themselves (cmake, ninja)."""
    rooms: tuple[tuple[str, str], ...] = ()
    """(what, folder): where downloads, the cache and packages go."""
    time_limit: float = 60.0
    """Seconds for hipcc's three lines."""
    refusal: str = ""
    """Why --for's recipe refuses here, or ""."""
    installed: Mapping[str, InstalledDist] = field(default_factory=dict)

    # -- files ---------------------------------------------------------------------------------------------------

    @property
    def simulated(self) -> bool:
        return bool(self.tree.root)

    def host(self, path: str) -> str:
        """Where a machine path really is; folders of the target environment are never inside a simulated root."""
        if self._own(path):
            return path
        return self.tree.host(path)

    def _own(self, path: str) -> bool:
        """True for what is real even under a root: the target environment, and folders that are no part of the machine's
        (/home, /tmp) unless the root has them."""
        # A path out of a broken file may hold a zero byte, which only Tree bears.
        if not self.simulated or "\0" in path:
            return False
        if self.target is not None and self.target.kind not in ("system", "container") and below(path, self.target.prefix):
            return True
        top = path.lstrip("/").partition("/")[0]
        return bool(top) and top not in _MACHINE and not self.tree.exists(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path) if self._own(path) else self.tree.exists(path)  # noqa: PTH110

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path) if self._own(path) else self.tree.is_folder(path)  # noqa: PTH112

    def names(self, path: str) -> list[str]:
        if not self.is_folder(path):
            return []
        if not self._own(path):
            return self.tree.names(path)
        try:
            return sorted(os.listdir(path))  # noqa: PTH208
        except OSError as problem:
            self.tree.complain(path, problem)
            return []

    def text(self, path: str) -> str:
        """A file's text, "" when it is missing or unreadable."""
        return self.tree.text(path) or ""

    def mode(self, path: str) -> os.stat_result | None:
        try:
            return os.stat(self.host(path))  # noqa: PTH116
        except OSError:
            return None

    def real(self, path: str) -> str:
        """The path with links resolved, as the machine names it; the path itself when it cannot be."""
        return (os.path.realpath(path) if self._own(path) else self.tree.real(path)) or path

    # -- variables -----------------------------------------------------------------------------------------------

    def folders(self, variable: str) -> tuple[str, ...]:
        """The entries of a colon-separated variable, empty ones left out."""
        return tuple(entry for entry in self.env.get(variable, "").split(":") if entry)

    @cached_property
    def path(self) -> tuple[str, ...]:
        """Folders that programs are looked for in, in order; in a simulated root the usual ones end the list."""
        listed = [folder for folder in self.folders("PATH") if folder.startswith("/")]
        return tuple(dict.fromkeys([*listed, *(_DEFAULT_PATH if self.simulated else ())]))

    @property
    def own_programs(self) -> list[str]:
        """The target environment's folder of programs; under a simulated root programs are the root's alone."""
        return [f"{self.target.prefix}/bin"] if self.target is not None and not self.simulated else []

    # -- programs ------------------------------------------------------------------------------------------------

    def program(self, name: str, folders: Sequence[str] = ()) -> str:
        """The machine path of a program in ``folders``, then PATH; "" when there is none."""
        for folder in (*folders, *self.path):
            path = f"{folder.rstrip('/')}/{name}"
            if self.executable(path):
                return path
        return ""

    def executable(self, path: str) -> bool:
        """True for a program. In a simulated root programs are the root's alone."""
        try:
            where = self.tree.host(path)
            return stat.S_ISREG(os.stat(where).st_mode) and os.access(where, os.X_OK)  # noqa: PTH116
        except OSError:
            return False

    def run(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, limit: float = 20.0) -> tuple[int, str]:
        """(exit code, both streams) of a program of the machine; (-1, why) when it did not answer in time."""
        program, *arguments = argv
        wrapped = ["/bin/sh", "-c", 'exec "$0" "$@" 2>&1', self.tree.host(program), *arguments]
        try:
            return output_of(wrapped, env=env or self.quiet, time_limit=limit)
        except (Unanswered, OSError) as problem:
            return -1, str(problem) or "cannot be started"

    @cached_property
    def quiet(self) -> dict[str, str]:
        """The environment for helper programs: Python ones write no bytecode, compile caches write nothing."""
        return {**self.env, "PYTHONDONTWRITEBYTECODE": "1", "CCACHE_DISABLE": "1", "LC_ALL": "C"}

    # -- the machine ---------------------------------------------------------------------------------------------

    @property
    def rocm(self) -> RocmVersion | None:
        return self.platform.rocm

    @property
    def root(self) -> str:
        """Folder of the ROCm that wins, or ""."""
        return self.platform.rocm_root

    @property
    def kind(self) -> str:
        """root, distribution, pip, conda, override of the winning ROCm, or ""."""
        return next((root.kind for root in self.platform.roots if root.path == self.root), "") if self.root else ""

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Folders to look for ROCm's programs, headers and packages in."""
        named = [self.env.get(name, "").rstrip("/") for name in ("ROCM_PATH", "HIP_PATH")]
        return tuple(dict.fromkeys(root for root in (self.root, *named) if root.startswith("/")))

    @cached_property
    def seen(self) -> bool:
        """True when an AMD GPU is on the machine."""
        return bool(self.platform.gpus)

    @cached_property
    def library_folders(self) -> tuple[str, ...]:
        """Where the loader looks by itself, without LD_LIBRARY_PATH: configured folders first."""
        multi = [f"{base}/{arch}" for arch in MULTIARCH for base in ("/lib", "/usr/lib")]
        return tuple(dict.fromkeys([*(folder for folder, _ in self.loader_lines), *multi, *_LIBRARY_FOLDERS]))

    @cached_property
    def loader_lines(self) -> tuple[tuple[str, str], ...]:
        """(folder, file that names it) of the loader's configuration."""
        files = ["/etc/ld.so.conf", *(f"/etc/ld.so.conf.d/{n}" for n in self.names("/etc/ld.so.conf.d") if n.endswith(".conf"))]
        rows = []
        for file in files:
            lines = self.text(file).splitlines()
            rows += [(line.split("#")[0].strip().rstrip("/"), file) for line in lines if line.startswith("/")]
        return tuple(rows)

    @cached_property
    def distribution(self) -> str:
        """apt, dnf, zypper, pacman: by /etc/os-release; apt when it does not tell."""
        return package_tool(self.text("/etc/os-release"))

    def install(self, apt: str, dnf: str = "") -> str:
        """The command that installs system packages here."""
        if self.distribution == "apt" or not dnf:
            return install_command("apt", apt)
        return install_command(self.distribution, dnf)

    # -- people --------------------------------------------------------------------------------------------------

    @cached_property
    def group_names(self) -> Mapping[int, str]:
        return {int(row[2]): row[0] for row in self._table("/etc/group", 3) if row[2].isdigit()}

    @cached_property
    def group_numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in self.group_names.items()}

    def _table(self, path: str, width: int) -> list[list[str]]:
        rows = [line.split(":") for line in self.text(path).splitlines()]
        return [row for row in rows if len(row) >= width and row[0]]

    def listed_groups(self, name: str) -> frozenset[int]:
        """Groups of a user by /etc/passwd and /etc/group: what a new login would get."""
        found = {int(row[3]) for row in self._table("/etc/passwd", 4) if row[0] == name and row[3].isdigit()}
        for row in self._table("/etc/group", 4):
            if row[2].isdigit() and name in row[3].split(","):
                found.add(int(row[2]))
        return frozenset(found)

    @cached_property
    def who(self) -> Who:
        """The user: this process; in a simulated root the user of USER or LOGNAME whom its /etc/passwd knows."""
        name = self.env.get("USER") or self.env.get("LOGNAME") or ""
        if self.simulated:
            for row in self._table("/etc/passwd", 4):
                if row[0] == name and row[2].isdigit():
                    return Who(name, int(row[2]), self.listed_groups(name), True)
        uid = os.geteuid()
        known = {int(row[2]): row[0] for row in self._table("/etc/passwd", 4) if row[2].isdigit()}
        return Who(known.get(uid) or name or str(uid), uid, frozenset({*os.getgroups(), os.getegid()}))


def below(path: str, folder: str) -> bool:
    """True when ``path`` is ``folder`` or inside it."""
    return PurePosixPath(folder) in (PurePosixPath(path), *PurePosixPath(path).parents)
