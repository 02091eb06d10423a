"""Libraries beside MPI that stand on libfabric, built from their sources with their default configuration: Sandia OpenSHMEM with the
suite of tests that belongs to it, and GASNet with its own.

The sources are fetched from GitHub at fixed commits, or from clones in the folder that TIDEGATE_SOURCES names (`SOS`, `tests-sos`,
`gasnet`, bare or not). All is built once, in `build/libraries`: minutes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from .paths import BUILD

FOLDER = BUILD / "libraries"
HEADERS = Path("/usr/include/rdma/fabric.h")
SOS = ("SOS", "https://github.com/Sandia-OpenSHMEM/SOS.git", "8649160d8ea5a8be3032d2720d554693756d0c7d")
"""Version 1.5.3 and what was fixed until July 2025."""
SOS_TESTS = ("tests-sos", "https://github.com/openshmem-org/tests-sos.git", "ef46e42a85dadaa643e8ba44a74e37f79bc1ec73")
GASNET = ("gasnet", "https://github.com/StanfordLegion/gasnet.git", "372097b")
"""The release itself is at gasnet.lbl.gov; this repository keeps its archives."""
GASNET_VERSION, GASNET_SHA256 = "GASNet-2025.8.0", "bd5919099477d1d2f59c247d006e9d1ac017c9190c974f5e069667418e5bf48d"
SOS_PARTS = ("unit", "shmemx", "spec-example", "apps")
"""Folders of the suite; `performance` has none of its programs among the tests."""
GASNET_TESTS = {"testsmall": "100", "testlarge": "100", "testam": "100", "testmisc": "100", "testalign": "100", "testbarrier": "100", "testbarrierconf": "100",
                "testslice": "10", "testhsl": "0", "testgasnet": "", "testval": "", "testvis": "", "testcoll": "", "testteam": "", "testreduce": "",
                "testnbr": "", "testcore1": "", "testcore2": "", "testcore3": "", "testcore4": "", "testcore5": ""}
"""Its tests, with their arguments: mostly how often. Those that only measure are left out."""
GASNET_OVER_HOSTS = ("testsmall", "testgasnet", "testcore1", "testcore3", "testbarrier", "testslice", "testval")
"""Those that move little enough for remote memory between hosts, which goes by message."""


class Missing(Exception):
    """Why a library cannot be built here."""


def _run(words: list[str | Path], folder: Path) -> str:
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{words} in {folder}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def _need(*tools: str) -> None:
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing or not HEADERS.exists():
        raise Missing(f"needs {', '.join([*missing, *([] if HEADERS.exists() else ['libfabric with headers'])])} "
                      "(Debian: autoconf automake libtool flex libfabric-dev)")


def _checkout(source: tuple[str, str, str], target: Path) -> None:
    """The files of a commit."""
    name, address, commit = source
    near = Path(os.environ.get("TIDEGATE_SOURCES", "/nonexistent")) / name
    clone = target.parent / f"{name}.git"
    if not clone.exists():
        done = subprocess.run(["git", "clone", "--quiet", "--bare", str(near) if near.exists() else address, str(clone)], capture_output=True, text=True,
                              env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
        if done.returncode != 0:
            raise Missing(f"could not clone {address} (a clone in TIDEGATE_SOURCES serves as well): {done.stderr.strip()[-300:]}")
    target.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "-C", str(clone), "archive", commit], capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", str(target)], input=archive, check=True)


def _libfabric_folder() -> Path:
    return Path(_run(["cc", "-print-file-name=libfabric.so"], FOLDER).strip()).resolve().parent


class Sandia:
    """Sandia OpenSHMEM, and its suite."""

    def __init__(self) -> None:
        _need("git", "autoconf", "automake", "libtoolize", "flex", "make", "cc", "c++")
        self.build = FOLDER / "sos" / "build"
        made = self.build / "made"
        if not made.exists():
            shutil.rmtree(FOLDER / "sos", ignore_errors=True)
            source = FOLDER / "sos" / "source"
            _checkout(SOS, source)
            _checkout(SOS_TESTS, source / "modules" / "tests-sos")
            _run(["./autogen.sh"], source)
            self.build.mkdir()
            # Its default, but for the launcher's protocol, which it has to be told (Hydra's, MPICH's), and where Debian keeps libraries.
            _run(["../source/configure", "--enable-pmi-simple", "--with-ofi", f"--with-ofi-libdir={_libfabric_folder()}"], self.build)
            _run(["make", f"-j{os.cpu_count()}"], self.build)
            _run(["make", f"-j{os.cpu_count()}", "check", "TESTS="], self.build)
            made.touch()
        self.oshrun = self.build / "src" / "oshrun"

    def programs(self) -> list[Path]:
        """All tests, as its makefiles list them."""
        found = []
        for part in SOS_PARTS:
            folder = self.build / "modules" / "tests-sos" / "test" / part
            listed = subprocess.run(["make", "-s", "-f", "-", "list"], cwd=folder, input="include Makefile\nlist:\n\t@echo $(TESTS)\n", capture_output=True,
                                    text=True, check=True)
            found += [folder / name for name in listed.stdout.split()]
        return found

    def environment(self) -> dict[str, str]:
        """What its programs need."""
        return {"LD_LIBRARY_PATH": str(self.build / "src" / ".libs")}


class Gasnet:
    """GASNet's ofi conduit, in its sequential mode, and its tests."""

    def __init__(self) -> None:
        _need("git", "make", "cc", "perl")
        self.build = FOLDER / "gasnet" / "build"
        made = self.build / "made"
        if not made.exists():
            shutil.rmtree(FOLDER / "gasnet", ignore_errors=True)
            source = FOLDER / "gasnet" / "source"
            _checkout(GASNET, source)
            archive = source / f"{GASNET_VERSION}.tar.gz"
            if hashlib.sha256(archive.read_bytes()).hexdigest() != GASNET_SHA256:
                raise RuntimeError(f"{archive} is another file")
            with tarfile.open(archive) as files:
                files.extractall(source, filter="data")
            self.build.mkdir()
            # A provider that it does not know has to be named, and permitted.
            others = [f"--disable-{name}" for name in ("mpi", "udp", "smp", "ibv", "ucx", "mpi-compat")]
            _run([source / GASNET_VERSION / "configure", "--enable-ofi", "--with-ofi-provider=tidegate", "--enable-allow-unknown-ofi-provider",
                  "--with-ofi-spawner=ssh", "--without-cxx", *others, "CC=cc"], self.build)
            _run(["make", "-C", "ofi-conduit", "seq"], self.build)
            _run(["make", "-C", "ofi-conduit", "tests-seq"], self.build)
            made.touch()
        self.conduit = self.build / "ofi-conduit"
        self.spawner = self.conduit / "contrib" / "gasnetrun_ofi"
        self.shell = FOLDER / "gasnet" / "shell"
        # Stands for ssh.
        self.shell.write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\nexec sh -c "$*"\n')
        self.shell.chmod(0o755)

    def environment(self, shell: Path | None = None, hosts: str = "localhost") -> dict[str, str]:
        """What its spawner needs; and processes of one host are not to use GASNet's own shared memory."""
        return {"GASNET_SUPERNODE_MAXSIZE": "1", "GASNET_SSH_CMD": str(shell or self.shell), "GASNET_SSH_SERVERS": hosts, "GASNET_QUIET": "1", "GASNET_HOST_DETECT": "hostname"}
