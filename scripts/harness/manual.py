"""Sentences of a manual page, and the tests that name them.

A test that checks a sentence of fi_tidegate(7) quotes it in a comment (or a documentation string) above the check:

    // fi_tidegate(7): "The sentence as the page shows it, in as many
    // comment lines as it takes."

Spaces do not matter. The quotation ends with the next quotation mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .paths import ROOT

PAGE = ROOT / "docs" / "man" / "fi_tidegate.7"
OPENING = 'fi_tidegate(7): "'
QUOTATION_LINES = 12
"""Lines that a quotation takes at most."""
COMMENT = re.compile(r"^\s*(?://[/!]?|#|\*)? ?")
ESCAPES = {r"\-": "-", r"\(lq": "“", r"\(rq": "”", r"\(aq": "'", r"\(mu": "×", r"\(bu": "•", r"\(>=": "≥", r"\e": "\\", r"\&": ""}
FONT = re.compile(r"\\f[BIRP]")
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z(“]|fi_|tcp )")


@dataclass(frozen=True)
class Sentence:
    """A sentence of the page."""

    part: str
    """The heading, or the tag of the paragraph, under which it stands: the innermost one."""
    text: str


def plain(line: str) -> str:
    """A line of text without its requests for fonts."""
    for escape, letter in ESCAPES.items():
        line = line.replace(escape, letter)
    return FONT.sub("", line)


def words(arguments: str) -> list[str]:
    """Arguments of a request."""
    return [plain(quoted or bare) for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', arguments)]


def paragraphs(page: Path) -> Iterator[tuple[str, str]]:
    """(part, text) of each paragraph of a page; tables are left out."""
    part, text, is_tag, in_table = "", [], False, False
    for line in page.read_text().splitlines():
        request, _, arguments = line.partition(" ")
        if request in (".TS", ".TE"):
            in_table = request == ".TS"
        if in_table:
            continue
        begins = request in (".SH", ".SS", ".TP", ".PP", ".P", ".LP", ".IP", ".TE", ".RS", ".RE")
        if begins and text:
            yield part, " ".join(" ".join(text).split())
            text = []
        if request in (".SH", ".SS"):
            part = " ".join(words(arguments))
        elif request == ".TP":
            is_tag = True
        elif begins or request.startswith(r'.\"'):
            continue
        else:
            shown = plain(line)
            if line.startswith("."):
                separator = "" if len(request) == 3 else " "
                shown = separator.join(words(arguments))
            if is_tag:
                part, is_tag = shown, False
            else:
                text.append(shown)
    if text:
        yield part, " ".join(" ".join(text).split())


def sentences(page: Path = PAGE) -> list[Sentence]:
    """All sentences of a page, in its order."""
    return [Sentence(part, text) for part, paragraph in paragraphs(page) for text in END_OF_SENTENCE.split(paragraph)]


def quotations(text: str) -> Iterator[str]:
    """What the comments of a test quote from the page."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        _, found, rest = line.partition(OPENING)
        if found:
            further = (COMMENT.sub("", line) for line in lines[number + 1 : number + QUOTATION_LINES])
            yield " ".join(" ".join([rest, *further]).partition('"')[0].split())


def tests() -> Iterator[Path]:
    """Files that may have tests in them."""
    for folder, kinds in (("crates", ("*.rs", "*.c", "*.h")), ("tests", ("*.py", "*.c", "*.h"))):
        for kind in kinds:
            yield from sorted((ROOT / folder).rglob(kind))
