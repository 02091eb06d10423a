"""Lays out what was compiled and packs it: the relocatable tar, the .deb, the wheel. Times, owners, modes and orders are the same each time."""

from __future__ import annotations

import email.utils
import gzip
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness.paths import ROOT

from .compile import Products
from .licences import third_party
from .machine import GLIBC, Machine
from .pages import write_pages

PACKAGING = ROOT / "packaging"
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]
MAINTAINER = "Tidegate developers <tidegate@packages.invalid>"
"""Who a .deb says it is from, unless DEBFULLNAME and DEBEMAIL say so."""


@dataclass(frozen=True)
class Packing:
    """What packages are made from."""

    machine: Machine
    version: str
    commit: str
    """Of the sources, whole."""
    epoch: str
    """The time that all files get, in seconds since 1970."""
    products: Products
    tools: Path
    work: Path
    """A folder for what is laid out; its content is replaced."""
    out: Path
    """Where packages go."""

    @property
    def environment(self) -> dict[str, str]:
        """What the packers see: dpkg-deb and hatchling take the time from it."""
        return {**os.environ, "SOURCE_DATE_EPOCH": self.epoch, "LC_ALL": "C", "TZ": "UTC"}

    def run(self, *words: str | Path, cwd: Path = ROOT, **more: str) -> None:
        """Runs a packer."""
        subprocess.run([str(word) for word in words], cwd=cwd, env={**self.environment, **more}, check=True)

    def fresh(self, name: str) -> Path:
        """An empty folder to lay things out in."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def install(self, folder: Path, prefix: str) -> None:
        """What `make install` would install, below `folder`."""
        products = self.products
        self.run("make", "--silent", "install-files", f"LIBRARY={products.library}", f"PROGRAM={products.program}",
                 f"DESTDIR={folder}", f"PREFIX={prefix}")

    def licences_to(self, folder: Path) -> None:
        """Puts all licences into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in LICENCES:
            shutil.copyfile(ROOT / name, folder / name)
        (folder / "THIRD-PARTY.txt").write_text(third_party(self.machine))


def relocatable_tar(packing: Packing) -> Path:
    """`tidegate-<version>-<machine>.tar.gz`: works from wherever it is unpacked, because the program finds the library from its own place."""
    name = f"tidegate-{packing.version}-{packing.machine.name}"
    folder = packing.fresh("tar")
    top = folder / name
    top.mkdir()
    packing.install(top, "")
    packing.licences_to(top)
    write_pages(top)
    archive = packing.out / f"{name}.tar"
    packing.run("tar", "--create", "--file", archive, "--directory", folder, "--sort=name", f"--mtime=@{packing.epoch}", "--owner=0", "--group=0",
                "--numeric-owner", "--format=gnu", "--mode=u+rw,go=rX", name)
    packing.run("gzip", "--no-name", "--best", "--force", archive)
    return archive.with_suffix(".tar.gz")


def compressed(path: Path) -> None:
    """Replaces a file by `file.gz`, without its name and time."""
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    path.unlink()


def maintainer() -> str:
    """The packager, as the variables of Debian's tools say."""
    name, address = os.environ.get("DEBFULLNAME"), os.environ.get("DEBEMAIL")
    return f"{name} <{address}>" if name and address else MAINTAINER


def debian_changelog(packing: Packing, revision: str = "") -> str:
    """Debian wants one in its own form."""
    moment = email.utils.format_datetime(datetime.fromtimestamp(int(packing.epoch), timezone.utc))
    head = f"tidegate ({packing.version}{revision}) unstable; urgency=medium"
    return f"{head}\n\n  * CHANGELOG.md has the changes.\n\n -- {maintainer()}  {moment}\n"


def deb(packing: Packing) -> Path:
    """`tidegate_<version>_<architecture>.deb`. By dpkg-deb itself, which every system that makes such packages has."""
    folder = packing.fresh("deb")
    packing.install(folder, "/usr")
    for page in sorted((folder / "usr/share/man").rglob("*.[1-8]")):
        compressed(page)
    documents = folder / "usr/share/doc/tidegate"
    packing.licences_to(documents)
    # Debian has this one's text in /usr/share/common-licenses.
    (documents / "LICENSE-APACHE").unlink()
    shutil.copyfile(PACKAGING / "deb" / "copyright", documents / "copyright")
    write_pages(documents)
    (documents / "changelog").write_text(debian_changelog(packing))
    compressed(documents / "changelog")
    values = {
        "VERSION": packing.version, "ARCHITECTURE": packing.machine.debian, "GLIBC": GLIBC, "MAINTAINER": maintainer(),
        "SIZE": str(sum(-(-path.stat().st_size // 1024) for path in folder.rglob("*") if path.is_file())),
    }
    control = (PACKAGING / "deb" / "control.in").read_text()
    for key, value in values.items():
        control = control.replace(f"@{key}@", value)
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in sorted(folder.rglob("*")) if path.is_file()]
    (folder / "DEBIAN").mkdir()
    (folder / "DEBIAN" / "control").write_text(control)
    (folder / "DEBIAN" / "md5sums").write_text("".join(sums))
    package = packing.out / f"tidegate_{packing.version}_{packing.machine.debian}.deb"
    # One thread, so that the bytes do not depend on how many cores there are.
    packing.run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", folder, package)
    return package


def wheel(packing: Packing) -> Path:
    """`tidegate-<version>-py3-none-manylinux_….whl`."""
    folder = packing.fresh("wheel")
    shutil.copytree(PACKAGING / "wheel", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "Cargo.toml", folder / "Cargo.toml")
    packing.licences_to(folder)
    packing.install(folder / "root", "")
    write_pages(folder / "root" / "share" / "doc" / "tidegate")
    packing.run(packing.tools / "bin" / "python", "-m", "hatchling", "build", "--target", "wheel", "--directory", packing.out,
                cwd=folder, TIDEGATE_PLATFORM_TAG=packing.machine.wheel_tag)
    return packing.out / f"tidegate-{packing.version}-py3-none-{packing.machine.wheel_tag}.whl"


KINDS = {"tar": relocatable_tar, "deb": deb, "wheel": wheel}
"""Every kind of package, and what makes it."""


def unpack(package: Path, folder: Path) -> None:
    """Unpacks a package of any kind."""
    if package.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    else:
        shutil.unpack_archive(package, folder, "zip" if package.suffix == ".whl" else "gztar")
