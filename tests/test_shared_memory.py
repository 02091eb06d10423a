"""A /dev/shm that is too small is reported before anything touches it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from conftest import ALONE, PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric

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


def run_with_shared_memory(ranks: int, size: str, **parameters) -> process.Result:
    mpi = mpis.mpich()
    program = mpi.compile(STORM)
    command = [*namespace(), "sh", "-c", OWN_SHARED_MEMORY.format(size=size), "sh", *mpi.command(ranks, [program, "2", "2"])]
    return process.run(command, mpi.environment(Fabric.TIDEGATE, **parameters), timeout=30)


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own segments")


def test_enough_shared_memory_is_enough():
    result = run_with_shared_memory(2, "64m")
    assert result.clean, result.explain()


def test_too_little_shared_memory_is_an_error_with_the_size_needed():
    result = run_with_shared_memory(ALONE, "256k", SLOTS=65536)
    assert not result.timed_out and result.status != 0, result.explain()
    assert "/dev/shm" in result.output and "signal 7" not in result.output and "Bus error" not in result.output, result.explain()
