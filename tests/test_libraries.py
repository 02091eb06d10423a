"""Libraries beside MPI: Sandia OpenSHMEM with its default configuration passes its whole suite, and GASNet its tests, on one host and
over two. They are built from their sources, which takes minutes, so all of this is for `make test-full`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import hosts as made
from harness import libraries, process
from harness import mpi as mpis
from harness.mpi import Fabric
from harness.paths import LIBRARY_FOLDER, TIDEGATE
from harness.slurm import Slurm
from harness.slurm import why_not as why_no_slurm

pytestmark = pytest.mark.full
LIMIT = 900
"""Seconds of one test: a few move 32 GB."""
PASSED_ON = "FI_PROVIDER,FI_PROVIDER_PATH,FI_TIDEGATE_FABRIC,GASNET_QUIET,GASNET_HOST_DETECT,GASNET_SUPERNODE_MAXSIZE"
"""What GASNet's spawner is to pass on."""
SKIPPED = 77
"""With this status a test of a suite says that it does not apply."""


def environment(more: dict[str, str]) -> dict[str, str]:
    """That of a job over Tidegate, without `tidegate run`."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "FI_PROVIDER": "tidegate", "FI_PROVIDER_PATH": str(LIBRARY_FOLDER), **more}


@pytest.fixture(scope="module")
def sandia(fabric: Fabric) -> libraries.Sandia:
    return build(fabric, libraries.Sandia)


@pytest.fixture(scope="module")
def gasnet(fabric: Fabric) -> libraries.Gasnet:
    return build(fabric, libraries.Gasnet)


def build(fabric: Fabric, library):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("its environment is set for Tidegate")
    try:
        return library()
    except libraries.Missing as why:
        pytest.skip(str(why))


def failures(commands: dict[str, list[str | Path]], variables: dict[str, str]) -> list[str]:
    """Runs each, and says which failed, with what it printed."""
    results = {name: process.run(command, variables, timeout=LIMIT) for name, command in commands.items()}
    return [f"{name}: {result.explain()}" for name, result in results.items() if result.status not in (0, SKIPPED)]


@pytest.mark.parametrize("ranks", [2, 4])
def test_sandia_openshmem_passes_its_suite(sandia, ranks):
    programs = sandia.programs()
    assert len(programs) >= 190, programs
    commands = {program.name: [mpis.mpich().launcher, "-n", str(ranks), program] for program in programs}
    assert failures(commands, environment(sandia.environment())) == []


@pytest.mark.parametrize("per_host", [1, 2])
def test_sandia_openshmem_passes_its_suite_over_two_hosts(sandia, per_host):
    if reason := made.why_not():
        pytest.skip(reason)
    with made.Hosts(2) as hosts:
        commands = {program.name: hosts.command(mpis.mpich(), per_host, [program]) for program in sandia.programs()}
        assert failures(commands, environment(sandia.environment()) | hosts.environment(mpis.mpich())) == []


def test_run_starts_oshrun(sandia):
    program = sandia.build / "modules" / "tests-sos" / "test" / "unit" / "waituntil"
    variables = {"PATH": f"{mpis.mpich().launcher.parent}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/"), **sandia.environment()}
    result = process.run([TIDEGATE, "run", "-v", sandia.oshrun, "-n", "2", program], variables, timeout=LIMIT)
    assert result.status == 0 and "2 processes of" in result.output and "rma_operations" in result.output, result.explain()


def test_srun_starts_sandia_openshmem_over_two_hosts(sandia):
    if reason := made.why_not() or why_no_slurm():
        pytest.skip(reason)
    folder = sandia.build / "modules" / "tests-sos" / "test" / "unit"
    with made.Hosts(2) as hosts, Slurm(hosts, 2) as slurm:
        variables = environment(sandia.environment()) | hosts.environment(mpis.mpich()) | slurm.environment
        assert failures({name: slurm.command(2, [folder / name]) for name in ("hello", "waituntil", "ping")}, variables) == []


def gasnet_commands(gasnet, *before: str | Path) -> dict[str, list[str | Path]]:
    start = [*before, gasnet.spawner, "-E", PASSED_ON, "-n", "2"]
    return {name: [*start, gasnet.conduit / name, *words.split()] for name, words in libraries.GASNET_TESTS.items()}


def test_gasnet_passes_its_tests(gasnet):
    assert failures(gasnet_commands(gasnet), environment(gasnet.environment())) == []


def test_run_starts_gasnets_spawner(gasnet):
    variables = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **gasnet.environment()}
    result = process.run([TIDEGATE, "run", "-v", gasnet.spawner, "-n", "2", gasnet.conduit / "testsmall", "100"], variables, timeout=LIMIT)
    assert result.status == 0 and "2 processes of" in result.output and "rma_operations" in result.output, result.explain()


def test_gasnet_passes_its_tests_over_two_hosts(gasnet):
    if reason := made.why_not():
        pytest.skip(reason)
    with made.Hosts(2) as hosts:
        commands = gasnet_commands(gasnet, *hosts.on(0, []))
        commands = {name: commands[name] for name in libraries.GASNET_OVER_HOSTS}
        assert failures(commands, environment(gasnet.environment(hosts.rsh, " ".join(hosts.addresses))) | {"FI_TIDEGATE_FABRIC": "tcp"}) == []
