"""Each sentence of fi_tidegate(7) about strangers, forks, closing and fences is checked by a test that quotes it."""

from __future__ import annotations

import pytest
from harness import manual
from harness.paths import ROOT

PARTS = ["Strangers", "SECURITY", "Closing", "Closing memory", "Forked children", "Fences", "Full completion queues"]
"""Parts of the page all of whose sentences are promises: their headings or tags."""
NO_PROMISES: dict[str, str] = {
    "tcp keeps a buffer to receive": "libfabric's affair, and the reason for the next two",
    "Each connection of a stranger takes a descriptor": "the system's affair",
    "Nothing is encrypted": "says what is not there",
    "So a process that changes its user": "advice; the sentence before it has a test",
    "Such a process could trace the others": "the system's affair",
    "That descriptor does not look at the protection": "the system's affair",
    "Folders that other users may write to": "says what others can do; the sentences behind it have tests",
    "Other refusals end by progress alone": "the tests of these numbers, and all that inject, try again so",
    "have copies of all": "the system's affair",
    "(A child that was made by vfork(2)": "the system's affair",
    "Before Linux 4.14": "such a system is not at hand",
}
"""How sentences of these parts begin that no test checks, and why."""


@pytest.fixture(scope="module")
def quoted() -> dict[str, list[str]]:
    """Which files quote which sentence."""
    found: dict[str, list[str]] = {}
    for path in manual.tests():
        for text in manual.quotations(path.read_text()):
            found.setdefault(text, []).append(str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("part", PARTS)
def test_every_promise_has_a_test(part, quoted):
    promises = [sentence.text for sentence in manual.sentences() if sentence.part == part]
    assert promises, f"the page has no part {part}"
    untested = [text for text in promises if text not in quoted and not text.startswith(tuple(NO_PROMISES))]
    assert not untested, "\n".join(untested)


def test_what_tests_quote_stands_in_the_page(quoted):
    page = " ".join(sentence.text for sentence in manual.sentences())
    wrong = {text: files for text, files in quoted.items() if text not in page}
    assert not wrong, "\n".join(f"{', '.join(files)}: {text}" for text, files in wrong.items())


def test_exceptions_are_needed(quoted):
    texts = [sentence.text for sentence in manual.sentences() if sentence.part in PARTS and sentence.text not in quoted]
    unused = [start for start in NO_PROMISES if not any(text.startswith(start) for text in texts)]
    assert not unused
