"""A package called torch that computes with one number for each tensor: to walk verify's steps on a machine without a GPU.

FAKE_TORCH holds words: gpu, gpus (two), wrong (the GPU miscalculates), nan (it gives no number), leak (memory is not given
back), full (no memory is free), absent (memory is promised and is not there), cpu (no HIP), crash, hang (on import), and for one
step: oops, segv and stall (matmul on GPU 0), segv1 (matmul on GPU 1), no-rccl, rccl-wrong, rccl-dies and rccl-stalls (rank 1),
blind (torch has no device), mute (no list of architectures), quits (matmul ends the interpreter).
"""

from __future__ import annotations

from pathlib import Path

SOURCE = """
import os, signal, sys, time, types
MODE = os.environ.get("FAKE_TORCH", "").split()
__version__ = "2.9.1+rocm6.4"
float32, float16, bfloat16, uint8 = "torch.float32", "torch.float16", "torch.bfloat16", "torch.uint8"
if "crash" in MODE:
    os.abort()
if "hang" in MODE:
    time.sleep(600)

class Tensor:
    def __init__(self, value, gpu=False, where=None):
        self.value, self.gpu, self.where = float(value), gpu, where
    def to(self, where, kind=None): return Tensor(self.value, True, where)
    def double(self): return self
    def cpu(self): return self
    def abs(self): return Tensor(abs(self.value), self.gpu)
    def max(self): return self
    def all(self): return self
    def item(self): return self.value
    def __getitem__(self, index): return self
    def __sub__(self, other): return Tensor(self.value - other.value)
    def __eq__(self, other): return Tensor(self.value == other)
    def __matmul__(self, other):
        if self.gpu and "oops" in MODE:
            raise RuntimeError("HIP error: invalid device function\\nCompile with TORCH_USE_HIP_DSA\\nand more")
        if self.gpu and ("segv" in MODE or "segv1" in MODE and self.where == ("cuda", 1)):
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.gpu and "stall" in MODE:
            time.sleep(600)
        if self.gpu and "quits" in MODE:
            os._exit(3)
        if self.gpu and "nan" in MODE:
            return Tensor(float("nan"), True)
        wrong = 1.5 if self.gpu and "wrong" in MODE else 1
        return Tensor(self.value * other.value * wrong)

class Generator:
    def manual_seed(self, seed): return self
def randn(*shape, generator=None): return Tensor(len(shape) + shape[0])
TAKEN = [0]
def full(size, value, dtype=None, device=None):
    TAKEN[0] += 0 if "absent" in MODE else size[0]
    block = Tensor(value, True)
    block.__class__ = type("Block", (Tensor,), {"__del__": lambda self: "leak" in MODE or TAKEN.__setitem__(0, 0)})
    return block
device = lambda kind, index: (kind, index)
version = types.SimpleNamespace(hip=None if "cpu" in MODE else "6.4.43484", cuda=None)
GPUS = 0 if "blind" in MODE else 2 if "gpus" in MODE else 1 if "gpu" in MODE else 0
cuda = types.SimpleNamespace(
    get_arch_list=lambda: ["gfx90a:xnack-", "gfx942", "gfx11-generic"] if GPUS and "mute" not in MODE else [], is_available=lambda: bool(GPUS),
    device_count=lambda: GPUS, get_device_name=lambda index: "Fake MI300X", synchronize=lambda where=None: None,
    empty_cache=lambda: None, memory_allocated=lambda where: TAKEN[0], mem_get_info=lambda where: (0 if "full" in MODE else 1 << 34, 1 << 34),
    set_device=lambda rank: None,
)
nn = types.SimpleNamespace(functional=types.SimpleNamespace(scaled_dot_product_attention=lambda q, k, v: q @ k @ v))
_C = types.SimpleNamespace()
distributed = types.ModuleType("torch.distributed")
WORLD = []
def start(backend, init_method, rank, world_size, timeout):
    if "no-rccl" in MODE:
        raise RuntimeError("NCCL error in: NCCLUtils.hpp:275, unhandled cuda error")
    if "rccl-dies" in MODE and rank == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "rccl-stalls" in MODE and rank == 1:
        time.sleep(600)
    WORLD.append(world_size)
distributed.init_process_group = start
def add(values): values.value = WORLD[0] * (WORLD[0] + 1) / 2 + ("rccl-wrong" in MODE)
distributed.all_reduce = add
distributed.destroy_process_group = lambda: None
sys.modules["torch.distributed"] = distributed
"""


def install(site: Path) -> None:
    """Write it into a site-packages folder, with its metadata."""
    (site / "torch").mkdir()
    (site / "torch/__init__.py").write_text(SOURCE)
    (site / "torch/version.py").write_text("__version__ = '2.9.1+rocm6.4'\nhip = '6.4.43484'\ncuda = None\n")
    info = site / "torch-2.9.1+rocm6.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+rocm6.4\n")
    (info / "RECORD").write_text("torch/__init__.py,,\ntorch/version.py,,\n")
