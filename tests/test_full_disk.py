"""File systems without room: a job is not harmed by what cannot be written of it, and the user is told."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import TIDEGATE

HOLDUP = PROGRAMS / "holdup.c"
KIB = 1024
SIZE = 512 * KIB


@pytest.fixture(autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, left: int) -> None:
    with open(disk / "filling", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, SIZE - left)


def run(*words: str | Path, seconds: str = "0.5", **variables: str) -> process.Result:
    mpi = mpis.mpich()
    command = [TIDEGATE, *words, *mpi.command(2, [mpi.compile(HOLDUP), "alltoall", seconds, "100"])]
    return process.run([str(word) for word in command], mpi.bare_environment() | variables, timeout=60)


def test_counters_without_room_do_not_end_a_job(disk):
    mpi = mpis.mpich()
    fill(disk, 8 * KIB)
    done = process.run(mpi.command(2, [mpi.compile(HOLDUP), "alltoall", "0.2", "100"]), mpi.environment(Fabric.TIDEGATE, STATS_DIR=str(disk)), timeout=60)
    assert done.status == 0 and "No space left on device" in done.output and "shows no counters" in done.output, done.explain()
    assert not list(disk.glob("*.counters"))


def test_a_run_puts_its_counters_where_there_is_room(disk):
    fill(disk, 8 * KIB)
    done = run("run", XDG_RUNTIME_DIR=str(disk))
    assert done.status == 0 and "2 processes of holdup" in done.output and "No space" not in done.output, done.explain()
    refused = run("run", f"--shared={disk}")
    assert refused.status == 2 and "No space left on device" in refused.output, refused.explain()


def test_a_recording_that_cannot_begin_leaves_nothing(disk):
    fill(disk, 0)
    for _ in range(2):
        done = run("run", "--record", disk / "recording")
        assert done.status == 2 and "nothing can be recorded there: " in done.output and "No space left on device" in done.output, done.explain()
    assert os.listdir(disk) == ["filling"]


def test_a_recording_that_stops_says_so_and_what_was_seen_is_reported(disk):
    fill(disk, 12 * KIB)
    done = run("run", "--record", disk / "recording", "--record-interval", "10ms", seconds="3")
    assert done.status == 0 and "the recording is not complete: after " in done.output and "nothing could be written any more" in done.output, done.explain()
    assert sorted(os.listdir(disk / "recording")) in (["recording.json", "samples.tidegate"], ["last.json", "recording.json", "samples.tidegate"])
    told = subprocess.run([TIDEGATE, "report", "--json", disk / "recording"], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    [found] = json.loads(told.stdout)["runs"]
    assert found["recording"]["end"]["exit_code"] == 0 and found["paragraph"].startswith("The recording is not complete (after "), found["paragraph"]
    assert found["options"] == []
    # A report that does not fit leaves the one before.
    os.truncate(disk / "filling", (disk / "filling").stat().st_size - 8 * KIB)
    (disk / "report.html").write_text("old")
    failed = subprocess.run([TIDEGATE, "report", "--output", disk / "report.html", disk / "recording"], capture_output=True, text=True)
    assert failed.returncode == 125 and "cannot write" in failed.stderr and (disk / "report.html").read_text() == "old", failed.stderr


def test_a_trace_without_room_is_told_and_nothing_is_kept(disk):
    fill(disk, 8 * KIB)
    done = run("record", "--output", disk / "x.goal")
    assert done.status == 125 and "no trace is recorded in" in done.output and "No space left on device" in done.output, done.explain()
    assert "tidegate record --from" not in done.output and os.listdir(disk) == ["filling"], done.explain()


@pytest.mark.parametrize("every", [(), ("--every", "1s")])
def test_old_metrics_do_not_stay_where_new_ones_have_no_room(disk, every):
    file = disk / "tidegate.prom"
    file.write_text("tidegate_jobs 1\n")
    fill(disk, 8 * KIB)
    (disk / "rest").write_bytes(b"x")
    with open(disk / "rest", "ab", buffering=0) as rest:
        with pytest.raises(OSError):
            while True:
                rest.write(b"x" * KIB)
    done = process.run([TIDEGATE, "export", *every, disk], timeout=60)
    assert done.status == 125 and "No space left on device" in done.output, done.explain()
    assert not file.exists() and not list(disk.glob(".tmp*"))
