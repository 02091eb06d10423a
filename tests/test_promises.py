"""Each sentence of fi_tidegate(7) about strangers, forks, closing and fences is checked by a test that quotes it."""

from __future__ import annotations

import pytest
from harness import manual
from harness.paths import ROOT

PARTS = ["Strangers", "SECURITY", "Closing", "Closing memory", "Forked children", "Fences", "Full completion queues"]
"""Parts of the page all of whose sentences are promises: their headings or tags."""
NO_PROMISES: dict[str, str] = {}
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
