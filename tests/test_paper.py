"""The paper's statements at reduced size: what came out must go on coming out, and what differs is known.

`paper_outcomes.txt` has the outcome of every statement of `tidegate paper all --quick`, with noise and one seed: runs are
the same on every machine, so several seeds would notice no more. A change of the simulator, of flow control or of a
statement that changes an outcome fails here; where it is meant, `TIDEGATE_BLESS=1` writes the file anew:

    TIDEGATE_BLESS=1 .mpi/tests/bin/python -m pytest tests/test_paper.py --full
"""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import pytest
from harness import papers

OUTCOMES = Path(__file__).with_name("paper_outcomes.txt")
pytestmark = pytest.mark.papers
WIDTH = len("reproduced") + 2
ALL = ["all"]
OPTIONS = ["--quick", "--seeds", "1", "--noise=2.5"]
CHOSEN = ["P-table1", "P-table2", "P-fig4", "P-fig5", "P-fig14", "P-fig24-26", "L-fig2", "L-fig3-6", "L-table1", "L-table2", "R-theorem2", "R-endpoints"]
"""The experiments of `make test`: what is computed, which takes no time; latency and stalls of `static`; the
collectives with a root; and posted buffers where they take few seconds. All others together take thirty times as long;
papers/tests/it/statements.rs has them at their smallest."""


def read() -> dict[str, list[str]]:
    """The lines that are expected, by experiment."""
    expected: dict[str, list[str]] = {}
    for line in OUTCOMES.read_text().splitlines() if OUTCOMES.exists() else []:
        if line.startswith("  "):
            expected[name].append(line.strip())
        elif line and not line.startswith("#"):
            name = line
            expected[name] = []
    return expected


def write(program: Path, outcomes: dict[str, list[str]]) -> None:
    order = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    lines = [f"# What becomes of the paper's statements with `tidegate paper {' '.join(OPTIONS)}`; tests/test_paper.py writes and checks it."]
    for name in (line.split()[0] for line in order):
        if name in outcomes:
            lines += ["", name, *(f"  {line}" for line in outcomes[name])]
    OUTCOMES.write_text("\n".join(lines) + "\n")


def run(program: Path, names: list[str], folder: Path) -> dict[str, list[str]]:
    """What comes out now, by experiment. Runs that the user has kept are not looked at."""
    result = subprocess.run([program, *OPTIONS, "--out", folder, *names], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return dict(statements(path) for path in folder.glob("*/*.csv"))


def statements(path: Path) -> tuple[str, list[str]]:
    """An experiment and its statements, as the file has them."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    return rows[0][1], [f"{row[1]:{WIDTH}}{row[3]}" for row in rows if row[0] == "claim"]


def check(program: Path, names: list[str], folder: Path) -> None:
    found, expected = run(program, names, folder), read()
    if os.environ.get("TIDEGATE_BLESS"):
        write(program, (expected if names != ALL else {}) | found)
        return
    if names == ALL:
        assert found.keys() == expected.keys()
    changed = [f"{name}: {line}" for name in found for line in found[name] if line not in expected.get(name, [])]
    gone = [f"{name}: {line}" for name in found for line in expected.get(name, []) if line not in found[name]]
    assert not changed and not gone, "\n".join(["now:", *changed, "expected:", *gone])


def test_chosen_figures_come_out_as_before(tmp_path):
    check(papers.program(), CHOSEN, tmp_path)


@pytest.mark.full
def test_all_figures_come_out_as_before(tmp_path):
    check(papers.program(is_fast=True), ALL, tmp_path)
