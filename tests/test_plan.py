"""`tidegate plan` finds the least memory for a trace, and `tidegate calibrate` writes a machine file: shapes, no times."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import LIBRARY_FOLDER, ROOT, TIDEGATE

RUN_SECONDS = 300
"""So long a command may take that was compiled without much optimisation, beside other tests."""


def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([TIDEGATE, *words], capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    """The messages of NAS IS among eight processes, short."""
    folder = tmp_path_factory.mktemp("plan")
    machine = folder / "is.toml"
    machine.write_text('[machine]\nprocesses_per_node = 1\n[network]\ntopology = "switch"\nsizes = "8"\n'
                       '[workload]\noperation = "is"\niterations = 2\ncompute_rate = 4000\n')
    run("sim", machine, "--goal", folder / "is.goal")
    return folder / "is.goal"


def test_the_least_memory_is_recommended_and_runs_are_kept(trace, tmp_path):
    words = ["plan", trace, "--schemes", "dynamic,static", "--overhead", "20%", "--seeds", "2", "--json", "--out", tmp_path]
    found = json.loads(run(*words).stdout)
    assert found["schema"] == "tidegate-plan/1" and found["ranks"] == 8
    choices = {choice["scheme"]: choice for choice in found["choices"]}
    assert list(choices) == ["dynamic", "static"]
    enough = [choice for choice in choices.values() if choice["is_enough"]]
    assert enough and all(choice["overhead"] <= 0.2 for choice in enough)
    assert all(choice["amount"] >= 2 * choice["least"]["amount"] and choice["memory_bytes"] > choice["least"]["memory_bytes"] for choice in enough), enough
    least = min(choice["memory_bytes"] for choice in enough)
    assert choices[found["recommended"]["scheme"]]["memory_bytes"] <= 1.1 * least
    assert found["recommended"]["command"].startswith("tidegate run --scheme ")
    # The same again does not run anything.
    kept = sorted(tmp_path.rglob("*.json"))
    times = [path.stat().st_mtime_ns for path in kept]
    assert json.loads(run(*words).stdout) == found
    assert sorted(tmp_path.rglob("*.json")) == kept and [path.stat().st_mtime_ns for path in kept] == times


def test_by_default_three_schemes_are_tried_with_one_seed_and_it_says_before_how_many_runs_that_takes(tmp_path):
    done = run("plan", "halo16", "--json", "--out", tmp_path)
    assert [choice["scheme"] for choice in json.loads(done.stdout)["choices"]] == ["speculative", "dynamic", "static"]
    said = re.search(r"plan: about (\d+) simulations, .*\(speculative, dynamic, static; one seed\)", done.stderr)
    assert said, done.stderr
    # One more with ample memory.
    assert len(list(tmp_path.rglob("*.json"))) <= 1 + int(said[1]) <= 46


def test_growing_begins_with_more_buffers_where_one_is_too_few():
    # A message that finds no buffer is tried again after a time that is three times that of the whole trace.
    words = ["plan", ROOT / "crates" / "sim" / "traces" / "halo16.goal", "--schemes", "growing", "--seeds", "1", "--json"]
    [found] = json.loads(run(*words).stdout)["choices"]
    assert found["is_enough"] and "--buffers " in found["options"] and found["overhead"] <= 0.03, found
    [found] = json.loads(run(*words, "--buffers", "1").stdout)["choices"]
    assert not found["is_enough"] and "--buffers-most 1" in found["options"], found


def test_what_is_recommended_is_accepted_by_a_real_job(trace):
    found = json.loads(run("plan", trace, "--schemes", "static,preposted", "--overhead", "20%", "--seeds", "1", "--json").stdout)
    mpi = mpis.mpich()
    program = mpi.compile(ROOT / "benches" / "replay.c")
    for choice in found["choices"]:
        command = [TIDEGATE, "run", "--provider-dir", LIBRARY_FOLDER, "--json", "-", "--quiet", *choice["options"].split(), *mpi.command(8, [program, trace])]
        environment = {key: value for key, value in mpi.environment(Fabric.TIDEGATE).items() if not key.startswith("FI_")}
        done = process.run(command, environment, timeout=60)
        assert done.status == 0, done.explain()
        job = json.loads(done.output[done.output.index("{"):])["job"]
        assert job["receive_memory_bytes"]["job"] == choice["memory_bytes"]
        assert job["receive_peak_bytes"]["job"] <= choice["memory_bytes"]


def test_settings_with_which_ranks_wait_for_each_other_are_passed_over(tmp_path):
    """Both ranks send before they receive, again and again: MPI lets that wait for ever, and little room does."""
    rounds = range(10)
    rank = "".join(
        f"s{i}: send 1000b to {{other}} tag {i}\n" + (f"s{i} requires r{i - 1}\n" if i else "")
        + f"r{i}: recv 1000b from {{other}} tag {i}\nr{i} requires s{i}\n" for i in rounds
    )
    path = tmp_path / "unsafe.goal"
    path.write_text("num_ranks 2\n" + "".join(f"rank {me} {{\n{rank.format(other=1 - me)}}}\n" for me in range(2)))
    words = ["plan", path, "--seeds", "1"]
    found = json.loads(run(*words, "--schemes", "static,preposted", "--overhead", "20%", "--json").stdout)
    assert all(each["is_enough"] and not each["hangs"] and each["settings_that_hang"] > 0 for each in found["choices"]), found
    text = run(*words, "--schemes", "preposted", "--buffers", "1,100", "--all").stdout
    assert " hangs " in text and "ranks wait for each other for ever" in text, text
    pools = json.loads(run(*words, "--schemes", "speculative", "--pool-slots", "64,256", "--slots", "8", "--all", "--json").stdout)
    assert [choice["amount"] for choice in pools["choices"]] == [64, 256], "sizes of a pool are not those of shares"


def test_a_larger_job_of_the_same_pattern(tmp_path):
    large = tmp_path / "large.goal"
    found = json.loads(run("plan", "halo16", "--ranks", "64", "--goal", large, "--schemes", "static", "--slots", "16,64", "--seeds", "1", "--json").stdout)
    assert found["ranks"] == 64 and "torus of 4x4 becomes a torus of 8x8" in found["scaled_up"]
    assert large.read_text().startswith("num_ranks 64\n")


def test_a_program_is_no_trace_and_it_says_how_to_get_one():
    refused = run("plan", TIDEGATE, code=2).stderr
    assert "this is a program" in refused and f"tidegate record -o job.goal mpiexec -n 4 ./{TIDEGATE.name}" in refused, refused


@pytest.mark.parametrize(("text", "says"), [
    ("num_ranks 2\nrank 0 {\nsend 8 to 1\n}\n", "line 3, column 8: expected `b` behind `8`, found `to`"),
    ("num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\n", "line 3: rank 0 sends 1 messages to rank 1 with tag 3, which receives 0"),
    # 584 years were simulated without an end, and so was a message of 16 EiB.
    ("num_ranks 2\nrank 0 {\na: calc 18446744073709551615\nb: send 8b to 1\nb requires a\n}\nrank 1 {\nrecv 8b from 0\n}\n", "line 3, column 9: a calc of 18446744073709551615 ns"),
    ("num_ranks 2\nrank 0 {\ncalc 9000000000000000\nsend 8b to 1\n}\nrank 1 {\ncalc 9000000000000000\nrecv 8b from 0\n}\n", "compute for 208 days together"),
    ("num_ranks 2\nrank 0 {\nsend 18446744073709551615b to 1\n}\nrank 1 {\nrecv 18446744073709551615b from 0\n}\n", "line 3, column 6: 18446744073709551615 bytes"),
    ("num_ranks 2\nrank 0 {\nsend 100b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n", "line 6: of what rank 0 sends to rank 1 with tag 0, a message of 100 bytes"),
])
def test_a_bad_trace_is_named_by_its_line(tmp_path, text, says):
    path = tmp_path / "bad.goal"
    path.write_text(text)
    assert says in run("plan", path, code=2).stderr


def test_a_flood_is_delayed_as_can_be_reckoned(tmp_path):
    """Static credits: as many messages go as there are slots for data, and all others wait, for the receiver computes."""
    messages = 100
    sends = "".join(f"send 8b to 1 tag {tag}\n" for tag in range(messages))
    receives = "".join(f"r{tag}: recv 8b from 0 tag {tag}\nr{tag} requires work\n" for tag in range(messages))
    path = tmp_path / "flood.goal"
    path.write_text(f"num_ranks 2\nrank 0 {{\n{sends}}}\nrank 1 {{\nwork: calc 1000000\n{receives}}}\n")
    found = json.loads(run("plan", path, "--all", "--schemes", "static", "--slots", "16,64", "--seeds", "1", "--json").stdout)
    counters = [choice["counters"] for choice in found["choices"]]
    assert [each["sends_delayed"] for each in counters] == [messages - 14, messages - 62]
    assert [each["mailbox_peak_slots"] for each in counters] == [14, 62]
    # There is no bound, so nothing is said of its parts.
    assert not {"receive_memory_bytes", "window_bytes"} & set(counters[0]), counters[0]


def test_more_interruptions_than_can_be_simulated_are_refused(tmp_path):
    path, machine = tmp_path / "long.goal", tmp_path / "machine.toml"
    path.write_text("num_ranks 2\nrank 0 {\ncalc 3600000000000\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n")
    machine.write_text('[machine]\nprocesses_per_node = 2\nnoise_interval = "100 ns"\nnoise_duration = "1 ns"\n[network]\ntopology = "switch"\nsizes = "1"\n')
    assert "noise_interval" in run("plan", path, "--machine", machine, code=2).stderr


def test_what_cannot_be_planned_is_refused_with_the_remedy(tmp_path):
    machine = tmp_path / "machine.toml"
    machine.write_text('[flow]\nscheme = "static"\n')
    assert "tidegate calibrate -o FILE" in run("plan", "halo16", "--machine", machine, code=2).stderr
    assert "powers of two only" in run("plan", "halo16", "--ranks", "61", code=2).stderr
    assert "--peers 3 are too few" in run("plan", "halo16", "--peers", "3", code=2).stderr


def test_calibrate_writes_a_machine_that_plan_takes(tmp_path):
    machine = tmp_path / "machine.toml"
    said = run("calibrate", "--quick", "-o", machine).stderr
    assert said.count("measured") == 11, said
    text = machine.read_text()
    assert "[network]" in text and "[cost]" in text and "quartiles" in text and "# What was measured" in text
    run("plan", "halo16", "--machine", machine, "--schemes", "static", "--slots", "64", "--seeds", "1")
