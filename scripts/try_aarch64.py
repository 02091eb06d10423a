#!/usr/bin/env python3
"""Builds the packages for aarch64 on x86-64, and runs program and unit tests under qemu.

Rust's standard library for aarch64 is that of the toolchain at hand, where it has one (rustup target add aarch64-unknown-linux-gnu), else
Debian's `rustc-web` is used, which is unpacked into build/dist and not installed. Tests that start other programs of their own need the
kernel to know qemu (Debian's qemu-user-static tells it); where it does not, those fail with "Exec format error".
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import setup  # noqa: E402
from dist import DIST  # noqa: E402
from harness.paths import ROOT, is_root  # noqa: E402
from packages.compile import environment, output_of, rustc  # noqa: E402
from packages.machine import GLIBC, MACHINES  # noqa: E402

MACHINE = MACHINES["aarch64"]
CRATES = ["flow", "bulk", "message", "link", "sim", "ofi", "cli"]
QEMU = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
TOOLS = [("qemu-aarch64-static", "qemu-user-static"), ("/usr/aarch64-linux-gnu/lib/libc.so.6", "libc6-arm64-cross")]
COMPILER = DIST / "debian-rust"
PACKAGES = ["rustc-web:amd64", "libstd-rust-web-dev:amd64", "libstd-rust-web-dev:arm64", "libllvm22:amd64"]
"""What Debian's compiler consists of, besides the library that is named after its version."""
LIMIT = 1200
"""Seconds that the tests of a crate may take."""
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$", re.MULTILINE)


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


def test(crate: str) -> tuple[str, bool]:
    """Runs the tests of a crate under qemu; a line on what came of them, and whether all passed."""
    seen = environment(DIST / "tools", DIST)
    seen |= {f"CARGO_TARGET_{MACHINE.triple.upper().replace('-', '_')}_RUNNER": " ".join(QEMU), "RUST_TEST_THREADS": "2"}
    command = [str(DIST / "tools" / "bin" / "cargo-zigbuild"), "test", "--locked", "--no-fail-fast", "--target", f"{MACHINE.triple}.{GLIBC}",
               "-p", f"tidegate-{crate}", "--lib", "--tests"]
    log = DIST / f"aarch64-{crate}.txt"
    with log.open("w") as output:
        # What takes long is to be the tests, not the compiler.
        compiled = subprocess.run([*command, "--no-run"], cwd=ROOT, env=seen, stdout=output, stderr=subprocess.STDOUT)
        if compiled.returncode != 0:
            return f"{crate}: not compiled ({log.relative_to(ROOT)})", False
        running = subprocess.Popen(command, cwd=ROOT, env=seen, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            running.wait(LIMIT)
            ended = ""
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            ended = f"; stopped after {LIMIT} s"
    text = log.read_text(errors="replace")
    passed, failed, ignored = (sum(int(match[group]) for match in RESULT.finditer(text)) for group in (1, 2, 3))
    names = ", ".join(FAILED.findall(text))
    line = f"{crate}: {passed} passed, {failed} failed, {ignored} ignored{ended}{': ' if names else ''}{names} ({log.relative_to(ROOT)})"
    return line, passed > 0 and not failed and not ended


def main() -> int:
    """Builds and tests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crates", nargs="*", metavar="CRATE", help=f"whose tests are run [default: {' '.join(CRATES)}]")
    parser.add_argument("--no-packages", action="store_true", help="only run tests")
    options = parser.parse_args()
    if not is_root():
        print("try_aarch64: not root, so qemu has to be there already", flush=True)
    install_emulator()
    if not has_library():
        os.environ["RUSTC"] = str(unpack_compiler())
    setup.make_environment("dist", DIST / "tools")
    if not options.no_packages:
        subprocess.run([sys.executable, ROOT / "scripts" / "dist.py", "--machine", MACHINE.name], check=True)
        program = DIST / "target" / MACHINE.triple / "dist" / "tidegate"
        print(subprocess.run([*QEMU, program, "--version"], check=True, capture_output=True, text=True).stdout, end="", flush=True)
    outcomes = []
    for crate in options.crates or CRATES:
        line, is_well = test(crate)
        outcomes.append(is_well)
        print(line, flush=True)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
