#!/usr/bin/env python3
"""Builds the packages of Tidegate into build/dist: a wheel, a .deb, a tar that works from wherever it is unpacked, and the sources.

Each of the first three comes with a software bill of materials, in one file of its name. Two further kinds are built where they are
named: source packages of Debian (dsc) and RPM (srpm).

They run on every Linux with the GNU C library 2.28 or later, which is checked, and are the same bytes each time. docs/packages.md has
the details. Program and library are compiled anew if their sources have changed: some minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import setup  # noqa: E402
from harness.paths import BUILD, ROOT  # noqa: E402
from packages import packing, sources  # noqa: E402
from packages.compile import Products, cargo_home, commit, compile_for, output_of, rustc, short  # noqa: E402
from packages.machine import MACHINES, Machine, this_machine  # noqa: E402

DIST = BUILD / "dist"
"""Packages lie here; below it are the folders `tools`, `target` and the like."""
SUMS = "SHA256SUMS"
SUMMED = (".whl", ".deb", ".gz", ".xz", ".json", ".dsc", ".rpm")
"""How the names of files end that have a checksum."""
DEFAULT = [*packing.KINDS, "source"]


def version() -> str:
    """The version of the workspace, which is the only place that has it."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def epoch() -> str:
    """The time that files get: SOURCE_DATE_EPOCH, else that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return given
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    if asked.returncode != 0:
        setup.fail("packages want one time for all their files, and these sources are no git repository", "Set SOURCE_DATE_EPOCH, in seconds since 1970.")
    return asked.stdout.strip()


def check(package: Path, machine: Machine, tools: Path) -> None:
    """Ends with a message if a file of a package would not run on an older system, or names folders of this machine."""
    folder = DIST / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    packing.unpack(package, folder)
    command = [tools / "bin" / "python", "-m", "packages.elf", machine.name, folder, ROOT, cargo_home()]
    print(f"{package.name}:", flush=True)
    if subprocess.run([str(word) for word in command], cwd=ROOT / "scripts").returncode != 0:
        package.unlink()
        setup.fail(f"{package.name} would not run everywhere, and has been removed", "The lines above say why.")
    shutil.rmtree(folder)


def write_sums() -> None:
    """Writes the checksums of all packages, as `sha256sum --check` reads them."""
    packages = sorted(path for path in DIST.iterdir() if path.is_file() and path.suffix in SUMMED)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages]
    (DIST / SUMS).write_text("".join(lines))


def write_bill(what: packing.Packing) -> Path:
    """Writes the software bill of materials."""
    path = DIST / f"tidegate-{what.version}-{what.machine.name}.cdx.json"
    compiler = output_of(rustc(), "--version").split()[1]
    words = [what.machine.name, path, what.version, short(what.commit), what.epoch, compiler]
    command = [what.tools / "bin" / "python", "-m", "packages.sbom", *words]
    subprocess.run([str(word) for word in command], cwd=ROOT / "scripts", check=True)
    return path


def build(machine: Machine, kinds: list[str]) -> list[Path]:
    """Builds packages of one machine, and of the sources."""
    # Folders get the same modes whatever the user's mask is.
    os.umask(0o022)
    DIST.mkdir(parents=True, exist_ok=True)
    tools, moment = DIST / "tools", epoch()
    compiled = [kind for kind in kinds if kind in packing.KINDS]
    if compiled:
        setup.make_environment("dist", tools)
    products = compile_for(machine, tools, DIST) if compiled else Products(Path(), Path())
    what = packing.Packing(machine, version(), commit(), moment, products, tools, DIST / "laid-out" / machine.name, DIST)
    made = [packing.KINDS[kind](what) for kind in compiled]
    for package in made:
        check(package, machine, tools)
    if compiled:
        made.append(write_bill(what))
    made += [path for kind in kinds if kind in sources.SOURCES for path in sources.SOURCES[kind](what)]
    write_sums()
    return list(dict.fromkeys(made))


def build_elsewhere(machine: Machine, kinds: list[str]) -> dict[str, str]:
    """Builds the same sources in another folder; the checksums that come out."""
    other = DIST / "again" / "somewhere-else"
    shutil.rmtree(other.parent, ignore_errors=True)
    for name in output_of("git", "ls-files", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (other / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, other / name)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch(), "TIDEGATE_COMMIT": commit()}
    subprocess.run([sys.executable, other / "scripts" / "dist.py", "--machine", machine.name, *kinds], env=environment, check=True)
    return read_sums(other / "build" / "dist" / SUMS)


def read_sums(path: Path) -> dict[str, str]:
    """Checksums by name."""
    return {name: digest for digest, name in (line.split() for line in path.read_text().splitlines())}


def main() -> None:
    """Builds what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="examples:\n  scripts/dist.py\n  scripts/dist.py --machine aarch64 tar\n  scripts/dist.py --twice")
    known = [*packing.KINDS, *sources.SOURCES]
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"which packages, of {', '.join(known)} [default: {', '.join(DEFAULT)}]")
    parser.add_argument("--machine", choices=list(MACHINES), default=this_machine(), help="for which machine; another than this one needs Rust's standard "
                        "library for it (rustup target add) [default: this one, %(default)s]")
    parser.add_argument("--twice", action="store_true", help="build in another folder, too, and compare all bytes")
    options = parser.parse_args()
    unknown = [kind for kind in options.kinds if kind not in known]
    if unknown:
        parser.error(f"no such package: {', '.join(unknown)} (choose from {', '.join(known)})")
    if options.machine not in MACHINES:
        parser.error(f"packages are for {' and '.join(MACHINES)}, and this machine is {options.machine}: give --machine")
    machine, kinds = MACHINES[options.machine], options.kinds or DEFAULT
    made = build(machine, kinds)
    if options.twice:
        ours, again = read_sums(DIST / SUMS), build_elsewhere(machine, kinds)
        different = [path.name for path in made if ours[path.name] != again.get(path.name)]
        if different:
            setup.fail(f"two builds differ: {', '.join(different)}", f"Compare {DIST} with {DIST / 'again'}.")
        shutil.rmtree(DIST / "again")
        print("two builds in two folders are the same bytes")
    print(f"built with {output_of(rustc(), '--version')}; in {DIST.relative_to(ROOT)}:")
    for package in made:
        print(f"  {package.name}  {package.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
