#!/usr/bin/env python3
"""Runs the tests of the crates: all of `cargo test`, but several test programs at a time, since some compute and others
wait, and slow parts only when something has changed on which they depend (`scripts/stamp.py`).

    scripts/unit.py             all but parts with a current stamp
    scripts/unit.py --always    all
    scripts/unit.py NAME ...    only test programs whose names contain one of these, such as link/it
    scripts/unit.py --quick CRATE ...
                                of these crates, what takes seconds: no part with a stamp, few of the C programs

What a program prints is shown if a test of it fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from harness.crates import Program, programs
from stamp import Stamp, Unusable

AT_ONCE = 3
"""Test programs that run side by side. Those of `ofi` and `link` mostly wait, the explorations compute."""


@dataclass(frozen=True)
class Slow:
    """A part that has a stamp: some tests of some test programs."""

    stamp: str
    program: str
    """Pattern of the titles of the programs."""
    tests: tuple[str, ...]
    """What the names of its tests begin with."""


SLOW = [
    Slow("explore-flow", "flow/it", ("exhaustive::",)),
    Slow("explore-bulk", "bulk/it", ("exhaustive::",)),
    Slow("explore-message", "message/it", ("explore::programs::", "explore::random_programs::", "explore::few::")),
]
QUICK = {"ofi/it": ("information::", "programs::messages_", "programs::receives_"), "link/it": ("shm::", "segments::", "services::", "paths::")}
"""What `--quick` leaves of programs that wait for minutes."""
FIRST = ["message/it", "flow/it", "link/tidegate_link"]
"""The longest but for `EARLY`, which begin first."""
EARLY = "ofi/it"
"""It takes longest and mostly waits: it is built first, and runs while the others are compiled,"""
EARLY_AT_ONCE = 4
"""so many of its tests at a time, on however few cores."""


@dataclass
class Job:
    """A test program with the words that choose its tests."""

    program: Program
    words: list[str] = field(default_factory=list)
    stamp: str | None = None

    @property
    def title(self) -> str:
        return f"{self.program.title} ({self.stamp})" if self.stamp else self.program.title


@dataclass
class Outcome:
    status: int
    passed: int
    seconds: float


def jobs_of(program: Program) -> list[Job]:
    """The program's tests, parts with stamps apart."""
    slow = [part for part in SLOW if re.fullmatch(part.program, program.title)]
    rest = Job(program, [word for part in slow for test in part.tests for word in ("--skip", test)])
    return [rest, *(Job(program, list(part.tests), part.stamp) for part in slow)]


def quick_jobs_of(program: Program) -> list[Job]:
    """What takes seconds of a program."""
    jobs = [job for job in jobs_of(program) if not job.stamp]
    return [Job(job.program, [*job.words, *QUICK.get(program.title, ())]) for job in jobs]


def order(job: Job) -> tuple[bool, int]:
    """Parts with stamps first, since they are slow, then the longest programs."""
    title = job.program.title
    return (job.stamp is None, FIRST.index(title) if title in FIRST else len(FIRST))


def run(job: Job) -> Outcome:
    """Runs a job; shows its output if it fails."""
    started = time.monotonic()
    # Cargo tells tests of its own where the crate is, by this variable.
    environment = os.environ | {"CARGO_MANIFEST_DIR": str(job.program.crate)}
    if job.program.title == EARLY:
        environment.setdefault("RUST_TEST_THREADS", str(max(EARLY_AT_ONCE, os.cpu_count() or 1)))
    done = subprocess.run([job.program.path, *job.words], cwd=job.program.crate, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    seconds = time.monotonic() - started
    counted = re.search(r"^test result: .*?(\d+) passed; (\d+) failed", done.stdout, re.MULTILINE)
    passed = int(counted[1]) if counted else 0
    said = f"{passed} tests" if done.returncode == 0 else "FAILED"
    print((done.stdout if done.returncode else "") + f"{job.title:<44} {said:>10} {seconds:>7.1f} s", flush=True)
    # A part none of whose tests is there any more proves nothing.
    status = done.returncode or (1 if job.stamp and not passed else 0)
    if status and not done.returncode:
        print(f"{job.title}: no test has a name that begins with one of {job.words}", flush=True)
    return Outcome(status, passed, seconds)


def run_stamped(name: str, outcomes: dict[int, Outcome], jobs: list[Job]) -> int:
    """Runs all jobs of a stamp."""
    for job in jobs:
        outcomes[id(job)] = run(job)
    return max(outcomes[id(job)].status for job in jobs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--always", action="store_true", help="run the parts with stamps also if nothing has changed")
    parser.add_argument("--quick", action="store_true", help="of these crates, what takes seconds")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only test programs whose names contain one of these")
    arguments = parser.parse_args()
    started = time.monotonic()
    outcomes: dict[int, Outcome] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs, waiting = [], []

        def begin(chosen: list[Job]) -> None:
            jobs.extend(chosen)
            for name in sorted({job.stamp for job in chosen if job.stamp}):
                own = [job for job in chosen if job.stamp == name]
                waiting.append(pool.submit(Stamp(name).run, lambda name=name, own=own: run_stamped(name, outcomes, own), always=arguments.always))
            waiting.extend(pool.submit(lambda job=job: outcomes.setdefault(id(job), run(job)).status) for job in chosen if not job.stamp)

        if arguments.quick:
            begin(sorted((job for program in programs(arguments.names) for job in quick_jobs_of(program)), key=order))
        else:
            def is_meant(program: Program) -> bool:
                return not arguments.names or any(name in program.title for name in arguments.names)

            if not arguments.names or any(name in EARLY for name in arguments.names):
                crate, name = EARLY.split("/")
                begin([job for program in programs([crate], ["--test", name]) for job in jobs_of(program)])
            rest = [program for program in programs() if is_meant(program) and program.title != EARLY]
            begin(sorted((job for program in rest for job in jobs_of(program)), key=order))
        try:
            statuses = [one.result() for one in waiting]
        except Unusable as error:
            print(f"unit: {error}", file=sys.stderr)
            statuses = [2]
    passed = sum(outcome.passed for outcome in outcomes.values())
    failed = [job.title for job in jobs if id(job) in outcomes and outcomes[id(job)].status]
    print(f"{passed} tests of the crates in {time.monotonic() - started:.0f} s" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return max(statuses, default=0)


if __name__ == "__main__":
    sys.exit(main())
