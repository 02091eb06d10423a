#!/usr/bin/env python3
"""Installs what the demo, the tests and the benchmark need: a C compiler, the MPIs, mpi4py's test suite, the test
runner.

Each MPI gets a virtual environment of its own under `.mpi/`, from a pinned list in `scripts/requirements/`. An
environment that has been made from the present list is left alone.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness.paths import MPI4PY_TESTS, MPIS, PROMTOOL, REQUIREMENTS, ROOT, is_root  # noqa: E402

ENVIRONMENTS = ["mpich", "openmpi", "impi"]
TOOLS = [
    ("valgrind", "valgrind", "the tests that count instructions"),
    ("ip", "iproute2", "the tests over several hosts"),
    ("tmux", "tmux", "the tests of `tidegate top` on a terminal"),
    ("nft", "nftables", "the tests over hosts between which packets are lost"),
]
OPTIONAL_PACKAGES = ["libfabric-bin", "libfabric-dev", "openmpi-bin", "libopenmpi-dev", "chromium"]


def fail(what: str, remedy: str, detail: str = "") -> None:
    """Ends with a message that names the thing and the remedy."""
    if detail:
        print(detail.rstrip(), file=sys.stderr)
    sys.exit(f"setup: {what}\n       {remedy}")


def python_can_make_environments() -> bool:
    """Whether Python can make virtual environments; Debian ships it without those modules."""
    return subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0


def install_packages(packages: list[str]) -> None:
    """Installs packages of the system, or says which are missing."""
    wanted = " ".join(packages)
    if not is_root() or not shutil.which("apt-get"):
        fail(f"missing on this system: {wanted}", f"As root: apt-get install {wanted} (or what they are called here), then run this again.")
    print(f"setup: installing {wanted}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", *packages]
    # `make test` sets up the tests of the crates and those of whole systems side by side, and apt-get is for one at a time.
    with open(Path(tempfile.gettempdir()) / "tidegate-setup.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = subprocess.run(command, env=environment, capture_output=True, text=True)
        if first.returncode == 0:
            return
        # A fresh image has no list of packages yet.
        subprocess.run(["apt-get", "update"], env=environment, capture_output=True)
        second = subprocess.run(command, env=environment, capture_output=True, text=True)
    if second.returncode != 0:
        fail(f"apt-get could not install {wanted}", "Check the network and the package sources, then run this again.", second.stdout + second.stderr)


def missing_packages() -> list[str]:
    """Packages without which nothing can be built."""
    missing = []
    if not shutil.which("gcc"):
        missing += ["gcc", "libc6-dev"]
    if not python_can_make_environments():
        missing.append("python3-venv")
    return missing


def install_libfabric() -> None:
    """Installs libfabric with headers, which the C programs among the crates' tests are compiled against. Those tests
    are skipped without it."""
    has_headers = subprocess.run(["gcc", "-E", "-include", "rdma/fabric.h", "-x", "c", os.devnull], capture_output=True).returncode == 0
    if has_headers:
        return
    if is_root() and shutil.which("apt-get"):
        install_packages(["libfabric-dev"])
    else:
        print("setup: no libfabric with headers (Debian: libfabric-dev): the C programs among the tests of the crates are left out", flush=True)


def install_tools() -> None:
    """Installs what some tests use and are skipped without: valgrind counts instructions, tmux is a terminal, nft drops
    packets between hosts made of namespaces, ip and tc make these and slow them down."""
    for tool, package, tests in TOOLS:
        if shutil.which(tool):
            continue
        if is_root() and shutil.which("apt-get"):
            install_packages([package])
        else:
            print(f"setup: no {tool} (Debian: {package}): {tests} are left out", flush=True)


def unpack_promtool() -> None:
    """Takes promtool out of Debian's package of Prometheus. The package is not installed: it would start a server."""
    if PROMTOOL.exists() or shutil.which("promtool"):
        return
    print("setup: downloading promtool", flush=True)
    with tempfile.TemporaryDirectory() as place:
        # apt-get lets another user download, who needs the folder.
        os.chmod(place, 0o777)
        done = subprocess.run(["sh", "-ec", "apt-get download prometheus && dpkg-deb -x prometheus_*.deb ."], cwd=place, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"setup: no promtool (Debian: in prometheus): the checks by it are left out\n{done.stderr.rstrip()}", flush=True)
            return
        MPIS.mkdir(exist_ok=True)
        shutil.copy2(Path(place) / "usr" / "bin" / "promtool", PROMTOOL)


def pip(python: Path | str, *words: str | Path) -> None:
    """Runs pip; on failure says what could not be had."""
    command = [str(python), "-m", "pip", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"pip could not download what `{' '.join(map(str, words))}` asks for", "Check the network (or PIP_INDEX_URL), then run this again.",
             done.stdout[-2000:] + done.stderr[-2000:])


def environment_is_current(folder: Path, requirements: Path) -> bool:
    """Whether an environment was made to the end, from this list, in this place."""
    stamp = folder / "made-from.txt"
    return stamp.exists() and stamp.read_text() == stamp_text(folder, requirements)


def stamp_text(folder: Path, requirements: Path) -> str:
    """What an environment depends on. The folder is part of it, because an environment holds absolute paths: as it is
    called without links, since several worktrees may have a link to one `.mpi`, and none may make the others' anew."""
    return f"{folder.resolve()}\n{sys.version}\n{requirements.read_text()}"


def make_environment(name: str, folder: Path | None = None) -> None:
    """Makes one virtual environment, from scratch if its list has changed; in `.mpi/` unless a folder is given."""
    # Without links, so that nothing in it names a worktree that is removed some day.
    folder, requirements = (folder or MPIS / name).resolve(), REQUIREMENTS / f"{name}.txt"
    if environment_is_current(folder, requirements):
        return
    print(f"setup: making {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True)
    if made.returncode != 0:
        fail(f"could not make a virtual environment in {folder}", "Check that the disk has room and Python's venv module works.", made.stdout + made.stderr)
    # The lists name all that is needed, dependencies included, so nothing else may be installed.
    pip(folder / "bin" / "python", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", requirements)
    (folder / "made-from.txt").write_text(stamp_text(folder, requirements))


def make_mpi4py_tests() -> None:
    """Unpacks the test suite out of mpi4py's source archive: the wheels do not carry it."""
    pin = next(line.strip() for line in (REQUIREMENTS / "mpich.txt").read_text().splitlines() if line.startswith("mpi4py=="))
    stamp = MPI4PY_TESTS / "made-from.txt"
    if stamp.exists() and stamp.read_text() == pin:
        return
    print(f"setup: downloading the test suite of {pin}", flush=True)
    shutil.rmtree(MPI4PY_TESTS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as download:
        pip(MPIS / "mpich" / "bin" / "python", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", "mpi4py",
            "--dest", download, pin)
        archive = next(Path(download).glob("mpi4py-*.tar.gz"))
        with tarfile.open(archive) as source:
            for member in source.getmembers():
                parts = Path(member.name).parts
                if len(parts) == 3 and parts[1] == "test" and member.isfile():
                    MPI4PY_TESTS.mkdir(parents=True, exist_ok=True)
                    (MPI4PY_TESTS / parts[2]).write_bytes(source.extractfile(member).read())
    stamp.write_text(pin)


def main() -> None:
    """Installs what the named purpose needs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purpose", choices=["unit", "quick", "mpi", "tests", "optional"],
                        help="unit: what the tests of the crates need; quick: MPICH and the test runner; mpi: the MPIs; tests: also the test suites; optional: also the "
                             "system's libfabric and Open MPI, and Chromium")
    purpose = parser.parse_args().purpose
    missing = missing_packages()
    if missing:
        install_packages(missing)
    if purpose == "unit":
        install_libfabric()
        return
    if purpose == "quick":
        make_environment("mpich")
        make_environment("tests")
        return
    if purpose == "optional":
        install_packages(OPTIONAL_PACKAGES)
        unpack_promtool()
    for name in ENVIRONMENTS:
        make_environment(name)
    if purpose != "mpi":
        install_libfabric()
        install_tools()
        make_environment("tests")
        make_mpi4py_tests()


if __name__ == "__main__":
    main()
