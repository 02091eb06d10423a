"""Traces as LogGOPSim, Schedgen and ATLAHS write them: replayed, or refused with the right word. 2 seconds."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.paths import ROOT, TIDEGATE

TRACES = ROOT / "tests" / "goal"
READ = {"ring": (4, 4, 4 * 4096), "terse": (3, 2, 8 + 16), "wildcards": (3, 4, 8 + 8 + 900 + 8)}
"""Ranks, messages and bytes of each trace that can be replayed."""


def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([TIDEGATE, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def described(folder: Path, trace: Path, ranks: int, more: str = "") -> Path:
    """A file for `tidegate sim` that replays a trace."""
    path = folder / "replay.toml"
    path.write_text(f'{more}[network]\ntopology = "switch"\nsizes = "{ranks}"\n[workload]\noperation = "trace"\ntrace = "{trace}"\n')
    return path


@pytest.mark.parametrize("name", READ)
def test_a_trace_is_replayed(name, tmp_path):
    ranks, messages, total = READ[name]
    trace = TRACES / f"{name}.goal"
    (point,) = json.loads(run("sim", described(tmp_path, trace, ranks), "--json").stdout)["runs"]
    counters = point["counters"]
    assert counters["messages_eager"] + counters["messages_rendezvous"] >= messages and point["time_us"] > 0
    plan = json.loads(run("plan", trace, "--schemes", "dynamic,static", "--json").stdout)
    assert (plan["ranks"], plan["messages"], plan["bytes"]) == READ[name]


def test_the_first_message_is_taken_whoever_sends_it(tmp_path):
    times = []
    for others in ("calc 400000", "calc 900000"):
        trace = tmp_path / "job.goal"
        trace.write_text((TRACES / "wildcards.goal").read_text().replace("calc 400000", others))
        (point,) = json.loads(run("sim", described(tmp_path, trace, 3), "--json").stdout)["runs"]
        times.append(point["time_us"])
    # Rank 2 has its answer long before rank 1 sends: no run stops, and both last as long as rank 1 computes.
    assert 400 < times[0] < 500 and 900 < times[1] < 1000


def test_what_cannot_be_replayed_is_refused_by_its_word(tmp_path):
    trace = TRACES / "portals.goal"
    for refused in (run("plan", trace, code=2), run("sim", described(tmp_path, trace, 2), code=2)):
        assert "line 3, column 7: `append` is an operation of Portals, and only calc, send and recv can be replayed" in refused.stderr
    scaled = run("plan", TRACES / "wildcards.goal", "--ranks", "8", code=2).stderr
    assert "3 ranks does not show its pattern" in scaled


def test_a_trace_that_stops_because_a_receive_took_what_comes_says_so(tmp_path):
    for stopped in (run("plan", TRACES / "stolen.goal", code=125), run("sim", described(tmp_path, TRACES / "stolen.goal", 2), code=125)):
        assert "rank 0 waits" in stopped.stderr and "rank 1 (tag 1000000)" in stopped.stderr
        assert "receives from any rank or with any tag, the first in line 5: they take the first message that comes" in stopped.stderr


def test_a_compressed_trace_comes_in_by_a_pipe(tmp_path):
    packed = tmp_path / "ring.goal.gz"
    packed.write_bytes(gzip.compress((TRACES / "ring.goal").read_bytes()))
    assert "this file is compressed: unpack it first" in run("plan", packed, code=2).stderr
    done = subprocess.run(["bash", "-c", f"{TIDEGATE} plan <(gzip -dc {packed}) --schemes static --json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and json.loads(done.stdout)["ranks"] == 4, done.stderr


def test_a_file_of_another_kind_is_named_with_what_it_is(tmp_path):
    program = tmp_path / "solver"
    shutil.copy("/bin/true", program)
    (tmp_path / "folder").mkdir()
    (tmp_path / "job.bin").write_bytes(b"\2\0\0\0\7")
    for words, says in [
        (("plan", program), f"this is a program, not a trace. To get a trace of a job: tidegate record -o job.goal mpiexec -n 4 ./{program.name}"),
        (("plan", tmp_path / "folder"), "this is a folder, and a trace is a file"),
        (("plan", tmp_path / "job.bin"), "take the text from which it was made"),
        (("sim", program), "this is a program, and `sim` needs a file in TOML"),
        (("sim", tmp_path / "folder"), "this is a folder, and `sim` needs a file in TOML"),
        (("sim", TRACES / "ring.goal"), 'under [workload], operation = "trace" and trace = "ring.goal"'),
        (("sim", described(tmp_path, program, 2)), "this is a program, not a trace"),
    ]:
        refused = run(*words, code=2).stderr
        assert says in refused and "UTF-8" not in refused, refused


def test_a_large_trace_takes_memory_in_proportion(tmp_path):
    """Cheap operations without labels cost most: 100 bytes for 7 of text. A number of ranks alone costs little."""
    (tmp_path / "many.goal").write_text("num_ranks 1048576\n")
    assert "1048576 ranks and 0 messages leave nothing to plan" in limited(tmp_path / "many.goal", megabytes=200)
    (tmp_path / "long.goal").write_text("num_ranks 2\nrank 0 {\n" + "calc 0\n" * 1_000_000 + "}\n")
    assert "nothing to plan" in limited(tmp_path / "long.goal", megabytes=500)


def limited(trace: Path, megabytes: int) -> str:
    """What `plan` says with so much address space beside its own."""
    done = subprocess.run(["bash", "-c", f"ulimit -v {megabytes * 1000 + 300_000}; exec {TIDEGATE} plan {trace}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, (done.returncode, done.stderr)
    return done.stderr
