"""The documents name files that exist, and every make target that they name can be made."""

from __future__ import annotations

import re

import pytest
from harness.paths import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
FILE = re.compile(r"`([\w./-]+(?:\.(?:rs|py|c|md|toml|1|7)|/))`")
LINK = re.compile(r"\]\(([^)#:]+)\)")
TARGET = re.compile(r"`make ([a-z-]+)")


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Names of all source files, without their folders."""
    folders = ["crates", "tests", "scripts", "benches", "demo", "docs", "fuzz"]
    return {path.name for folder in folders for path in (ROOT / folder).rglob("*") if "target" not in path.parts}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_named_exists(document, names):
    text = document.read_text()
    named = {name for name in FILE.findall(text) if not name.startswith(("/", ".", "build/", "target/", "lib/"))} | set(LINK.findall(text))
    # A name with a folder is seen from the root; a bare one belongs to the folder that the sentence is about.
    # Links are seen from the document, as on the web.
    named = {name for name in named if not (document.parent / name).exists()}
    missing = {name for name in named if not (ROOT / name).exists() and not ("/" not in name.rstrip("/") and name.rstrip("/") in names)}
    missing = {name for name in missing if not any((ROOT / "crates" / crate / "src" / name).exists() for crate in ("flow", "bulk", "message", "link", "ofi", "cli"))}
    assert not missing, f"{document.name} names what is not there: {sorted(missing)}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_named_exists(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(TARGET.findall(document.read_text())) <= targets
