"""The Intel MPI Benchmarks and mpi4py's test suite on two hosts with two ranks each.

`--full` runs all of both, under every scheme; what fails there over Tidegate has to fail over libfabric's `tcp` as well.
"""

from __future__ import annotations


import pytest
from conftest import POSTED_FEW, JobsOverHosts, posted
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric
from test_imb import LENGTHS, LENGTHS_FULL, MPI1, run_imb
from test_mpi4py import passes_wherever_it_passes_over_tcp, run_modules

SCHEMES = ["none", "static", "dynamic"]
RANKS = 4
MPI1_SUBSET = ["PingPong", "Exchange", "Allreduce", "Alltoallv", "Barrier"]
RMA_FEW = ["Unidir_put", "All_get_all", "Exchange_put", "Accumulate"]
MODULES = ["p2p_buf", "p2p_buf_matched"]

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module")
def over_hosts(fabric: Fabric, two: made.Hosts) -> JobsOverHosts:
    if fabric not in (Fabric.TIDEGATE, Fabric.TCP):
        pytest.skip("only tcp reaches other hosts")
    return JobsOverHosts(fabric, two)


@pytest.mark.parametrize("scheme", ["dynamic", *(pytest.param(name, marks=pytest.mark.full) for name in SCHEMES if name != "dynamic")])
def test_mpi1_runs_to_the_end_over_hosts(over_hosts, scheme):
    run_imb(over_hosts, mpis.impi(), "IMB-MPI1", RANKS, MPI1_SUBSET, lengths=LENGTHS, SCHEME=scheme)


@pytest.mark.full
def test_mpi1_runs_over_hosts_with_the_library_of_mpich(over_hosts):
    run_imb(over_hosts, mpis.mpich(), "IMB-MPI1", RANKS, MPI1, lengths=LENGTHS, SCHEME="dynamic")


def test_one_sided_communication_runs_to_the_end_over_hosts(over_hosts):
    run_imb(over_hosts, mpis.impi(), "IMB-RMA", RANKS, RMA_FEW, lengths=LENGTHS, SCHEME="dynamic")


@pytest.mark.parametrize("name", ["mpich", pytest.param("openmpi", marks=pytest.mark.full), pytest.param("impi", marks=pytest.mark.full)])
def test_subset_of_mpi4py_passes_over_hosts(over_hosts, name):
    result = run_modules(over_hosts, mpis.WHEELS[name](), RANKS, MODULES, timeout=120)
    assert result.clean, result.explain(200)
    # The suite exits 0 also if no module has a name that was given.
    assert result.output.count("Ran ") >= 1 and "Ran 0 tests" not in result.output, result.explain()


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("suite", ["IMB-MPI1", "IMB-RMA", "IMB-NBC", "IMB-P2P"])
def test_whole_benchmark_suites_run_over_hosts(over_hosts, suite, scheme):
    run_imb(over_hosts, mpis.impi(), suite, RANKS, [], lengths=LENGTHS_FULL, timeout=1200, SCHEME=scheme)


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("suite", ["IMB-MPI1", "IMB-RMA"])
def test_whole_benchmark_suites_run_over_hosts_with_the_library_of_mpich(over_hosts, suite, scheme):
    run_imb(over_hosts, mpis.mpich(), suite, RANKS, [], lengths=LENGTHS_FULL, timeout=1200, SCHEME=scheme)


@posted(["preposted-10", "shared_window-8-4096", "speculative-16", "speculative-4096"])
def test_mpi1_runs_to_the_end_over_hosts_in_posted_buffers(over_hosts, buffers):
    run_imb(over_hosts, mpis.impi(), "IMB-MPI1", RANKS, MPI1_SUBSET, lengths=LENGTHS, **buffers)


@pytest.mark.full
@posted()
@pytest.mark.parametrize("suite", ["IMB-MPI1", "IMB-RMA", "IMB-NBC", "IMB-P2P"])
def test_whole_benchmark_suites_run_over_hosts_in_posted_buffers(over_hosts, suite, buffers):
    run_imb(over_hosts, mpis.impi(), suite, RANKS, [], lengths=LENGTHS_FULL, timeout=1200, **buffers)


@pytest.mark.full
@posted(POSTED_FEW)
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_mpi4py_passes_over_hosts_in_posted_buffers(over_hosts, two, name, buffers):
    passes_wherever_it_passes_over_tcp(over_hosts, JobsOverHosts(Fabric.TCP, two), name, RANKS, **buffers)


@pytest.mark.full
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_mpi4py_passes_over_hosts_wherever_it_passes_over_tcp(over_hosts, two, name):
    passes_wherever_it_passes_over_tcp(over_hosts, JobsOverHosts(Fabric.TCP, two), name, RANKS)
