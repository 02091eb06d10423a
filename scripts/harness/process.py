"""Runs one command to its end and leaves nothing behind.

Each run carries a marker in its environment. Every process of it that is still alive afterwards, also a daemon in a
session of its own, is found by that marker in /proc, reported and killed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MARKER = "TIDEGATE_RUN_ID"
SHARED_MEMORY = Path("/dev/shm")
"""Where the segments lie."""
SEGMENT = re.compile(r"tidegate-\d+-[0-9a-f]{12}-\d+-(\d+)-\d+-[0-9a-f]{16}$")
"""The name of a segment: user, host, process namespace, process, number, tag. Files of other kinds begin alike, such as the
claims that `tidegate_link` makes (`shm/address.rs`, `shm/service.rs`)."""
WATCH_SECONDS = 0.1
"""How often to look who belongs to a run."""
MPI_FILES = re.compile(r"mpich_shm_|sm_segment\.|vader_segment\.|Intel_MPI_|\d+:\d+:\d+$")
"""How the MPIs and libfabric's own `shm` (the last alternative) name their files there, which stay when a rank is
killed."""
EXIT_SECONDS = 5.0
"""How long the last processes of a job may take to end after its launcher has."""


@dataclass
class Result:
    """How a command ended."""

    command: list[str]
    status: int
    """Exit status; negative: the signal that ended it."""
    output: str
    """What it printed, standard error included."""
    seconds: float
    timed_out: bool = False
    leftovers: list[str] = field(default_factory=list)
    """Processes and segments that outlived it, in words."""
    processes: set[int] = field(default_factory=set)
    """Process ids that belonged to it, if segments were checked or somebody observed."""

    @property
    def clean(self) -> bool:
        """It succeeded and left nothing."""
        return self.status == 0 and not self.timed_out and not self.leftovers

    def explain(self, lines: int = 60) -> str:
        """A report for the reader of a failed test."""
        head = "timed out" if self.timed_out else f"exit status {self.status}"
        tail = "\n".join(self.output.splitlines()[-lines:])
        left = "".join(f"\nleft behind: {item}" for item in self.leftovers)
        return f"{' '.join(self.command)}\n{head} after {self.seconds:.1f} s{left}\n{tail}"


def segments() -> set[str]:
    """Names of this user's Tidegate segments in shared memory."""
    return {name for name in _own_files() if SEGMENT.match(name)}


def _own_files() -> set[str]:
    """Names of all files of this user in shared memory."""
    found = set()
    for entry in SHARED_MEMORY.iterdir():
        try:
            if entry.stat().st_uid == os.getuid():
                found.add(entry.name)
        except FileNotFoundError:
            continue
    return found


def _mpi_files() -> set[str]:
    """Names of the MPIs' own files in shared memory."""
    return {name for name in _own_files() if MPI_FILES.match(name)}


def marked(run: str) -> dict[int, str]:
    """Live processes of a run: process id and command line."""
    wanted = f"{MARKER}={run}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
    return found


def run(command: list[str | Path], environment: dict[str, str] | None = None, *, timeout: float, cwd: Path | None = None,
        check_segments: bool = False, observe: Callable[[set[int]], None] | None = None) -> Result:
    """Runs a command in a process group of its own. `timeout` in seconds; past it the whole group is killed.

    `check_segments`: also report segments that it left in shared memory and that no live process owns. `observe` is
    called with the ids of all processes of the run every WATCH_SECONDS.
    """
    run_id, processes = uuid.uuid4().hex, set[int]()
    words = [str(word) for word in command]
    before, mpi_files = segments(), _mpi_files()
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(words, env={**(os.environ if environment is None else environment), MARKER: run_id}, cwd=cwd,
                                 stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        timed_out = False
        try:
            _watch(child, run_id, timeout, processes if check_segments or observe else None, observe)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            seconds = time.monotonic() - started
            leftovers = _end_rest(child, run_id, before, processes, kill_now=child.returncode is None)
            if child.returncode != 0:
                for name in _unheld(_mpi_files() - mpi_files):
                    (SHARED_MEMORY / name).unlink(missing_ok=True)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Result(words, child.returncode, text, seconds, timed_out, leftovers, processes)


@contextmanager
def started(command: list[str | Path], environment: dict[str, str], **streams) -> Iterator[subprocess.Popen]:
    """A command that runs meanwhile, without output unless `streams` say otherwise; at the end it is interrupted, and nothing of it is left."""
    mark = os.urandom(8).hex()
    child = subprocess.Popen([str(word) for word in command], env=environment | {MARKER: mark}, stdin=subprocess.DEVNULL, start_new_session=True,
                             **({"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | streams))
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(20)
        finally:
            for pid in marked(mark):
                os.kill(pid, signal.SIGKILL)


def _watch(child: subprocess.Popen, run_id: str, timeout: float, processes: set[int] | None, observe: Callable[[set[int]], None] | None) -> None:
    """Waits for a child; meanwhile notes in `processes` who belongs to the run, to know its segments from those of
    other jobs."""
    if processes is None:
        child.wait(timeout)
        return
    deadline = time.monotonic() + timeout
    while True:
        alive = set(marked(run_id))
        processes.update(alive)
        if observe:
            observe(alive)
        try:
            child.wait(min(WATCH_SECONDS, max(deadline - time.monotonic(), 0.0)))
            return
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                raise


def _end_rest(child: subprocess.Popen, run_id: str, before: set[str], processes: set[int], *, kill_now: bool) -> list[str]:
    """Kills the processes that are left of a run. Returns, in words, processes and segments that should not have been
    left."""
    killed = set(marked(run_id)) if kill_now else set()
    if kill_now:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    deadline = time.monotonic() + (0.0 if kill_now else EXIT_SECONDS)
    alive = marked(run_id)
    while alive and time.monotonic() < deadline:
        time.sleep(0.02)
        alive = marked(run_id)
    for pid in alive:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    # A large process takes a while to end, and holds its files in shared memory until then.
    gone_by = time.monotonic() + EXIT_SECONDS
    while any(_is_running(pid) for pid in killed | set(alive)) and time.monotonic() < gone_by:
        time.sleep(0.02)
    leftovers = [] if kill_now else [f"process {pid}: {line}" for pid, line in alive.items()]
    left = orphans(before, processes)
    # The last process may just be ending, so a job that succeeded gets time to remove its segments. One that failed may
    # leave them.
    while left and child.returncode == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
        left = orphans(before, processes)
    leftovers += [f"{SHARED_MEMORY}/{name}" for name in sorted(left)]
    return leftovers


def _is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie. One that is ending counts, although its memory may be gone already."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def orphans(before: set[str], processes: set[int]) -> set[str]:
    """Segments of `processes` that are not in `before` and that no live process has mapped or open."""
    new = segments() - before
    return _unheld({name for name in new if int(SEGMENT.match(name)[1]) in processes})


def _unheld(names: set[str]) -> set[str]:
    """Those files in shared memory that no live process has mapped or open."""
    for entry in Path("/proc").iterdir() if names else ():
        if entry.name.isdigit():
            names = names - {name for name in names if _holds(entry, name)}
    return names


def _holds(process: Path, name: str) -> bool:
    """Whether a process has a segment mapped or open."""
    path = f"{SHARED_MEMORY}/{name}"
    try:
        if path.encode() in (process / "maps").read_bytes():
            return True
        return any(os.readlink(link) == path for link in (process / "fd").iterdir())
    except OSError:
        return False
