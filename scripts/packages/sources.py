"""Packs the sources, from which others build: a tar of ours, a tar of all crates that are used, and of both a source package of Debian
and one of RPM. Times, owners, modes and orders are the same each time."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

from harness.paths import ROOT

from .packing import PACKAGING, Packing, debian_changelog, maintainer

MADE = ("build", "target", "vendor", ".mpi", ".git", "debian")
"""Folders that sources without git may have, and that are not theirs."""
BINARIES = (".a", ".lib", ".dll")
"""How the names of files end that are no sources."""


def packed(packing: Packing, folder: Path, name: str, archive: Path) -> Path:
    """Packs `folder/name`; `archive` ends as tar can compress it."""
    compressor = {".gz": "gzip --no-name --best", ".xz": "xz --threads=1 -1"}[archive.suffix]
    packing.run("tar", "--create", "--file", archive, "--use-compress-program", compressor, "--directory", folder, "--sort=name",
                f"--mtime=@{packing.epoch}", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu", "--mode=u+rw,go=rX", name)
    return archive


def files() -> list[str]:
    """The files of the sources: those that git knows, else all that no build has made."""
    asked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    known = [name for name in asked.stdout.split("\0") if name and (ROOT / name).is_file()]
    if known:
        return known
    found = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return [str(path) for path in found if path.parts[0] not in MADE and path.suffix != ".pyc"]


def lay_out(packing: Packing, folder: Path) -> None:
    """Copies the files as they are now, and writes down which commit they are of."""
    for name in files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    (folder / "packaging" / "COMMIT").write_text(f"{packing.commit}\n")


def source_tar(packing: Packing) -> Path:
    """`tidegate-<version>.tar.gz`: the sources. Built from it, `tidegate --version` says the commit without git."""
    name, folder = f"tidegate-{packing.version}", packing.fresh("source")
    lay_out(packing, folder / name)
    return packed(packing, folder, name, packing.out / f"{name}.tar.gz")


def vendor_tar(packing: Packing) -> Path:
    """`tidegate-<version>-vendor.tar.xz`: the folder `vendor`, with every crate of Cargo.lock, for builds without a network."""
    folder = packing.fresh("vendor")
    cargo = shlex.split(os.environ.get("CARGO", "cargo"))
    command = [*cargo, "vendor", "--quiet", "--locked", "--versioned-dirs", str(folder / "vendor")]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    # Crates for Windows bring libraries for its linker, which are no sources.
    for library in [path for ending in BINARIES for path in (folder / "vendor").rglob(f"*{ending}")]:
        library.unlink()
    return packed(packing, folder, "vendor", packing.out / f"tidegate-{packing.version}-vendor.tar.xz")


@cache
def tars(packing: Packing) -> list[Path]:
    """Both of the above."""
    return [source_tar(packing), vendor_tar(packing)]


def debian_folder(packing: Packing, folder: Path) -> None:
    """Writes the folder `debian`. Its changelog has one entry, of this version."""
    shutil.copytree(PACKAGING / "debian", folder)
    control = (folder / "control").read_text().replace("@MAINTAINER@", maintainer())
    (folder / "control").write_text(control)
    (folder / "changelog").write_text(debian_changelog(packing, revision="-1"))
    (folder / "rules").chmod(0o755)


def dsc(packing: Packing) -> list[Path]:
    """`tidegate_<version>-1.dsc` and what it names, by dpkg-source."""
    ours, crates = tars(packing)
    folder, name = packing.fresh("dsc"), f"tidegate-{packing.version}"
    stem = f"tidegate_{packing.version}"
    shutil.copy(ours, folder / f"{stem}.orig.tar.gz")
    shutil.copy(crates, folder / f"{stem}.orig-vendor.tar.xz")
    packing.run("tar", "--extract", "--file", ours, "--directory", folder)
    (folder / name / "vendor").mkdir()
    packing.run("tar", "--extract", "--file", crates, "--directory", folder / name)
    debian_folder(packing, folder / name / "debian")
    packing.run("dpkg-source", "--threads-max=1", "--build", name, cwd=folder)
    made = [shutil.copy(path, packing.out / path.name) for path in sorted(folder.iterdir()) if path.is_file()]
    return [Path(path) for path in made]


def srpm(packing: Packing) -> list[Path]:
    """`tidegate-<version>-1.src.rpm`, by rpmbuild."""
    folder = packing.fresh("srpm")
    sources = [shutil.copy(path, folder / path.name) for path in tars(packing)]
    spec = folder / "tidegate.spec"
    spec.write_text(spec_of(packing))
    options = {"_topdir": folder, "_sourcedir": folder, "_srcrpmdir": folder, "dist": "%{nil}", "_buildhost": "reproducible",
               "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1"}
    words = [word for name, value in options.items() for word in ("--define", f"{name} {value}")]
    packing.run("rpmbuild", "-bs", "--quiet", *words, spec)
    (made,) = folder.glob("*.src.rpm")
    return [Path(path) for path in (shutil.copy(made, packing.out / made.name), *(packing.out / Path(path).name for path in sources))]


def spec_of(packing: Packing) -> str:
    """The spec with the version of the workspace, and the one entry of its changelog."""
    moment = datetime.fromtimestamp(int(packing.epoch), timezone.utc)
    values = {"VERSION": packing.version, "MAINTAINER": maintainer(), "DATE": moment.strftime("%a %b %d %Y")}
    spec = (PACKAGING / "rpm" / "tidegate.spec").read_text()
    for key, value in values.items():
        spec = spec.replace(f"@{key}@", value)
    return spec


SOURCES = {"source": tars, "dsc": dsc, "srpm": srpm}
"""Every kind of source package, and what makes it."""
