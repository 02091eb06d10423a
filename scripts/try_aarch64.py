#!/usr/bin/env python3
"""Builds the packages for aarch64 on x86-64, and runs the command, unit tests of the crates and MPI programs under qemu (`make emulated`).

MPI programs are compiled by Zig against MPICH's wheel for aarch64, in the version that the other tests use. Launcher and report are
those of this machine and of the packed tar: `tidegate run mpiexec -n 3 qemu-aarch64-static ./program`, with all but mpiexec under qemu.
The kernel need not know qemu.

Rust's standard library for aarch64 is that of the toolchain at hand, where it has one (rustup target add aarch64-unknown-linux-gnu), else
Debian's `rustc-web` is used, which is unpacked into build/dist and not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import setup  # noqa: E402
from dist import DIST, version  # noqa: E402
from harness.paths import MPIS, REQUIREMENTS, ROOT, is_root  # noqa: E402
from packages.compile import environment, output_of, rustc  # noqa: E402
from packages.machine import GLIBC, MACHINES  # noqa: E402

MACHINE = MACHINES["aarch64"]
CRATES = ["flow", "bulk", "message", "link", "sim"]
"""Those whose tests start no other program of their own, which only a kernel that knows qemu could run."""
QEMU = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
TOOLS = [("qemu-aarch64-static", "qemu-user-static"), ("/usr/aarch64-linux-gnu/lib/libc.so.6", "libc6-arm64-cross")]
COMPILER = DIST / "debian-rust"
PACKAGES = ["rustc-web:amd64", "libstd-rust-web-dev:amd64", "libstd-rust-web-dev:arm64", "libllvm22:amd64"]
"""What Debian's compiler consists of, besides the library that is named after its version."""
LIMIT = 3600
"""Seconds that the tests of a crate, or an MPI program, may take."""
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
FILTERED = re.compile(r"; (\d+) filtered out")
FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$", re.MULTILINE)
LIBRARY_ALONE = ["link", "sim"]
"""Crates of which only the tests within the library are run: others start this program once more, or simulate for long."""
INTERLEAVINGS = "it tries millions of interleavings, which takes hours under qemu"
MEMORY = "qemu has no process_vm_readv"
FORKS = "under qemu a forked child keeps memory that the kernel was to clear (MADV_WIPEONFORK)"
LIMITS = "it lowers limits of a process, which qemu's own memory and files then exceed"
NOT_EMULATED = {
    "flow": {"exhaustive::": INTERLEAVINGS},
    "message": {"explore::": INTERLEAVINGS},
    "link": {
        "process::tests::each_generation_has_a_number_that_no_ancestor_has_had": FORKS,
        "shm::bulk::tests::a_forked_childs_copy_is_not_our_memory": FORKS,
        "shm::bulk::tests::a_process_that_ends_or_executes_another_program_is_out_of_reach": MEMORY,
        "shm::bulk::tests::addresses_that_are_not_there_are_faults_of_those_who_named_them": MEMORY,
        "shm::bulk::tests::another_address_space_is_never_the_peers": MEMORY,
        "shm::bulk::tests::more_pieces_than_a_call_takes_cut_differently_on_both_sides": MEMORY,
        "shm::fork::tests::a_child_is_known_however_it_was_made": FORKS,
        "shm::lock_file::tests::a_child_that_has_a_copy_neither_keeps_the_locks_nor_releases_them": FORKS,
        "shm::sibling::tests::a_process_reads_its_own_word_and_no_other": MEMORY,
        "shm::tests::the_hole_of_a_dead_process_stops_the_reader_only_until_it_is_dead": FORKS,
        "shm::tests::who_lacks_": LIMITS,
        "shm::withdrawing::": MEMORY,
    },
}
"""Tests, by crate and a part of their names, that are left out, and why."""
PAGES = {"4 KiB": [], "64 KiB": ["-p", "65536"]}
"""Pages that kernels for aarch64 have, and qemu's words for them."""
PROGRAM = ROOT / "tests" / "programs" / "traffic.c"
RANKS = 3
TRAFFIC = ["3", "20", "200003", "1"]
"""Rounds, messages of a round to each rank, the longest one in bytes, the seed."""
SCHEMES = ["dynamic", "speculative"]


def has_library() -> bool:
    """Whether the toolchain at hand compiles for aarch64."""
    return (Path(output_of(rustc(), "--print", "sysroot")) / "lib" / "rustlib" / MACHINE.triple).is_dir()


def apt(*words: str, cwd: Path) -> str:
    """Runs apt-get with lists of its own, for both architectures, so that this system's stay as they are."""
    lists = cwd / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    (cwd / "status").touch()
    options = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::State::status={cwd / 'status'}", "-o", "APT::Architectures::=amd64",
               "-o", "APT::Architectures::=arm64", "-o", f"Dir::Cache={cwd}", "-o", "APT::Sandbox::User=root"]
    done = subprocess.run([words[0], *options, *words[1:]], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        setup.fail(f"`{' '.join(words)}` failed", "Check the network; or rustup target add aarch64-unknown-linux-gnu.", done.stdout[-1500:] + done.stderr[-1500:])
    return done.stdout


def unpack_compiler() -> Path:
    """Unpacks Debian's compiler; returns a program that runs it."""
    program = COMPILER / "rustc"
    if program.exists():
        return program
    print("try_aarch64: unpacking Debian's rustc-web", flush=True)
    shutil.rmtree(COMPILER, ignore_errors=True)
    downloads = COMPILER / "downloads"
    downloads.mkdir(parents=True)
    apt("apt-get", "update", cwd=downloads)
    depends = apt("apt-cache", "depends", "libstd-rust-web-dev:amd64", cwd=downloads)
    library = re.search(r"Depends: (libstd-rust-web-[\d.]+)", depends)[1]
    apt("apt-get", "download", *PACKAGES, f"{library}:amd64", cwd=downloads)
    for package in sorted(downloads.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, COMPILER], check=True)
    shutil.rmtree(downloads)
    program.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{COMPILER}/usr/lib/x86_64-linux-gnu:$LD_LIBRARY_PATH" exec "{COMPILER}/usr/bin/rustc" "$@"\n')
    program.chmod(0o755)
    return program


def install_emulator() -> None:
    """Installs qemu and aarch64's C library."""
    missing = [package for file, package in TOOLS if not shutil.which(file) and not Path(file).exists()]
    if missing:
        setup.install_packages(missing)


def run_to(log: Path, command: list, limit: float | None, seen: dict[str, str]) -> int | None:
    """Runs a command with a file for what it prints; its exit code, or None if it has not ended in time and was stopped."""
    with log.open("a") as output:
        running = subprocess.Popen([str(word) for word in command], cwd=ROOT, env=seen, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return running.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            return None


def test(crate: str) -> bool:
    """Runs the tests of a crate under qemu and prints a line on what came of them; whether those passed that qemu can run."""
    left_out = NOT_EMULATED.get(crate, {})
    seen = environment(DIST / "tools", DIST)
    seen |= {f"CARGO_TARGET_{MACHINE.triple.upper().replace('-', '_')}_RUNNER": " ".join(QEMU), "RUST_TEST_THREADS": "2"}
    command = [DIST / "tools" / "bin" / "cargo-zigbuild", "test", "--locked", "--no-fail-fast", "--target", f"{MACHINE.triple}.{GLIBC}",
               "-p", f"tidegate-{crate}", "--lib", *([] if crate in LIBRARY_ALONE else ["--tests"])]
    log = DIST / f"aarch64-{crate}.txt"
    log.unlink(missing_ok=True)
    # The limit is for the tests, not for the compiler.
    if run_to(log, [*command, "--no-run"], None, seen) != 0:
        print(f"{crate}: not compiled ({log.relative_to(ROOT)})", flush=True)
        return False
    status = run_to(log, [*command, "--", *(word for name in left_out for word in ("--skip", name))], LIMIT, seen)
    text = log.read_text(errors="replace")
    passed, failed, ignored = (sum(int(match[group]) for match in RESULT.finditer(text)) for group in (1, 2, 3))
    names, left = ", ".join(FAILED.findall(text)), sum(map(int, FILTERED.findall(text)))
    ended = f"; stopped after {LIMIT} s" if status is None else ""
    print(f"{crate}: {passed} passed, {failed} failed, {ignored} ignored, {left} left out{ended}{': ' if names else ''}{names} "
          f"({log.relative_to(ROOT)})", flush=True)
    return passed > 0 and status == 0


def unpack_mpi() -> Path:
    """MPICH for aarch64, from the wheel of the version that other tests use; the folder with bin, include and lib."""
    (wanted,) = [line for line in (REQUIREMENTS / "mpich.txt").read_text().splitlines() if line.startswith("mpich==")]
    folder = DIST / "aarch64-mpi"
    wheel = folder / f"mpich-{wanted.partition('==')[2]}-py3-none-{MACHINE.wheel_tag}.whl"
    if not wheel.exists():
        shutil.rmtree(folder, ignore_errors=True)
        setup.pip(sys.executable, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--platform", MACHINE.wheel_tag,
                  "--dest", folder, wanted)
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
    (data,) = folder.glob("*.data/data")
    return data


def compile_program(mpi: Path) -> Path:
    """Compiles the MPI program."""
    program = DIST / "aarch64-mpi" / PROGRAM.stem
    command = [DIST / "tools" / "bin" / "python", "-m", "ziglang", "cc", "-target", f"{MACHINE.name}-linux-gnu.{GLIBC}", "-O2", "-std=gnu11",
               f"-I{mpi / 'include'}", PROGRAM, "-o", program, f"-L{mpi / 'lib'}", "-lmpi"]
    subprocess.run([str(word) for word in command], check=True, env=environment(DIST / "tools", DIST))
    return program


def unpack_tidegate() -> Path:
    """The command out of the packed tar, with the provider beside it."""
    name = f"tidegate-{version()}-{MACHINE.name}"
    with tarfile.open(DIST / f"{name}.tar.gz") as packed:
        packed.extractall(DIST, filter="data")
    return DIST / name / "bin" / "tidegate"


def run_mpi(tidegate: Path, scheme: str, pages: str, mpi: Path, program: Path) -> bool:
    """Runs the MPI program over the packed provider, and makes sure by the report that its messages went that way; prints a line."""
    log, report = DIST / "aarch64-mpi.txt", DIST / "aarch64-mpi.json"
    report.unlink(missing_ok=True)
    qemu = [*QEMU, *PAGES[pages]]
    inside = [*qemu, "-E", f"LD_LIBRARY_PATH={mpi / 'lib'}:{mpi / 'lib' / 'mpich'}"]
    command = [*qemu, tidegate, "run", "--scheme", scheme, "--json", report, MPIS / "mpich" / "bin" / "mpiexec", "-n", RANKS, *inside, program, *TRAFFIC]
    status = run_to(log, command, LIMIT, dict(os.environ))
    told = json.loads(report.read_text()) if report.exists() else {}
    is_well = status == 0 and told.get("used") == "messages" and len(told["processes"]) == RANKS
    short, long = (told["job"][name]["job"] for name in ("messages_eager", "messages_rendezvous")) if is_well else (0, 0)
    print(f"MPICH, {RANKS} ranks, {scheme}, pages of {pages}: "
          + (f"every byte arrived, {short} short and {long} long messages" if is_well else f"ended with {status} ({log.relative_to(ROOT)})"), flush=True)
    return is_well and short > 0 and long > 0


def main() -> int:
    """Builds and tests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crates", nargs="*", metavar="CRATE", help=f"whose tests are run [default: {' '.join(CRATES)}]")
    parser.add_argument("--no-packages", action="store_true", help="only run tests of crates")
    options = parser.parse_args()
    if not is_root():
        print("try_aarch64: not root, so qemu has to be there already", flush=True)
    install_emulator()
    if not has_library():
        os.environ["RUSTC"] = str(unpack_compiler())
    setup.make_environment("dist", DIST / "tools")
    print(f"{output_of(QEMU[0], '--version').splitlines()[0]}; {output_of(rustc(), '--version')}", flush=True)
    outcomes = []
    if not options.no_packages:
        subprocess.run([sys.executable, ROOT / "scripts" / "dist.py", "--machine", MACHINE.name, "wheel", "deb", "tar"], check=True)
        tidegate, mpi = unpack_tidegate(), unpack_mpi()
        print(output_of(*QEMU, str(tidegate), "--version"), flush=True)
        (DIST / "aarch64-mpi.txt").unlink(missing_ok=True)
        program = compile_program(mpi)
        outcomes += [run_mpi(tidegate, scheme, pages, mpi, program) for pages in PAGES for scheme in SCHEMES]
    outcomes += [test(crate) for crate in options.crates or CRATES]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
