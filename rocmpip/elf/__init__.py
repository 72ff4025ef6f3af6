"""What a file's bytes say about the GPU: device code, links, symbols. Bytes (or a path to read) in, values out."""

from rocmpip.elf.linkage import Linkage, Symbols, linkage, symbols
from rocmpip.elf.links import CUDA_LIBRARIES, cuda_links, links
from rocmpip.elf.objects import FileReport, code_objects, examine_file, needed, undefined_symbols
from rocmpip.elf.record import read_installed, read_wheel
from rocmpip.elf.source import ElfError
from rocmpip.elf.targets import CodeObject, covers
from rocmpip.elf.wheel import WheelReport, examine_wheel

__all__ = [
    "CUDA_LIBRARIES",
    "CodeObject",
    "ElfError",
    "FileReport",
    "Linkage",
    "Symbols",
    "WheelReport",
    "code_objects",
    "covers",
    "cuda_links",
    "examine_file",
    "examine_wheel",
    "linkage",
    "links",
    "needed",
    "read_installed",
    "read_wheel",
    "symbols",
    "undefined_symbols",
]
