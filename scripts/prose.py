"""Sentences of pages that readers stumble over: longer than 35 words, or with an opening that leaves the subject to be guessed.

Each paragraph, each item of a list and each cell of a table is read by itself; blocks of code, comments and headings are left
out. A piece of code and a quotation count as one word. In a table the facts of a cell may be parted by semicolons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

WORDS_MOST = 35
OPENINGS = re.compile(r"(?:What|Who|Whoever|Whatever|Whom|Nobody|Somebody|Anybody|Anew|Amid|Beside|So many|So much)\b")
"""Not at the beginning of a sentence that is no question (STYLE.md: say the peer, the caller, the number of slots)."""

CODE = re.compile(r"^```.*?^```$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
ITEM = re.compile(r"(?:[-*+]|\d+\.)\s+")
RULE = re.compile(r"[|:\- ]+")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”")
END = re.compile(r"(?<=[.?!])[\")”]*\s+(?=[A-Z0-9(“…])")


def passages(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line, from 1, and text of everything that is read by itself, and whether it is a cell of a table."""
    for left_out in (CODE, COMMENT):
        text = left_out.sub(lambda match: "\n" * match[0].count("\n"), text)
    begin, parts = 0, []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        line = line.strip()
        item = ITEM.match(line)
        if (item or not line or line[0] in "#|<!") and parts:
            yield begin, " ".join(parts), False
            parts = []
        if line.startswith("|") and not RULE.fullmatch(line):
            yield from ((number, fact.strip(), True) for cell in line.strip("|").split("|") for fact in cell.split(";") if fact.strip())
        elif line and line[0] not in "#|<!":
            begin = begin if parts else number
            parts.append(line[item.end():] if item else line)


def plain(text: str) -> str:
    """Text as it is read: links are their words, code and quotations one word each, and nothing is bold."""
    text = re.sub(r"`+[^`]*`+", "Code", text)
    text = LINK.sub(lambda match: match[1][:1].upper() + match[1][1:], text)
    return re.sub(r"[*_]{1,2}", "", QUOTED.sub("Quotation", text))


def faults(text: str) -> list[tuple[int, str]]:
    """The line at which a passage begins, and what is wrong with a sentence in it."""
    found = []
    for line, passage, is_cell in passages(text):
        # A bold beginning may be the name of a part of a report; a cell, such a name or a title.
        is_name = passage.startswith("**")
        for number, sentence in enumerate(END.split(plain(passage))):
            count = sum(bool(re.search(r"\w", word)) for word in sentence.split())
            is_question = sentence.rstrip().endswith("?")
            if count > WORDS_MOST:
                found.append((line, f"a sentence of {count} words: {sentence[:60]} …"))
            if OPENINGS.match(sentence) and not (is_cell or is_question or is_name and number == 0):
                found.append((line, f"say the noun: {sentence[:60]} …"))
    return found


def pages(root: Path) -> list[Path]:
    """All pages of the project. SUMMARY.md has titles, no sentences; the page of a paper is made of the files beside its figures."""
    found = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("papers/**/*.md"), *root.glob("packaging/**/*.md")]
    made = set(root.glob("papers/**/README.md"))
    return sorted(path for path in found if path.name != "SUMMARY.md" and path not in made and "target" not in path.parts)
