"""The program that verify runs in the target's interpreter. It is handed over as text: standard library and torch alone.

It appends one line of JSON for each step to the file "progress": ``begin`` before, then the outcome, so that a crash or a
hang names its step. Arguments (JSON in argv[1]): "progress", "mode" import | torch | rank, and what that mode needs. Nothing
is written outside the folder that the parent set up and removes.
"""

# mypy: ignore-errors
import sys

# Before any other import: a file in the user's working folder must not be imported in place of a module.
sys.path[:] = [entry for entry in sys.path if entry not in ("", ".")]

import json  # noqa: E402 - see above

ASKED = {}


def tell(**row):
    with open(ASKED["progress"], "a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")


def step(name, function):
    """Run one step; its text is the detail, a Skip its reason, any other exception a fault. True when it was ok."""
    tell(step=name, verdict="begin")
    try:
        detail = function()
    except Skip as reason:
        tell(step=name, verdict="skipped", detail=str(reason))
        return False
    except Wrong as problem:
        tell(step=name, verdict="fault", detail=str(problem))
        return False
    except BaseException as problem:
        text = str(problem).strip().splitlines()
        tell(step=name, verdict="fault", detail=type(problem).__name__ + (": " + text[0][:500] if text else ""))
        return False
    tell(step=name, verdict="ok", detail=detail or "")
    return True


class Skip(Exception):
    pass


class Wrong(Exception):
    """What a step found wrong, in our own words."""


def import_names(names):
    import importlib

    for name in names:

        def one(name=name):
            module = importlib.import_module(name)
            return str(getattr(module, "__version__", "") or "")

        step("import " + name, one)


def close(torch, found, expected, bound):
    """Largest difference, relative to the largest expected value. Raises when it is above ``bound`` or not a number."""
    found, expected = found.double().cpu(), expected.double().cpu()
    scale = max(expected.abs().max().item(), 1e-30)
    error = (found - expected).abs().max().item() / scale
    if error != error:
        raise Wrong("the result holds values that are no numbers (NaN)")
    if not error <= bound:
        raise Wrong(f"differs from the CPU's result by {error:.3g} of its largest value (bound {bound:.3g})")
    return f"largest difference {error:.2g} of the largest value"


def torch_steps(targets, seen):
    if not step("import torch", lambda: __import__("torch").__version__):
        return
    import torch

    def hip():
        if torch.version.hip is None:
            raise Wrong(f"torch.version.hip is None: this torch {torch.__version__} is no ROCm build")
        return "HIP " + torch.version.hip

    if not step("torch.version.hip", hip):
        return

    def arches():
        listed = list(torch.cuda.get_arch_list()) or list(getattr(torch._C, "_cuda_getArchFlags", lambda: "")().split())
        if not targets:
            raise Skip("no target GPU is known")
        if not listed:
            blind = "" if torch.cuda.is_available() else ": torch tells no architectures without a GPU"
            raise Skip("get_arch_list() is empty" + blind)
        names = {item.split(":")[0] for item in listed}
        lacking = [gfx for gfx, fitting in targets.items() if not names.intersection(fitting)]
        if lacking:
            raise Wrong(f"get_arch_list() has {' '.join(listed)}, not {' '.join(lacking)}")
        return " ".join(listed)

    step("torch.cuda.get_arch_list()", arches)

    def device():
        if not torch.cuda.is_available():
            if not seen:
                raise Skip("no AMD GPU is on this machine")
            raise Wrong("torch.cuda.is_available() is False although this machine has an AMD GPU")
        return f"{torch.cuda.device_count()}: {torch.cuda.get_device_name(0)}"

    if not step("device visible", device):
        for name in ("matmul", "attention", "memory"):
            tell(step=name, verdict="skipped", detail="torch sees no GPU")
        tell(step="RCCL all-reduce", verdict="skipped", detail="torch sees no GPU")
        return
    # Told before the steps: if one of them ends this interpreter, the parent knows what was not looked at.
    tell(step="devices", verdict="count", detail=str(torch.cuda.device_count()))
    for index in range(torch.cuda.device_count()):
        gpu_steps(torch, index)


def gpu_steps(torch, index):
    where = torch.device("cuda", index)
    suffix = f" on GPU {index}"
    generator = torch.Generator().manual_seed(7)

    def matmul():
        a = torch.randn(512, 384, generator=generator)
        b = torch.randn(384, 256, generator=generator)
        told = []
        for kind, bound in ((torch.float32, 1e-3), (torch.float16, 2e-2), (torch.bfloat16, 5e-2)):
            found = a.to(where, kind) @ b.to(where, kind)
            torch.cuda.synchronize(where)
            told.append(f"{str(kind).split('.')[-1]}: {close(torch, found, a.double() @ b.double(), bound)}")
        return "; ".join(told)

    def attention():
        attend = torch.nn.functional.scaled_dot_product_attention
        q, k, v = (torch.randn(2, 4, 128, 64, generator=generator) for _ in range(3))
        expected = attend(q.double(), k.double(), v.double())
        found = attend(q.to(where, torch.float16), k.to(where, torch.float16), v.to(where, torch.float16))
        torch.cuda.synchronize(where)
        return close(torch, found, expected, 3e-2)

    def memory():
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated(where)
        size = 256 * 1024 * 1024
        free, _ = torch.cuda.mem_get_info(where)
        if free < 2 * size:
            raise Skip("less than 512 MiB are free on this GPU")
        block = torch.full((size,), 3, dtype=torch.uint8, device=where)
        torch.cuda.synchronize(where)
        if torch.cuda.memory_allocated(where) - before < size or int(block[size // 2].item()) != 3:
            raise Wrong("256 MiB were asked for and are not there")
        del block
        torch.cuda.empty_cache()
        if torch.cuda.memory_allocated(where) != before:
            raise Wrong("256 MiB were not given back")
        return "256 MiB taken and given back"

    step("matmul" + suffix, matmul)
    step("attention" + suffix, attention)
    step("memory" + suffix, memory)


def rank_step(rank, world, meeting):
    """One rank of an all-reduce: rank r gives r + 1, so every element becomes the sum of 1 to world."""

    def reduce():
        import datetime

        import torch
        import torch.distributed as dist

        torch.cuda.set_device(rank)
        limit = datetime.timedelta(seconds=90)
        dist.init_process_group("nccl", init_method="file://" + meeting, rank=rank, world_size=world, timeout=limit)
        try:
            values = torch.full((1 << 20,), float(rank + 1), device="cuda")
            dist.all_reduce(values)
            torch.cuda.synchronize()
            expected = world * (world + 1) / 2
            if not bool((values == expected).all().item()):
                raise Wrong(f"the sum is {values[0].item()!r}, not {expected!r}")
        finally:
            dist.destroy_process_group()
        return f"{world} GPUs"

    step(f"RCCL all-reduce, rank {rank}", reduce)


def main():
    ASKED.update(json.loads(sys.argv[1]))
    asked = ASKED
    if asked["mode"] == "import":
        import_names(asked["names"])
    elif asked["mode"] == "torch":
        torch_steps(asked["targets"], asked["seen"])
    else:
        rank_step(asked["rank"], asked["world"], asked["meeting"])


if __name__ == "__main__":
    main()
