"""Who waited for whom: `tidegate run` names the rank that is late, says for which part of the time ranks waited, and advises
only what makes a job better. Shares of time are compared with what the program measures in the same run, and advice by counts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import TIDEGATE

WAITS, HOLDUP = PROGRAMS / "waits.c", PROGRAMS / "holdup.c"


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


@dataclass(frozen=True)
class Done:
    """What became of a job."""

    output: str
    report: dict

    @property
    def verdict(self) -> dict:
        [launch] = self.report["launches"]
        return launch["verdict"]

    @property
    def points(self) -> list[str]:
        return [point["id"] for point in self.verdict["points"]]

    def inside(self) -> dict[int, tuple[float, float]]:
        """For how long each rank was inside MPI, and of which time, as the program has measured it."""
        said = re.findall(r"rank (\d+) was inside MPI for ([\d.]+) of ([\d.]+) s", self.output)
        return {int(rank): (float(inside), float(time)) for rank, inside, time in said}

    def waited(self) -> dict[int, float]:
        return {one["rank"]: one["counters"]["wait_ns"] / 1e9 for one in self.report["processes"]}

    def counted(self, counter: str) -> int:
        return self.report["job"][counter]["job"]


def run(mpi, ranks: int, program: list, where: Path, *options: str) -> Done:
    """A job under `tidegate run`."""
    source, *words = program
    report = where / "run.json"
    command = [TIDEGATE, "run", *options, "--json", report, "--", mpi.launcher, "-n", str(ranks), mpi.compile(source), *words]
    done = process.run(command, mpi.bare_environment(), timeout=120, check_segments=True)
    assert done.clean, done.explain()
    return Done(done.output, json.loads(report.read_text()))


OTHERS = [pytest.param(name, marks=pytest.mark.full) for name in ("openmpi", "impi")]


@pytest.mark.parametrize("name", ["mpich", *OTHERS])
@pytest.mark.parametrize("how", ["sleep", pytest.param("compute", marks=pytest.mark.full)])
def test_a_late_rank_is_named_and_the_others_waited_as_long_as_they_say(name, how, tmp_path):
    done = run(mpis.WHEELS[name](), 4, [WAITS, "late", "40", "25", *(["sleep"] if how == "sleep" else [])], tmp_path)
    assert done.points[0] == "late" and set(done.points) <= {"late", "memory_unused"}, done.output
    assert done.verdict["headline"].startswith("rank 1 is late: all 3 others waited for its messages, up to "), done.output
    lines = [line for line in done.output.splitlines() if line.startswith("tidegate: ") and "as root" not in line and "are root" not in line]
    assert lines[0].startswith("tidegate: rank 1 is late") and len(lines) <= 8, done.output
    assert done.verdict["waiting_share"]["least_rank"] == 1 and done.verdict["options"] == []
    waited, inside = done.waited(), done.inside()
    for rank in (0, 2, 3):
        # Where it computes, ranks share processors, and one that has none is not seen to poll.
        far = 0.05 if how == "sleep" else 0.25
        (measured, time) = inside[rank]
        assert abs(waited[rank] - measured) <= far * time, (rank, waited[rank], measured, time)
    assert waited[1] <= 0.1 * inside[1][1], done.output


@pytest.mark.full
@pytest.mark.parametrize("name", ["mpich", "openmpi", "impi"])
def test_the_late_rank_is_named_beside_twenty_programs_that_compute(name, tmp_path):
    """A rank gets its processor for a poll or two while it waits then, and gives it away after each."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(20)]
    try:
        for _ in range(3):
            done = run(mpis.WHEELS[name](), 4, [WAITS, "late", "200", "6"], tmp_path)
            assert done.verdict["headline"].startswith("rank 1 is late: all 3 others waited"), done.output
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_the_root_of_a_chain_is_blamed_and_not_the_next_in_it(tmp_path):
    done = run(mpis.mpich(), 4, [WAITS, "chain", "20", "40", "sleep"], tmp_path)
    assert done.verdict["headline"].startswith("rank 0 is late: all 3 others waited"), done.output
    assert "2 of them by way of others" in done.verdict["points"][0]["text"], done.output


def test_a_job_that_only_computes_has_nothing_that_holds_it_up(tmp_path):
    done = run(mpis.mpich(), 2, [WAITS, "computes", "500"], tmp_path)
    assert done.verdict["headline"].startswith("nothing held up this job"), done.output
    assert set(done.points) <= {"nothing_waited", "little_waited", "memory_unused"} and done.verdict["options"] == [], done.output


def test_the_sleep_of_a_progress_thread_is_no_wait_of_the_program(tmp_path):
    done = run(mpis.mpich(), 2, [WAITS, "computes", "1000"], tmp_path, "--progress", "thread")
    assert all(waited <= 0.3 for waited in done.waited().values()) and done.verdict["headline"].startswith("nothing held up"), done.output


def test_a_rank_that_computes_between_its_polls_is_not_said_to_wait(tmp_path):
    done = run(mpis.mpich(), 2, [WAITS, "polls", "20", "2"], tmp_path)
    (inside, time) = done.inside()[0]
    assert done.waited()[0] <= 0.2 * time, (done.waited(), inside, time)


def test_a_slow_receiver_among_many_is_named_with_the_room_that_was_full(tmp_path):
    done = run(mpis.mpich(), 8, [HOLDUP, "slow", "2", "2"], tmp_path)
    assert done.verdict["headline"].startswith("rank 2 receives too slowly: all 7 others waited, up to "), done.output
    assert done.points[0] == "held_up"


@pytest.mark.parametrize(("options", "counter", "words"), [
    (["--scheme", "rnr", "--buffers", "1"], "refusals", ["flood", "400"]),
    (["--scheme", "static", "--slots", "4"], "delay_ns", ["alltoall", "1", "2048"]),
], ids=["rnr", "static"])
def test_settings_that_cost_are_said_and_the_advice_helps(options, counter, words, tmp_path):
    flood = [HOLDUP, *words]
    before = run(mpis.mpich(), 4, flood, tmp_path, *options)
    advised = before.verdict["options"]
    assert advised, before.output
    # It comes first: the rank that receives too slowly does so because of it.
    assert {"refusals": "refusals", "delay_ns": "few_slots"}[counter] in before.points, before.output
    # The line to copy is the command with that option.
    assert f"tidegate: worth a try: tidegate run {advised[0]} --scheme" in " ".join(before.output.split()), before.output
    kept = list(options)
    for word in advised[0].split():
        if word in kept:
            at = kept.index(word)
            del kept[at:at + 2]
    after = run(mpis.mpich(), 4, flood, tmp_path, *advised[0].split(), *kept)
    assert after.counted(counter) * 2 <= before.counted(counter), (before.counted(counter), after.counted(counter))
