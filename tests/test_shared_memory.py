"""A /dev/shm that is too small is reported before anything touches it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
from conftest import ALONE, PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import TIDEGATE

STORM = PROGRAMS / "storm.c"
OWN_SHARED_MEMORY = "mount -t tmpfs -o size={size},mode=1777 tmpfs /dev/shm && exec \"$@\""


def namespace() -> list[str]:
    """The command that runs another one with mounts of its own; skips the test where that is forbidden."""
    if not shutil.which("unshare"):
        pytest.skip("no unshare here")
    for words in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        script = [*words, "sh", "-c", OWN_SHARED_MEMORY.format(size="1m"), "sh", "true"]
        if subprocess.run(script, capture_output=True).returncode == 0:
            return words
    pytest.skip("mounts of one's own are not allowed here")


def run_with_shared_memory(ranks: int, size: str, before: list | None = None, extra: dict[str, str] | None = None,
                           mpi: mpis.Mpi | None = None, timeout: float = 30, **parameters) -> process.Result:
    """Runs a job in a /dev/shm of its own of that size; `before`: words that come before the launcher."""
    mpi = mpi or mpis.mpich()
    program = mpi.compile(STORM)
    command = [*namespace(), "sh", "-c", OWN_SHARED_MEMORY.format(size=size), "sh", *(before or []), *mpi.command(ranks, [program, "2", "2"])]
    return process.run(command, mpi.environment(Fabric.TIDEGATE, **parameters) | (extra or {}), timeout=timeout)


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own segments")


def test_enough_shared_memory_is_enough():
    result = run_with_shared_memory(2, "64m")
    assert result.clean, result.explain()


@pytest.mark.parametrize("size, parameters, first", [
    ("1m", {}, "FI_TIDEGATE_BOUNCE_BUFFERS"),
    ("256k", {"SLOTS": 65536}, "FI_TIDEGATE_SLOTS"),
], ids=["bounce-buffers", "mailbox"])
def test_too_little_shared_memory_is_an_error_that_names_what_takes_most(size, parameters, first):
    result = run_with_shared_memory(ALONE, size, **parameters)
    assert not result.timed_out and result.status != 0, result.explain()
    said = re.search(r"tidegate: /dev/shm is too small: this endpoint needs ([\d.]+ [KMG]iB); /dev/shm holds ([\d.]+ [KMG]iB) in all: "
                     r".*\S+ [KMG]iB free.* lower (\S+) .*; or enlarge /dev/shm \(", result.output)
    assert said and said[3] == first, result.explain()
    assert "signal 7" not in result.output and "Bus error" not in result.output, result.explain()


def test_the_remedy_for_too_little_shared_memory_works():
    # With Intel MPI, because MPICH itself keeps some MiB in /dev/shm.
    assert not run_with_shared_memory(4, "3m", mpi=mpis.impi()).clean
    result = run_with_shared_memory(4, "3m", mpi=mpis.impi(), BOUNCE_BUFFERS=0)
    assert result.clean, result.explain()


@pytest.mark.parametrize("size", ["6m", "8m"])
def test_a_job_whose_mpi_finds_no_shared_memory_hears_that_and_of_no_setting(tmp_path, size):
    """Tidegate's endpoints find room, and then MPICH's own files do not: it touches them, and a rank ends by SIGBUS."""
    report = tmp_path / "run.json"
    for _ in range(3):
        result = run_with_shared_memory(4, size, [TIDEGATE, "run", "--json", report, "--"], {"XDG_RUNTIME_DIR": str(tmp_path)}, timeout=10)
        # MPICH's launcher now and then overlooks that a rank has aborted in MPI_Init, and the others wait in it for ever.
        if not result.timed_out:
            break
    assert not result.timed_out and result.status != 0, result.explain()
    found = json.loads(report.read_text())
    if found["troubles"]:  # The endpoint of a rank may have been the one that found no room.
        assert all("/dev/shm is too small" in reason for reason in found["reasons"]), result.explain()
    else:
        said = re.search(r"/dev/shm (is full|has too little room) \([\d.]+ MiB in all, [\d.]+ \w+ free\): .* of MPICH.* of Tidegate.* mpich_shm_\S+ .*"
                         r"SIGBUS \(signal 7\)\. .*--shm-size; mount -o remount,size=.*--bounce-buffers", result.output)
        assert said and found["host"]["full_shared_memory"]["place"] == "/dev/shm" and len(found["reasons"]) == 1, result.explain()
    assert "NOLOCAL" not in result.output and "--shared" not in result.output, result.explain()


def test_a_job_without_enough_shared_memory_hears_what_all_its_ranks_need(tmp_path):
    # The launcher may lose what the ranks print, so the report is read.
    report = tmp_path / "run.json"
    place = {"XDG_RUNTIME_DIR": str(tmp_path)}
    result = run_with_shared_memory(2, "1m", [TIDEGATE, "run", "--json", report, "--"], place)
    assert not result.timed_out and result.status != 0, result.explain()
    found = json.loads(report.read_text())
    assert found["used"] == "nothing" and "one for each of the job's 2 ranks" in found["troubles"][0]["text"], found
