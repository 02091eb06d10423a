"""Checks the ELF files of packages: that they ask for no symbol newer than the oldest C library that packages are for, and for no
library that such a system may lack.

    python -m packages.elf MACHINE FOLDER [PATH…]    every ELF file below FOLDER; none may contain one of the paths
"""

from __future__ import annotations

import sys
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from .machine import GLIBC, MACHINES, Machine

LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1"}
"""What every system with the GNU C library has. (The loader is one of them, too.)"""
MAGIC = b"\x7fELF"


def version(text: str) -> tuple[int, ...]:
    """`2.28` as numbers that can be compared."""
    return tuple(int(part) for part in text.split("."))


def needed_versions(file: ELFFile) -> list[tuple[str, str]]:
    """(library, version) of each set of symbols that a file asks for."""
    sections = [section for section in file.iter_sections() if isinstance(section, GNUVerNeedSection)]
    return [(library.name, wanted.name) for section in sections for library, wants in section.iter_versions() for wanted in wants]


def needed_libraries(file: ELFFile) -> list[str]:
    """Names of the libraries that a file is loaded with."""
    return [tag.needed for section in file.iter_sections() if isinstance(section, DynamicSection) for tag in section.iter_tags("DT_NEEDED")]


def search_paths(file: ELFFile) -> list[str]:
    """The folders in which a file wants libraries looked for."""
    tags = [tag for section in file.iter_sections() if isinstance(section, DynamicSection) for tag in section.iter_tags()]
    return [getattr(tag, tag.entry.d_tag[3:].lower()) for tag in tags if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH")]


def interpreters(file: ELFFile) -> list[str]:
    """The loader that a program asks for; none for a library."""
    return [segment.get_interp_name() for segment in file.iter_segments("PT_INTERP")]


def is_too_new(name: str) -> bool:
    """Whether a set of symbols is newer than the oldest C library that packages are for."""
    family, _, number = name.partition("_")
    if family == "GLIBC":
        return not number[:1].isdigit() or version(number) > version(GLIBC)
    return family != "GCC"


def problems(path: Path, machine: Machine, forbidden: list[bytes]) -> list[str]:
    """What is wrong with an ELF file, in words."""
    found = []
    with path.open("rb") as stream:
        file = ELFFile(stream)
        if file["e_machine"] != machine.elf:
            found.append(f"it is for {file['e_machine']}, not {machine.elf}")
        found += [f"it asks {library} for {name}, and packages are for {GLIBC}" for library, name in needed_versions(file) if is_too_new(name)]
        allowed = LIBRARIES | {Path(machine.loader).name}
        found += [f"it needs {library}, which a system may lack" for library in needed_libraries(file) if library not in allowed]
        found += [f"it looks for libraries in {folder}" for folder in search_paths(file)]
        found += [f"its loader is {loader}, not {machine.loader}" for loader in interpreters(file) if loader != machine.loader]
    content = path.read_bytes()
    found += [f"it names the folder {text.decode()} of the build" for text in forbidden if text in content]
    return [f"{path}: {problem}" for problem in found]


def elf_files(folder: Path) -> list[Path]:
    """All ELF files below a folder."""

    def is_elf(path: Path) -> bool:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC

    return sorted(path for path in folder.rglob("*") if is_elf(path))


def describe(path: Path) -> str:
    """One line on what a file needs."""
    with path.open("rb") as stream:
        file = ELFFile(stream)
        wanted = sorted({name for _, name in needed_versions(file) if name.startswith("GLIBC_")}, key=lambda name: version(name[6:]))
        return f"{path.name}: {wanted[-1] if wanted else 'no versions'} at most; {', '.join(needed_libraries(file))}"


def main() -> int:
    """Checks a folder; says what it found of each file."""
    machine, folder = MACHINES[sys.argv[1]], Path(sys.argv[2])
    forbidden = [text.encode() for text in sys.argv[3:]]
    files = elf_files(folder)
    found = [problem for path in files for problem in problems(path, machine, forbidden)]
    # A check that finds nothing to look at would always pass.
    if len(files) < 2:
        found.append(f"{folder} has {len(files)} ELF files: the program and the library are expected")
    for path in files:
        print(f"  {describe(path)}")
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
