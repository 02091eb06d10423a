"""Runs the test programs of the crates many times beside a busy loop, to find tests that fail now and then.

Tests with processes, files or sockets depend on what else the machine does: they are run 200 times, the others 20
times. What a failed run printed is kept in build/repeat/. usage: repeat.py [--often N] [--seldom N] [--only TESTS] [NAME ...], a
NAME being part of a test program's, such as cli/it, and TESTS of the names of its tests, such as run::.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from harness.crates import Program, programs
from harness.paths import BUILD, ROOT

CRATES_WITH_PROCESSES = ("link", "ofi", "cli")
OUTPUT = BUILD / "repeat"


def repeat(program: Program, times: int, only: str) -> int:
    """Runs a test program many times; returns how many runs failed. `only`: what the names of the tests contain."""
    failures, started = 0, time.monotonic()
    for number in range(times):
        done = subprocess.run([program.path, only], cwd=program.crate, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            failures += 1
            (OUTPUT / f"{program.title.replace('/', '-')}-{number}.txt").write_bytes(done.stdout)
    print(f"{program.title:<28} {times:>4} runs {failures:>4} failed {time.monotonic() - started:>7.0f} s", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--often", type=int, default=200, metavar="N", help="runs of tests with processes, files or sockets (default: 200)")
    parser.add_argument("--seldom", type=int, default=20, metavar="N", help="runs of the others (default: 20)")
    parser.add_argument("--only", default="", metavar="TESTS", help="only tests whose names contain this")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only test programs whose names contain one of these")
    arguments = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    chosen = [program for program in programs() if not arguments.names or any(name in program.title for name in arguments.names)]
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        failures = sum(repeat(program, arguments.often if program.crate.name in CRATES_WITH_PROCESSES else arguments.seldom, arguments.only) for program in chosen)
    finally:
        busy.kill()
        busy.wait()
    if failures:
        print(f"what the failed runs printed is in {OUTPUT.relative_to(ROOT)}")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
