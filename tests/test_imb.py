"""The Intel MPI Benchmarks run to the end, with Intel MPI and with MPICH's library, under every scheme and at the
smallest mailbox."""

from __future__ import annotations

import os
import pytest
from conftest import POSTED_FEW, SMALLEST, posted
from harness import mpi as mpis
from harness.paths import BUILD

SCHEMES = ["none", "static", "dynamic"]

MPI1 = ["PingPong", "PingPing", "Sendrecv", "Exchange", "Allreduce", "Reduce", "Reduce_local", "Reduce_scatter", "Reduce_scatter_block",
        "Allgather", "Allgatherv", "Scatter", "Scatterv", "Gather", "Gatherv", "Alltoall", "Alltoallv", "Bcast", "Barrier"]
"""What IMB-MPI1 runs by default."""
MT = ["PingPongMT", "PingPingMT", "SendRecvMT", "ExchangeMT", "UniBandMT", "BiBandMT", "BarrierMT", "BcastMT", "ReduceMT", "AllReduceMT"]
RMA_SUBSET = ["Unidir_put", "Unidir_get", "Bidir_put", "Bidir_get", "One_put_all", "All_get_all", "Put_local", "Exchange_put", "Accumulate",
              "Get_accumulate"]
RMA_PAIR = ["Unidir_put", "Unidir_get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"]
"""The last two are run by IMB on two ranks only."""
NBC_SUBSET = ["Ibcast", "Iallgather", "Iallreduce", "Ialltoall", "Ialltoallv", "Ireduce", "Ibarrier"]
P2P_SUBSET = ["PingPong", "Birandom", "Stencil2D"]
LENGTHS = [0, 1, 40, 57, 2047, 2049, 16384, 65536, 1 << 20]
"""Both sides of one packet, of the eager limit, and some bulk; in bytes."""
MPI1_MANY = ["Exchange", "Allreduce", "Reduce_scatter", "Allgatherv", "Gatherv", "Alltoall", "Bcast", "Barrier"]
LENGTHS_MANY = [0, 57, 2049, 65536]
"""With sixteen ranks on few cores, but for `--full`."""
LENGTHS_FULL = [0, 1, 2, 4, 8, 16, 32, 40, 41, 56, 57, 64, 128, 256, 512, 1024, 2047, 2048, 2049, 4096, 8192, 16384, 32768, 65536, 131072,
                262144, 524288, 1 << 20, 1 << 21, 1 << 22]


def lengths_file(lengths: list[int]) -> str:
    """A file of lengths as `-msglen` wants it. It is never there in part: a rank of another test that reads it then ends at once,
    and the others wait for it for ever."""
    path = BUILD / f"imb-lengths-{len(lengths)}.txt"
    path.parent.mkdir(exist_ok=True)
    written = path.with_name(f"{path.name}.{os.getpid()}")
    written.write_text("".join(f"{length}\n" for length in lengths))
    written.replace(path)
    return str(path)


def run_imb(jobs, mpi, suite: str, ranks: int, benchmarks: list[str], *, lengths: list[int], timeout: float = 120, **parameters) -> None:
    """Runs benchmarks of one suite, and checks that each of them ran: IMB exits 0 also when it refuses its command
    line.

    An empty list of benchmarks runs all of the suite.
    """
    program = mpis.impi().benchmarks / suite
    if suite == "IMB-MT":
        words = ["-thread_level", "multiple", "-repeat", "3", "-warmup", "1", "-count", ",".join(str(length) for length in lengths if length <= 65536)]
    else:
        words = ["-npmin", str(ranks), "-iter", "2", "-iter_policy", "off", "-msglen", lengths_file(lengths)]
    output = jobs.succeed(mpi, ranks, [program, *benchmarks, *words], timeout=timeout, extra={"OMP_NUM_THREADS": "2"}, **parameters)
    ran = {line.split()[2] for line in output.splitlines() if line.startswith("# Benchmarking ")}
    missing = [name for name in benchmarks if name not in ran]
    assert not missing, f"did not run: {missing}\n{output[-3000:]}"
    assert ran, f"nothing ran\n{output[-3000:]}"


@pytest.mark.parametrize(("ranks", "scheme"), [
    (2, "dynamic"), *((4, scheme) for scheme in SCHEMES),
    *(pytest.param(ranks, scheme, marks=pytest.mark.full) for ranks in (2, 16) for scheme in SCHEMES if (ranks, scheme) != (2, "dynamic")),
])
def test_mpi1_runs_to_the_end(jobs, ranks, scheme):
    run_imb(jobs, mpis.impi(), "IMB-MPI1", ranks, MPI1, lengths=LENGTHS, SCHEME=scheme)


def test_mpi1_runs_to_the_end_on_many_ranks(jobs):
    run_imb(jobs, mpis.impi(), "IMB-MPI1", 16, MPI1_MANY, lengths=LENGTHS_MANY, SCHEME="dynamic")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_mpi1_runs_to_the_end_at_the_smallest_mailbox(jobs, scheme):
    run_imb(jobs, mpis.impi(), "IMB-MPI1", 4, MPI1, lengths=LENGTHS, SCHEME=scheme, **SMALLEST)


@posted(POSTED_FEW)
def test_mpi1_runs_to_the_end_in_posted_buffers(jobs, buffers):
    run_imb(jobs, mpis.impi(), "IMB-MPI1", 4, MPI1, lengths=LENGTHS, **buffers)


def test_mpi1_runs_with_the_library_of_mpich(jobs):
    run_imb(jobs, mpis.mpich(), "IMB-MPI1", 4, MPI1, lengths=LENGTHS, SCHEME="dynamic")


@pytest.mark.parametrize("suite, ranks, benchmarks", [
    ("IMB-P2P", 4, P2P_SUBSET), ("IMB-NBC", 4, NBC_SUBSET), ("IMB-RMA", 4, RMA_SUBSET), ("IMB-RMA", 2, RMA_PAIR), ("IMB-MT", 2, MT), ("IMB-MT", 4, MT),
], ids=lambda value: "" if isinstance(value, list) else str(value))
def test_other_suites_run_to_the_end(jobs, suite, ranks, benchmarks):
    run_imb(jobs, mpis.impi(), suite, ranks, benchmarks, lengths=LENGTHS, SCHEME="dynamic")


@pytest.mark.full
@posted()
@pytest.mark.parametrize("ranks", [2, 4, 16])
@pytest.mark.parametrize("suite", ["IMB-MPI1", "IMB-P2P", "IMB-NBC", "IMB-RMA", "IMB-MT"])
def test_whole_suites_in_posted_buffers(jobs, suite, ranks, buffers):
    run_imb(jobs, mpis.impi(), suite, ranks, [], lengths=LENGTHS_FULL if ranks < 16 else LENGTHS, timeout=1200, **buffers)


@pytest.mark.full
@pytest.mark.parametrize("slots", [{}, SMALLEST], ids=["default", "smallest"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("ranks", [2, 4, 16])
@pytest.mark.parametrize("suite", ["IMB-MPI1", "IMB-P2P", "IMB-NBC", "IMB-RMA", "IMB-MT"])
def test_whole_suites_up_to_4_mib(jobs, suite, ranks, scheme, slots):
    # 16 ranks on few cores at 4 MiB take minutes in the vector exchanges: there the largest length is 1 MiB.
    lengths = LENGTHS_FULL if ranks < 16 else LENGTHS
    run_imb(jobs, mpis.impi(), suite, ranks, [], lengths=lengths, timeout=1200, SCHEME=scheme, **slots)


@pytest.mark.parametrize("scheme", ["preposted", "growing"])
def test_intel_mpis_own_messages_are_reported_in_their_order(jobs, scheme):
    """Short messages without credits are announced, and those behind them are not. Intel MPI dies of one that is reported too early."""
    few = {"SCHEME": scheme, "BUFFERS": 1, "BUFFERS_MOST": 1}
    run_imb(jobs, mpis.impi(), "IMB-RMA", 4, ["Get_accumulate"], lengths=[2 << 20, 4 << 20], **few)
