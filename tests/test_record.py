"""`tidegate record` from end to end: real jobs become traces, and the simulator replays them, message for message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import TIDEGATE
from test_imb import lengths_file
from test_run import job

TRAFFIC, FLOOD, PRESSURE, AROUND = (PROGRAMS / name for name in ("traffic.c", "flood.c", "pressure.c", "around.c"))
RANKS = 4
MESSAGES = ("messages_eager", "messages_rendezvous", "messages_self")
"""Counters that together count messages sent."""


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


def record(mpi, folder: Path, command: list, *words: str, timeout: float = 120) -> tuple[process.Result, dict]:
    """Records a job; returns how that ended, and the report."""
    report = folder / "run.json"
    done = process.run([TIDEGATE, "record", "--output", folder / "job.goal", "--json", report, *words, "--", *command], mpi.bare_environment(),
                       timeout=timeout, check_segments=True)
    assert report.exists(), done.explain()
    assert not list(folder.glob("tidegate-trace-*")), "what the ranks wrote is left"
    return done, json.loads(report.read_text())


def simulate(trace: Path, eager: int) -> list[tuple[int, int]]:
    """Replays a trace with two schemes; returns messages and bytes received of each run. `eager` in bytes."""
    machine = trace.with_suffix(".toml")
    machine.write_text(f'[flow]\nscheme = ["static", "dynamic"]\neager = "{eager} B"\n\n[workload]\noperation = "trace"\ntrace = "{trace.name}"\n')
    done = process.run([TIDEGATE, "sim", "--json", machine], timeout=300)
    assert done.status == 0, done.explain()
    counters = [run["counters"] for run in json.loads(done.output)["runs"]]
    return [(sum(values[name] for name in MESSAGES), values["bytes_received"]) for values in counters]


def check_replay(trace: dict, *, eager: int = 2048) -> None:
    """A replay ends, and has the messages and bytes of the trace, beside those of the simulator's own barriers."""
    path = Path(trace["path"])
    nothing = path.with_name("nothing.goal")
    nothing.write_text("num_ranks 1\nrank 0 {\n}\n")
    for (messages, received), (own, own_received) in zip(simulate(path, eager), simulate(nothing, eager), strict=True):
        assert (messages - own, received - own_received) == (trace["messages"], trace["bytes"])


def check(trace: dict, counters: dict) -> None:
    """All messages of a job are in its trace, and a replay has them all."""
    sent = sum(counters[name]["job"] for name in MESSAGES)
    assert 0 < sent == trace["messages"], trace
    assert trace["sends_cut"] == trace["receives_cut"] == trace["lengths_that_differ"] == 0, trace
    # The counter of bytes leaves messages to oneself out of those that were sent.
    assert trace["bytes"] == counters["bytes_received"]["job"] >= counters["bytes_sent"]["job"], trace
    check_replay(trace)


@pytest.mark.quick
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_trace_has_every_message_of_a_job_and_replays(name, tmp_path):
    # Posted receives, wildcards that probe and claim, messages to oneself, synchronous ones, all lengths.
    mpi = mpis.WHEELS[name]()
    done, report = record(mpi, tmp_path, job(mpi, RANKS, [TRAFFIC, "2", "6", "70000", "7"]))
    assert done.clean and "all as sent" in done.output and "trace in" in done.output, done.explain()
    [trace] = report["trace"]
    assert trace["ranks"] == RANKS and not trace["ranks_absent"] and trace["computation_ns"] >= trace["computation_max_ns"] > 0
    check(trace, report["job"])


@pytest.mark.full
@pytest.mark.parametrize("scheme, memory", [("none", "4M"), ("static", "4M"), ("dynamic", "4M"), ("rnr", "16M"), ("shared_window", "24M")])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_every_scheme_and_a_flood_with_little_memory(name, scheme, memory, tmp_path):
    mpi = mpis.WHEELS[name]()
    flood = job(mpi, RANKS, [PRESSURE, "everybody", "probe", "200", "1024", "starting", "0"])
    done, report = record(mpi, tmp_path, flood, "--scheme", scheme, "--rx-memory", memory)
    assert done.clean and "all as sent" in done.output, done.explain()
    check(report["trace"][0], report["job"])


@pytest.mark.full
@pytest.mark.parametrize("benchmark", ["Exchange", "Sendrecv", "Alltoall", "Allreduce", "Reduce_scatter", "Bcast", "Gatherv"])
@pytest.mark.parametrize("ranks", [4, 8])
def test_patterns_of_the_intel_benchmarks(ranks, benchmark, tmp_path):
    mpi = mpis.impi()
    words = [benchmark, "-npmin", str(ranks), "-iter", "5", "-iter_policy", "off", "-msglen", lengths_file([0, 8, 1024, 16384, 262144])]
    done, report = record(mpi, tmp_path, [mpi.launcher, "-n", str(ranks), mpi.benchmarks / "IMB-MPI1", *words])
    assert done.clean, done.explain()
    check(report["trace"][0], report["job"])


def test_a_replay_ends_where_sends_end_later_than_in_the_job(tmp_path):
    mpi = mpis.mpich()
    done, report = record(mpi, tmp_path, job(mpi, RANKS, [AROUND, "10", "1024"]))
    assert done.clean and "around: 10 rounds" in done.output, done.explain()
    [trace] = report["trace"]
    assert trace["waits_moved"] > 0, "in the job sends were over before anybody received"
    check_replay(trace, eager=64)


def test_a_recording_that_became_too_long_is_cut_and_replays(tmp_path):
    mpi = mpis.mpich()
    done, report = record(mpi, tmp_path, job(mpi, RANKS, [TRAFFIC, "3", "30", "3000", "7"]), "--most", "4k")
    assert done.clean and "ended early" in done.output, done.explain()
    [trace] = report["trace"]
    sent = sum(report["job"][name]["job"] for name in MESSAGES)
    assert trace["ranks_full"] == list(range(RANKS)) and 0 < trace["messages"] < sent / 2 and trace["lengths_that_differ"] == 0, trace
    check_replay(trace)


def test_what_ranks_did_before_they_were_killed_replays(tmp_path):
    mpi = mpis.mpich()
    done, report = record(mpi, tmp_path, job(mpi, RANKS, [FLOOD, "200", "2", "50"]), timeout=60)
    assert not done.timed_out and done.status == report["exit_code"] != 0, done.explain()
    [trace] = report["trace"]
    assert trace["ranks"] == RANKS and trace["messages"] > 0, trace
    check_replay(trace)


def test_what_a_folder_holds_becomes_a_trace_for_each_job(tmp_path):
    mpi, folder = mpis.mpich(), tmp_path / "parts"
    folder.mkdir()
    for _ in range(2):
        words = ["run", "--quiet", "--", *job(mpi, 2, [TRAFFIC, "1", "2", "3000", "7"])]
        done = process.run([TIDEGATE, *words], mpi.bare_environment() | {"FI_TIDEGATE_TRACE_DIR": str(folder)}, timeout=60, check_segments=True)
        assert done.clean, done.explain()
    (folder / "1-0.trace").write_bytes(bytes(5000))
    whole = next(path for path in folder.iterdir() if path.stat().st_size > 5000).read_bytes()
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "7-0.trace").write_bytes(whole[:100])
    done = process.run([TIDEGATE, "record", "-o", tmp_path / "y.goal", "--from", cut], mpi.bare_environment(), timeout=60)
    assert done.status in (2, 125) and "7-0.trace: the file has lost its end" in done.output, done.explain()
    done = process.run([TIDEGATE, "record", "-o", tmp_path / "x.goal", "--from", folder, "--json", "-"], mpi.bare_environment(), timeout=60)
    assert done.status == 0, done.explain()
    found = json.loads(done.output[done.output.index("{"):])["trace"]
    assert [Path(trace["path"]).name for trace in found] == ["x.goal", "x-2.goal"], found
    assert found[0]["messages"] == found[1]["messages"] > 0 and len(list(folder.iterdir())) == 5, "what is there stays"


def test_without_a_trace_the_command_fails_and_says_why(tmp_path):
    done = process.run([TIDEGATE, "record", "-o", tmp_path / "x.goal", "--", "true"], timeout=60)
    assert done.status == 125 and "no process has left a trace" in done.output and not list(tmp_path.iterdir()), done.explain()
    done = process.run([TIDEGATE, "record", "-o", tmp_path / "no" / "x.goal", "--", "true"], timeout=60)
    assert done.status == 2 and "--output=" in done.output, done.explain()
