"""What a file's bytes say about the GPU: device code, links, symbols. Pure: bytes (or a path to read) in, values out."""

from rocmpip.elf.links import CUDA_LIBRARIES, cuda_links, links
from rocmpip.elf.objects import FileReport, code_objects, needed, undefined_symbols
from rocmpip.elf.source import ElfError
from rocmpip.elf.targets import CodeObject, covers
from rocmpip.elf.wheel import WheelReport, examine_wheel

__all__ = [
    "CUDA_LIBRARIES",
    "CodeObject",
    "ElfError",
    "FileReport",
    "WheelReport",
    "code_objects",
    "covers",
    "cuda_links",
    "examine_wheel",
    "links",
    "needed",
    "undefined_symbols",
]
