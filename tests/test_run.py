"""`tidegate run` and `tidegate env` from end to end, with each MPI."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import TIDEGATE

STORM, TRAFFIC, FLOOD, PRESSURE = (PROGRAMS / name for name in ("storm.c", "traffic.c", "flood.c", "pressure.c"))
RANKS = 4


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


def run(mpi, words: list, *, timeout: float = 120) -> process.Result:
    """Runs `tidegate` with words."""
    return process.run([TIDEGATE, *words], mpi.bare_environment(), timeout=timeout, check_segments=True)


def job(mpi, ranks: int, program: list) -> list:
    """A job as a user types it."""
    return [mpi.launcher, "-n", str(ranks), mpi.compile(program[0]), *program[1:]]


@pytest.mark.quick
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_job_runs_and_its_counters_are_reported(name, tmp_path):
    mpi, report = mpis.WHEELS[name](), tmp_path / "run.json"
    done = run(mpi, ["run", "-v", "--scheme", "static", "--slots", "16", "--json", report, "--", *job(mpi, RANKS, [TRAFFIC, "3", "30", "70000", "7"])])
    assert done.clean, done.explain()
    assert "all as sent" in done.output and "scheme static, 16 slots per peer" in done.output, done.explain()
    assert "receive memory of an endpoint at most 64.0 MiB" in done.output, done.explain()
    found = json.loads(report.read_text())
    assert found["mpi"]["name"] == name and found["exit_code"] == 0
    assert sorted(entry["rank"] for entry in found["processes"]) == list(range(RANKS))
    # Where a default is computed, what was chosen is said.
    spin = 2000 if len(os.sched_getaffinity(0)) >= RANKS else 32
    assert {entry["spin_polls"] for entry in found["processes"]} == {spin} and f", spin {spin}\n" in done.output, done.explain()
    assert {entry["chunk_bytes"] for entry in found["processes"]} == {1 << 20}
    values = {counter: value["job"] for counter, value in found["job"].items()}
    assert values["packets_sent"] > 0 and values["messages_eager"] > 0 and values["messages_rendezvous"] > 0
    # 2 KiB messages need more packets than anybody has credits: some must have waited.
    assert values["sends_delayed"] > 0 and values["delay_ns"] > 0 and values["credit_packets"] > 0
    # Under credits no packet may find the mailbox full.
    assert values["mailbox_full"] == 0 and values["violations"] == 0


@pytest.mark.parametrize("bulk", ["auto", "bounced", "mailbox"])
def test_long_messages_go_the_ways_that_were_chosen(bulk, tmp_path):
    mpi, report = mpis.mpich(), tmp_path / "run.json"
    folder = tmp_path / "recorded"
    done = run(mpi, ["run", "-v", "--bulk", bulk, "--json", report, "--record", folder, "--", *job(mpi, 2, [TRAFFIC, "5", "100", "70000", "3"])])
    assert done.clean and "all as sent" in done.output, done.explain()
    found = json.loads(report.read_text())
    values = {counter: value["job"] for counter, value in found["job"].items()}
    reachable = found["processes"][0]["bulk"] == "direct"
    # With auto, messages of 64 KiB are tried both ways, unless the system keeps processes out of each other's memory.
    assert (values["bytes_read"] > 0) == (bulk == "auto" and reachable), values
    assert (values["bytes_bounced"] > 0) == (bulk != "mailbox"), values
    assert values["bytes_read"] + values["bytes_bounced"] <= values["bytes_received"]
    # It is said what was chosen, and because of which times.
    measured = [length for entry in found["processes"] for length in entry["long_messages"] if length["chosen"]]
    assert bool(measured) == (bulk == "auto" and reachable), measured
    assert all(length["chosen"] in ("bounced", "direct", "either") and length["direct_ps_per_byte"] > 0 for length in measured), measured
    assert ("tidegate: long messages on a host: " in done.output) == bool(measured), done.explain()
    assert ("because a copy of " in done.output or "because one of " in done.output) == bool(measured), done.explain()
    summary = process.run([TIDEGATE, "report", "--json", folder], mpi.bare_environment(), timeout=60)
    assert ("long messages on a host" in summary.output) == bool(measured), summary.explain()


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_receiver_without_room_is_named_with_advice(name, tmp_path):
    # Rank 0 waits for a message of rank 2 that is sent when rank 1 has started five times as many bytes as fit.
    mpi, report = mpis.WHEELS[name](), tmp_path / "run.json"
    flood = job(mpi, 3, [PRESSURE, "flood", "order", "5000", "1024", "starting", "0"])
    done = run(mpi, ["run", "-v", "--rx-memory", "1M", "--json", report, "--", *flood])
    assert done.clean and "all as sent" in done.output, done.explain()
    assert "waited with their senders, because rank 0 had no room" in done.output and "FI_TIDEGATE_RX_MEMORY" in done.output, done.explain()
    found = json.loads(report.read_text())["job"]
    assert found["envelopes_dropped"]["max_rank"] == 0 and found["sends_deferred"]["max_rank"] == 1
    assert found["envelopes_dropped"]["job"] <= found["sends_deferred"]["job"] <= 5000 + 100, "deferred by rank 1 alone, but for the MPI's own"
    assert found["pressure_ns"]["max_rank"] == 0 and found["pressure_ns"]["job"] > 0
    assert found["receive_memory_bytes"]["max"] == 1 << 20 >= found["receive_peak_bytes"]["max"] > found["receive_fixed_bytes"]["max"]


def test_counters_of_a_killed_job_are_reported(tmp_path):
    mpi, report = mpis.mpich(), tmp_path / "run.json"
    done = run(mpi, ["run", "--json", report, "--", *job(mpi, RANKS, [FLOOD, "200", "2", "50"])], timeout=30)
    assert not done.timed_out and done.status != 0, done.explain()
    found = json.loads(report.read_text())
    assert len(found["processes"]) == RANKS and found["job"]["packets_sent"]["job"] > 0
    assert found["exit_code"] == done.status


@pytest.mark.quick
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_the_printed_environment_makes_the_mpi_use_tidegate(name, tmp_path):
    mpi = mpis.WHEELS[name]()
    script = 'eval "$("$1" env -- "$2")" && shift && exec "$@"'
    done = process.run(["bash", "-c", script, "bash", TIDEGATE, *job(mpi, 2, [STORM, "2", "2"])],
                       mpi.bare_environment() | {"FI_TIDEGATE_STATS_DIR": str(tmp_path)}, timeout=60, check_segments=True)
    assert done.clean, done.explain()
    assert len(list(tmp_path.glob("*.counters"))) >= 2, "no endpoint of Tidegate was opened"


@pytest.mark.parametrize("name, words, setting", [
    # A remedy that Tidegate itself names, so it is no mistake.
    ("mpich", ["-genv", "MPIR_CVAR_NOLOCAL", "0"], "MPIR_CVAR_NOLOCAL"),
    ("openmpi", ["--mca", "pml", "ob1"], "OMPI_MCA_pml"),
    ("impi", ["-genv", "I_MPI_FABRICS", "shm:ofi"], "I_MPI_FABRICS"),
], ids=list(mpis.WHEELS))
def test_messages_that_went_past_tidegate_are_no_report_of_zeros(name, words, setting, tmp_path):
    mpi, report = mpis.WHEELS[name](), tmp_path / "run.json"
    launcher, *rest = job(mpi, 2, [STORM, "2", "2"])
    done = run(mpi, ["run", "--json", report, "--", launcher, *words, *rest])
    assert done.clean, done.explain()
    assert "tidegate: no message went through Tidegate" in done.output and "packets_sent" not in done.output, done.explain()
    said = "The command line sets MPIR_CVAR_NOLOCAL: messages within a host go past Tidegate" if name == "mpich" else \
        f"The command line itself sets {setting}: leave that out."
    assert said in done.output and done.output.count(setting) == 1, done.explain()
    found = json.loads(report.read_text())
    assert found["used"] == "endpoints" and setting in found["reasons"][0]


@pytest.mark.quick
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_what_the_provider_says_is_the_reason_that_the_report_gives(name, tmp_path):
    # The launcher gives the ranks another value than the environment that was checked.
    mpi, report = mpis.WHEELS[name](), tmp_path / "run.json"
    launcher, *rest = job(mpi, 1, [STORM, "2", "2"])
    words = ["-x", "FI_TIDEGATE_SLOTS=abc"] if name == "openmpi" else ["-genv", "FI_TIDEGATE_SLOTS", "abc"]
    done = run(mpi, ["run", "--json", report, "--", launcher, *words, *rest])
    assert not done.timed_out and done.status != 0 and not done.leftovers, done.explain()
    _, _, said = done.output.partition("no process opened a Tidegate endpoint")
    assert '* FI_TIDEGATE_SLOTS is "abc", but must be a number of slots' in said and "libfabric" not in said, done.explain()
    found = json.loads(report.read_text())
    assert found["used"] == "nothing" and [trouble["processes"] for trouble in found["troubles"]] == [1]


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_misspelt_variable_is_said_once_for_a_job(name):
    mpi = mpis.WHEELS[name]()
    launcher, *rest = job(mpi, RANKS, [STORM, "2", "2"])
    words = ["-x", "FI_TIDEGATE_SLTOS=16"] if name == "openmpi" else ["-genv", "FI_TIDEGATE_SLTOS", "16"]
    done = run(mpi, ["run", "--quiet", "--", launcher, *words, *rest])
    assert done.clean, done.explain()
    assert done.output.count("did you mean FI_TIDEGATE_SLOTS?") == 1, done.explain()


def test_the_exit_code_is_the_program_s():
    done = run(mpis.mpich(), ["run", "--quiet", "--", "sh", "-c", "exit 7"])
    assert done.status == 7 and not done.leftovers, done.explain()


def test_an_impossible_configuration_is_refused_before_anything_starts():
    done = run(mpis.mpich(), ["run", "--slots", "3", "--credit-slots", "2", "--", "sh", "-c", "echo started"])
    assert done.status == 2 and "started" not in done.output and "slots" in done.output, done.explain()


@pytest.mark.parametrize("how, number", [("returns", 7), ("returns", 9), ("returns", 11), ("aborts", 7)])
def test_an_exit_code_of_mpich_is_not_called_a_signal(how, number):
    mpi = mpis.mpich()
    done = run(mpi, ["run", *job(mpi, 2, [PROGRAMS / "ends.c", how, str(number)])])
    ended = done.output.split("tidegate: the program ended with ")[1].splitlines()[0]
    # MPI_Abort ends some ranks before they close, which looks as a signal does: then both are said.
    both = how == "aborts" and ended.startswith(f"exit code {number}, which under MPICH is a rank's own exit code or comes of ")
    assert done.status == number and (ended == f"exit code {number}" or both), done.explain()
    assert "as after" not in ended and "is full" not in done.output, done.explain()


def test_a_signal_that_ended_ranks_of_mpich_is_named_with_what_else_its_number_may_be():
    mpi = mpis.mpich()
    done = run(mpi, ["run", *job(mpi, 2, [PROGRAMS / "ends.c", "raises", "11"])])
    said = "exit code 11, which under MPICH is a rank's own exit code or comes of a rank's end by SIGSEGV (signal 11): "
    assert "ended without closing" in done.output and said in done.output, done.explain()


NODE = PROGRAMS / "node.c"
NOTICE = "refers to MPI_Comm_split_type and MPI_Win_allocate_shared: so that Tidegate carries its messages, MPICH takes each rank for a node of its own"


def test_ranks_of_mpich_are_nodes_of_their_own_and_that_is_said():
    mpi = mpis.mpich()
    done = run(mpi, ["run", *job(mpi, RANKS, [NODE])])
    assert done.clean and "node: 1 of 4 ranks share memory, sum 6" in done.output and done.output.count(NOTICE) == 1, done.explain()
    failed = run(mpi, ["run", *job(mpi, RANKS, [NODE, "window"])])
    assert failed.status != 0, failed.explain()
    assert failed.output.count(NOTICE) == 2 and "-genv MPIR_CVAR_NOLOCAL 0" in failed.output, failed.explain()
    # The remedy that it names.
    past = run(mpi, ["run", mpi.launcher, "-genv", "MPIR_CVAR_NOLOCAL", "0", "-n", str(RANKS), mpi.compile(NODE), "window"])
    assert past.clean and "node: 4 of 4 ranks share memory" in past.output and NOTICE not in past.output, past.explain()


@pytest.mark.parametrize("name", ["openmpi", "impi"])
def test_other_mpis_know_who_shares_memory_and_nothing_is_said(name):
    mpi = mpis.WHEELS[name]()
    done = run(mpi, ["run", *job(mpi, 2, [NODE, "window"])])
    assert done.clean and "node: 2 of 2 ranks share memory" in done.output and "refers to" not in done.output, done.explain()


def test_a_program_that_asks_for_no_shared_memory_hears_nothing_of_it():
    mpi = mpis.mpich()
    done = run(mpi, ["run", *job(mpi, 2, [TRAFFIC, "1", "5", "5000", "1"])])
    assert done.clean and "refers to" not in done.output, done.explain()


def make_small_group() -> Path:
    """A control group with 120 MiB of memory, of either version."""
    for parent, limit in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        group = parent / f"tidegate-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / limit).exists():
            (group / limit).write_text(str(120 << 20))
            return group
        group.rmdir()
    pytest.skip("no control group with a limit of memory can be made here")


@pytest.fixture
def small_group() -> Iterator[Path]:
    """The file of processes of such a group."""
    group = make_small_group()
    yield group / "cgroup.procs"
    group.rmdir()


def test_a_rank_that_the_kernel_ends_for_want_of_memory_is_told(small_group, tmp_path):
    mpi, eater = mpis.mpich(), tmp_path / "eater.py"
    eater.write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n"
                     "eaten = [bytearray(b'1' * (1 << 20)) for _ in range(400 if MPI.COMM_WORLD.rank else 0)]\nMPI.COMM_WORLD.Barrier()\n")
    inside = ["sh", "-c", f'echo $$ > {small_group}; exec "$@"', "sh", TIDEGATE, "run", "--json", tmp_path / "run.json"]
    done = process.run([*inside, mpi.launcher, "-n", "2", mpi.python, eater], mpi.bare_environment(), timeout=60)
    assert done.status != 0 and not done.timed_out, done.explain()
    assert "the kernel ended one process of the job's control group by SIGKILL (signal 9) for want of memory" in done.output, done.explain()
    assert json.loads((tmp_path / "run.json").read_text())["host"]["processes_killed_for_memory"] == 1
