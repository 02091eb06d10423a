#!/usr/bin/env python3
"""As root: installs each package of build/dist on fresh Debian systems without compilers and Rust, and runs MPI jobs there.

Each system is a folder that debootstrap fills. What runs there runs in name spaces of its own: other processes and mounts are not seen,
and nothing outlives it. The folders are removed at the end. The MPI is MPICH's wheel.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import setup  # noqa: E402
from dist import DIST, version  # noqa: E402
from harness.paths import REQUIREMENTS, is_root  # noqa: E402
from packages.machine import MACHINES, Machine, this_machine  # noqa: E402

SYSTEMS = ["bullseye", "bookworm", "trixie"]
"""Releases of Debian: 11, 12 and 13, with the C libraries 2.31, 2.36 and 2.41."""
COMPILERS = ["cc", "gcc", "c++", "clang", "rustc", "cargo"]
RANKS = 2
LIMIT = 300
"""Seconds that one command may take there."""
ENTER = """\
set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/dev/shm"
mount --rbind /sys "$0/sys"
status=0
chroot "$0" "$@" || status=$?
exit $status
"""
"""Enters the folder $0 from within name spaces of its own, and runs the rest there. The shell stays, so that no program has to
be process 1."""

NOTEBOOK = f"""\
import os, tidegate
os.environ.update(tidegate.env("/opt/mpi/bin/mpiexec", scheme="static"))
os.environ["FI_TIDEGATE_STATS_DIR"] = "/tmp/counters"
os.mkdir("/tmp/counters")
command = ["/opt/mpi/bin/mpiexec", "-n", "{RANKS}", "/opt/mpi/bin/python", "/opt/job.py"]
os.execv(command[0], command)
"""
"""A program that sets itself up as a notebook would, and starts a job."""


class FreshSystem:
    """A system in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *words: str) -> str:
        """Runs a command there; returns what it printed. One that fails ends the trial."""
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, str(self.root), "env", "-i", "HOME=/root", "LC_ALL=C.UTF-8",
                   "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *words]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            setup.fail(f"on {self.root.name}, `{' '.join(words)}` has not ended after {LIMIT} s", "Give --keep, and run it by hand.")
        if done.returncode != 0:
            setup.fail(f"on {self.root.name}, `{' '.join(words)}` ended with {done.returncode}", "What it printed is above.", done.stdout + done.stderr)
        return done.stdout

    def job(self, tidegate: str) -> None:
        """Runs a job over Tidegate, and makes sure by its report that the messages went that way."""
        said = self.run(tidegate, "run", "--json", "/tmp/report.json", "/opt/mpi/bin/mpiexec", "-n", str(RANKS), "/opt/mpi/bin/python", "/opt/job.py")
        report = json.loads((self.root / "tmp/report.json").read_text())
        expect(f"{RANKS} ranks have exchanged" in said, f"the job said {said!r}")
        expect_messages(report)


def expect(holds: bool, what: str) -> None:
    """Ends the trial with a message if something does not hold."""
    if not holds:
        setup.fail("the trial failed", what)


def expect_messages(report: dict) -> None:
    """The report of a run has all ranks, and they have sent short and long messages by Tidegate."""
    expect(report["used"] == "messages", f"no message went through Tidegate: {report['reasons']}")
    expect(len(report["processes"]) == RANKS, f"the report is of {len(report['processes'])} processes")
    for name in ("messages_eager", "messages_rendezvous"):
        expect(report["job"][name]["job"] > 0, f"{name} is 0")


@contextmanager
def fresh_system(release: str, mirror: list[str], keep: bool) -> Iterator[FreshSystem]:
    """Makes a system, with Python and its virtual environments and nothing else, and removes it."""
    root = DIST / "systems" / release
    remove(root)
    root.parent.mkdir(parents=True, exist_ok=True)
    try:
        command = ["debootstrap", "--variant=minbase", "--include=python3-venv", release, str(root), *mirror]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            setup.fail(f"debootstrap could not make {release}", "Check the network, or give --mirror and other releases.", (done.stdout + done.stderr)[-3000:])
        # MPICH's launcher looks up the name of its host.
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
        yield FreshSystem(root)
    finally:
        if not keep:
            remove(root)


def remove(root: Path) -> None:
    """Removes a system, unless something of this machine is mounted below it."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    below = [mount for mount in mounts if Path(mount.replace("\\040", " ")).is_relative_to(root)]
    if below:
        setup.fail(f"{root} has mounts: {', '.join(below)}", "Unmount them.")
    shutil.rmtree(root, ignore_errors=True)


def pinned(*names: str) -> list[str]:
    """The versions that tests use of packages of MPICH's environment."""
    lines = (REQUIREMENTS / "mpich.txt").read_text().splitlines()
    return [line for line in lines if line.partition("==")[0] in names]


def install_mpi(system: FreshSystem) -> None:
    """Puts MPICH and mpi4py, as wheels, into an environment /opt/mpi; they are downloaded outside, for the Python there."""
    python = system.run("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    wheels = system.root / "opt/wheels"
    setup.pip(sys.executable, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--python-version", python, "--dest", wheels,
              *pinned("mpich", "mpi4py"))
    system.run("python3", "-m", "venv", "/opt/mpi")
    system.run("sh", "-c", "/opt/mpi/bin/pip install --quiet --no-index --no-deps /opt/wheels/*.whl")
    shutil.copyfile(Path(__file__).parent / "packages" / "fresh_job.py", system.root / "opt/job.py")


def try_tar(system: FreshSystem, package: Path) -> None:
    """Unpacked in two places, by a name with a space as well."""
    for place in ("/srv/one", "/srv/another place"):
        system.run("mkdir", "-p", place)
        system.run("tar", "-xzf", f"/opt/{package.name}", "-C", place)
        tidegate = f"{place}/{package.name.removesuffix('.tar.gz')}/bin/tidegate"
        expect(system.run(tidegate, "--version").startswith(f"tidegate {version()} (commit "), "another version")
        system.job(tidegate)


def try_deb(system: FreshSystem, package: Path) -> None:
    """Installed and removed by dpkg."""
    system.run("dpkg", "-i", f"/opt/{package.name}")
    for page in ("copyright", "docs/first-hour.md"):
        expect((system.root / "usr/share/doc/tidegate" / page).is_file(), f"{page} is not in its place")
    system.run("dpkg", "--verify", "tidegate")
    system.job("tidegate")
    system.run("dpkg", "--purge", "tidegate")
    left = [path for path in (system.root / "usr").rglob("*tidegate*")]
    expect(not left, f"dpkg has left {left}")


def try_wheel(system: FreshSystem, package: Path) -> None:
    """Installed by pip: the command, the module, the settings for a job without `tidegate run`, the manual pages."""
    system.run("/opt/mpi/bin/pip", "install", "--quiet", "--no-index", f"/opt/{package.name}")
    system.job("/opt/mpi/bin/tidegate")
    system.run("/opt/mpi/bin/python", "-m", "tidegate", "--version")
    said = system.run("/opt/mpi/bin/python", "-c", NOTEBOOK)
    pages = list((system.root / "tmp/counters").iterdir())
    expect(f"{RANKS} ranks have exchanged" in said and len(pages) == RANKS, f"tidegate.env(): {said!r}, {len(pages)} pages of counters")
    lines = system.run("/opt/mpi/bin/python", "-m", "tidegate", "env", "/opt/mpi/bin/mpiexec")
    expect("export FI_PROVIDER=tidegate\n" in lines, f"python -m tidegate env: {lines}")
    for page in ("man/man1/tidegate.1", "man/man7/fi_tidegate.7", "man/man3/tidegate_bulk.3", "doc/tidegate/docs/first-hour.md"):
        expect((system.root / "opt/mpi/share" / page).is_file(), f"{page} is not in its place")
    system.run("/opt/mpi/bin/pip", "uninstall", "--quiet", "--yes", "tidegate")
    # Folders of shared files stay behind, as with every wheel that has some.
    left = [path for path in (system.root / "opt/mpi").rglob("*") if "tidegate" in str(path.relative_to(system.root)) and not path.is_dir()]
    expect(not left, f"pip has left {left}")


def packages(machine: Machine) -> dict[str, Path]:
    """The packages of build/dist, by kind."""
    number = version()
    names = {
        "tar": f"tidegate-{number}-{machine.name}.tar.gz",
        "deb": f"tidegate_{number}_{machine.debian}.deb",
        "wheel": f"tidegate-{number}-py3-none-{machine.wheel_tag}.whl",
    }
    missing = [name for name in names.values() if not (DIST / name).is_file()]
    if missing:
        setup.fail(f"not built: {', '.join(missing)}", "Run `make dist` first.")
    return {kind: DIST / name for kind, name in names.items()}


TRIALS = {"tar": try_tar, "deb": try_deb, "wheel": try_wheel}


def try_on(release: str, mirror: list[str], keep: bool) -> None:
    """Tries all packages on one system."""
    print(f"{release}: making it", flush=True)
    with fresh_system(release, mirror, keep) as system:
        found = [name for name in COMPILERS if (system.root / "usr/bin" / name).exists()]
        expect(not found, f"{release} is to have no compilers, and has {', '.join(found)}")
        library = system.run("getconf", "GNU_LIBC_VERSION").split()[1]
        install_mpi(system)
        for kind, package in packages(MACHINES[this_machine()]).items():
            shutil.copyfile(package, system.root / "opt" / package.name)
            TRIALS[kind](system, package)
            print(f"{release} (C library {library}): {package.name} installs, and a job of {RANKS} ranks runs over it", flush=True)


def main() -> None:
    """Tries all packages on all systems asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help=f"releases of Debian [default: {' '.join(SYSTEMS)}]")
    parser.add_argument("--mirror", action="append", default=[], metavar="URL", help="where debootstrap gets them [default: its own]")
    parser.add_argument("--keep", action="store_true", help="leave the systems in build/dist/systems")
    options = parser.parse_args()
    if not is_root():
        setup.fail("only root can make another root file system", "Run it as root.")
    if not shutil.which("debootstrap"):
        setup.install_packages(["debootstrap"])
    packages(MACHINES[this_machine()])
    for release in options.releases or SYSTEMS:
        try_on(release, options.mirror, options.keep)


if __name__ == "__main__":
    main()
