"""A job that Slurm starts on two hosts, by `srun` and without a launcher of the MPI's own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import LIBRARY_FOLDER, TIDEGATE
from harness.slurm import Slurm
from harness.slurm import why_not as why_no_slurm

TRAFFIC = PROGRAMS / "traffic.c"
RANKS_PER_HOST = 2

pytestmark = [
    pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not())),
    pytest.mark.skipif(why_no_slurm() is not None, reason=str(why_no_slurm())),
]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with made.Hosts(2) as hosts, Slurm(hosts, RANKS_PER_HOST) as slurm:
        yield slurm


@pytest.mark.parametrize("name", ["mpich", "impi"])
def test_srun_starts_a_job_on_two_hosts(slurm, fabric, name):
    """Slurm says on how many hosts the job runs, so that the network is opened by itself. (Open MPI's wheel wants PMIx of
    Slurm, which Debian's has not.)"""
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("this is about Tidegate")
    mpi, hosts = mpis.WHEELS[name](), slurm.hosts
    environment = mpi.environment(fabric) | hosts.environment(mpi) | slurm.environment | {"FI_LOG_LEVEL": "info", "FI_LOG_PROV": "tidegate"}
    command = slurm.command(RANKS_PER_HOST, [mpi.compile(TRAFFIC), "3", "10", "200003", "1"])
    result = process.run(command, environment, timeout=60)
    result.leftovers += hosts.segments()
    assert result.clean, f"{result.explain()}\n{slurm.log()}"
    assert f"from each of {2 * RANKS_PER_HOST} ranks to each, all as sent" in result.output, result.explain()
    assert "other hosts are reached by tcp/eth0" in result.output, result.explain()


@pytest.mark.parametrize("name", ["srun", *(pytest.param(name, marks=pytest.mark.full) for name in ("mpich", "impi", "openmpi"))])
def test_the_doctor_of_a_job_tries_all_its_nodes(slurm, fabric, name):
    """`srun`: MPICH started by it; else by the launcher of each MPI."""
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")
    mpi, hosts = mpis.WHEELS["mpich" if name == "srun" else name](), slurm.hosts
    launcher = ["srun", "--mpi=pmi2"] if name == "srun" else [mpi.launcher]
    # Intel MPI's libfabric looks for providers in one folder only.
    shared = ["--shared", hosts.folder] if name == "impi" else []
    said = {key: value for key, value in hosts.environment(mpi).items() if key != "FI_PROVIDER_PATH"}
    words = [TIDEGATE, "doctor", "--json", "--provider-dir", LIBRARY_FOLDER, *shared, *launcher, mpi.compile(TRAFFIC)]
    result = process.run(hosts.on(0, ["salloc", "-N", "2", "-n", str(2 * RANKS_PER_HOST), *words]), mpi.bare_environment() | said | slurm.environment, timeout=60)
    report = result.output[result.output.index("{"):result.output.rindex("}") + 1]
    checks = {check["check"]: check for check in json.loads(report)["checks"]}
    assert result.status == 0 and checks["slurm"]["text"].startswith("job ") and " on 2 nodes; " in checks["slurm"]["text"], checks
    assert checks["hosts"]["verdict"] == "ok" and "on h1, h2 exchanged messages over Tidegate by tcp/eth0" in checks["hosts"]["text"], checks
    assert checks["shared_memory"]["text"].split("; ")[1].startswith(f"{RANKS_PER_HOST} ranks may take"), checks
