"""Whole-system tests: real MPI programs over the built provider.

`--full` adds the whole matrix of `make test-full`, `--quick` leaves what `make quick` runs. `--fabric tcp` or `shm` runs the same programs over libfabric's own
providers: a test that fails there as well is no fault of Tidegate's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import hosts as made  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness import process  # noqa: E402
from harness.mpi import Fabric, Mpi  # noqa: E402
from harness.paths import PROVIDER, ROOT  # noqa: E402

PROGRAMS = ROOT / "tests" / "programs"
SMALLEST = {"SLOTS": 2, "CREDIT_SLOTS": 1, "SEND_BUFFERS": 0}
"""The smallest mailbox that the configuration allows: one slot for data and one for credits per peer."""
POSTED = {
    **{f"{scheme}-{buffers}": {"SCHEME": scheme, "BUFFERS": buffers} for scheme in ("rnr", "preposted", "growing") for buffers in (100, 10, 1)},
    "shared_window-512": {"SCHEME": "shared_window", "POOL_FIRST": 512, "POOL_MOST": 512},
    "shared_window-8-4096": {"SCHEME": "shared_window"},
    "shared_window-1": {"SCHEME": "shared_window", "POOL_FIRST": 1, "POOL_MOST": 1},
}
"""Schemes with posted buffers: those of the papers, and one buffer for each sender or for all."""
POSTED_FEW = ["rnr-10", "preposted-10", "growing-1", "shared_window-8-4096"]
"""Of these, one for each scheme."""
POOLED = {f"speculative-{slots}": {"SCHEME": "speculative", "POOL_SLOTS": slots} for slots in (1, 16, 4096)}
"""One pool of slots for all senders."""


def posted(names: Iterable[str] = POSTED) -> pytest.MarkDecorator:
    """A test for each of these, which may be pools of slots too."""
    names = list(names)
    return pytest.mark.parametrize("buffers", [(POSTED | POOLED)[name] for name in names], ids=names)


ALONE = 1
"""Ranks of an MPICH job that must fail in MPI_Init and say why. With more, MPICH 5's launcher may die of a broken pipe
(once in 150 jobs: it answers one rank while another ends), and what the ranks had printed is lost with it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the whole matrix")
    parser.addoption("--quick", action="store_true", help="run a few tests, under MPICH alone")
    parser.addoption("--table", type=Path, metavar="FILE", help="write a table of all results to FILE (Markdown)")
    parser.addoption("--fabric", choices=[item.value for item in Fabric], default=Fabric.TIDEGATE.value, help="what carries the messages")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = items[:]
    if not config.getoption("--full"):
        chosen = [item for item in chosen if not item.get_closest_marker("full")]
    if config.getoption("--quick"):
        chosen = [item for item in chosen if item.get_closest_marker("quick") and is_of_mpich(item)]
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen


def is_of_mpich(item: pytest.Item) -> bool:
    """Whether a test needs no other MPI: `name` is that of its MPI, where it has one."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters.get("name", "mpich") == "mpich"


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    path = config.getoption("--table")
    if not path:
        return
    rows = []
    for outcome in ("passed", "failed", "error", "skipped", "xfailed", "xpassed"):
        for report in terminalreporter.stats.get(outcome, []):
            rows.append((report.nodeid.removeprefix("tests/"), outcome, report.duration))
    rows.sort()
    lines = ["| test | outcome | seconds |", "|---|---|---:|", *(f"| {name} | {outcome} | {seconds:.1f} |" for name, outcome, seconds in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def fabric(pytestconfig: pytest.Config) -> Fabric:
    """What carries the messages of the jobs."""
    chosen = Fabric(pytestconfig.getoption("--fabric"))
    if chosen is Fabric.TIDEGATE and not PROVIDER.exists():
        pytest.exit(f"{PROVIDER} is missing: run `make build` first", returncode=2)
    return chosen


@pytest.fixture(scope="session")
def debian() -> Mpi:
    """The system's Open MPI, where it is installed."""
    found = mpis.debian_openmpi()
    if found is None:
        pytest.skip("Open MPI of the system is not installed (openmpi-bin, libopenmpi-dev)")
    return found


class Jobs:
    """Runs jobs over the chosen fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric

    def run(self, mpi: Mpi, ranks: int, program: list[str | Path], *, timeout: float = 120, cwd: Path | None = None,
            extra: dict[str, str] | None = None, observe: Callable[[set[int]], None] | None = None, **parameters: str | int) -> process.Result:
        """Runs a program; a source file in C is compiled for this MPI first. `timeout` in seconds; `observe` as for
        `process.run`."""
        first = Path(program[0])
        if first.suffix == ".c":
            first = mpi.compile(first)
        environment = mpi.environment(self.fabric, **parameters) | (extra or {})
        return process.run(mpi.command(ranks, [first, *program[1:]]), environment, timeout=timeout, cwd=cwd, check_segments=True,
                           observe=observe)

    def succeed(self, mpi: Mpi, ranks: int, program: list[str | Path], **options) -> str:
        """Runs a program that must succeed and leave nothing behind; returns its output."""
        result = self.run(mpi, ranks, program, **options)
        assert result.clean, result.explain()
        return result.output


@pytest.fixture(scope="module")
def two() -> Iterator[made.Hosts]:
    """Two hosts for the tests of a file."""
    with made.Hosts(2) as hosts:
        yield hosts


class JobsOverHosts:
    """Runs jobs over the chosen fabric on several hosts, with as many ranks on each."""

    def __init__(self, fabric: Fabric, hosts: made.Hosts) -> None:
        self.fabric, self.hosts = fabric, hosts

    def run(self, mpi: Mpi, ranks: int, program: list[str | Path], *, extra: dict[str, str] | None = None, timeout: float = 120,
            cwd: Path | None = None, **parameters: str | int) -> process.Result:
        """As `Jobs.run`, for programs that are compiled."""
        environment = mpi.environment(self.fabric, **parameters) | (extra or {})
        return made.run(self.hosts, mpi, ranks // len(self.hosts.names), program, environment, timeout=timeout, cwd=cwd)

    succeed = Jobs.succeed


@pytest.fixture(scope="session")
def jobs(fabric: Fabric) -> Jobs:
    return Jobs(fabric)
