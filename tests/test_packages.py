"""Packages: one version, recipes that can be read, no address of what does not exist, the module for notebooks; with --full, building them."""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from harness.paths import BUILD, PROVIDER, ROOT, TIDEGATE
from packages import licences, packing, pages, sources
from packages.compile import Products
from packages.machine import GLIBC, MACHINES

MODULE = ROOT / "packaging" / "wheel"
SPACK = ROOT / "packaging" / "spack" / "package.py"
CONDA = ROOT / "packaging" / "conda" / "recipe.yaml"
EASYBUILD = ROOT / "packaging" / "easybuild"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
VERSION = WORKSPACE["version"]
CRATES = [*sorted(ROOT.glob("crates/*/Cargo.toml")), ROOT / "papers" / "Cargo.toml"]
SCHEMES = ["none", "static", "dynamic", "rnr", "preposted", "growing", "shared_window", "speculative"]
DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "packages.md", ROOT / "docs" / "administrator.md"]
PACKAGE = re.compile(r"tidegate[-_](\d+\.\d+\.\d+)")


def module(*words: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs Python with the wheel's module, which finds the command of the build tree in PATH."""
    paths = {"PYTHONPATH": str(MODULE), "PATH": f"{TIDEGATE.parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *words], env={**os.environ, **paths, **environment}, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("path", CRATES, ids=lambda path: path.parent.name)
def test_each_crate_has_the_version_of_the_workspace(path):
    assert tomllib.loads(path.read_text())["package"]["version"] == {"workspace": True}


def test_the_wheel_reads_the_version_of_the_workspace():
    project = tomllib.loads((MODULE / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"] and "version" not in project["project"]
    found = re.search(project["tool"]["hatch"]["version"]["pattern"], (ROOT / "Cargo.toml").read_text())
    assert found and found["version"] == VERSION


def test_the_deb_reads_the_version_of_the_workspace():
    assert "\nVersion: @VERSION@\n" in (ROOT / "packaging" / "deb" / "control.in").read_text()


def test_the_changelog_begins_with_the_version():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == VERSION


def test_the_lock_of_the_fuzz_targets_has_this_version():
    crates = tomllib.loads((ROOT / "fuzz" / "Cargo.lock").read_text())["package"]
    assert {crate["version"] for crate in crates if crate["name"].startswith("tidegate-") and crate["name"] != "tidegate-fuzz"} == {VERSION}


def test_the_citation_is_of_this_version_and_its_licences():
    """Its format was checked once by `cffconvert --validate`."""
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [VERSION]
    assert set(re.findall(r"^  - (.+)$", text.partition("license:")[2].partition("keywords:")[0], re.MULTILINE)) == set(WORKSPACE["license"].split(" OR "))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_name_packages_of_this_version(document):
    assert set(PACKAGE.findall(document.read_text())) == {VERSION}


def test_the_spack_recipe_is_python_and_of_this_version():
    tree = ast.parse(SPACK.read_text())
    (recipe,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    calls = [node.value for node in recipe.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    first = [(call.func.id, call.args[0].value) for call in calls if call.args]
    assert recipe.name == "Tidegate" and ast.get_docstring(recipe)
    assert [value for name, value in first if name == "version"] == [VERSION]
    assert ("license", WORKSPACE["license"]) in first
    assert ("depends_on", f"rust@{WORKSPACE['rust-version']}:") in first
    assert "UNTRIED" in SPACK.read_text() and f"tidegate@{VERSION}" in SPACK.read_text()


def test_the_conda_recipe_is_yaml_and_of_this_version():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not in this environment yet: scripts/setup.py tests")
    recipe = yaml.safe_load(CONDA.read_text())
    assert recipe["context"]["version"] == VERSION
    assert recipe["package"]["name"] == "tidegate" and recipe["about"]["license"] == WORKSPACE["license"]
    licences = recipe["about"]["license_file"]
    assert licences and all((ROOT / name).is_file() for name in licences)
    assert (CONDA.parent / recipe["source"]["path"]).resolve() == ROOT
    # Without these values rattler-build does not know stdlib("c").
    assert yaml.safe_load((CONDA.parent / "variants.yaml").read_text()) == {"c_stdlib": ["sysroot"], "c_stdlib_version": [GLIBC]}
    assert "UNTRIED" in CONDA.read_text()


def test_no_address_is_named_that_does_not_exist():
    """Nobody publishes the sources, so there is neither repository nor home page."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    names = [ROOT / name for name in tracked.stdout.split("\0") if name] or [*ROOT.glob("**/Cargo.toml"), *ROOT.glob("packaging/**/*")]
    files = [path for path in names if path.is_file() and path.suffix in (".toml", ".yaml", ".py", ".md", ".in", ".1", ".3", ".7", "")]
    assert ROOT / "Cargo.toml" in files and SPACK in files
    named = {path.relative_to(ROOT): re.findall(r"(?i)(?:https?|git|ssh)://\S*tidegate\S*", path.read_text(errors="replace")) for path in files}
    assert not {path: found for path, found in named.items() if found and path != Path("tests/test_packages.py")}
    for manifest in (ROOT / "Cargo.toml", *CRATES):
        content = tomllib.loads(manifest.read_text())
        package = content.get("package") or content["workspace"]["package"]
        assert not {"repository", "homepage", "documentation"} & set(package), manifest
    assert "urls" not in tomllib.loads((MODULE / "pyproject.toml").read_text())["project"]


def test_links_of_the_pages_in_packages_lead_somewhere(tmp_path):
    pages.write_pages(tmp_path)
    chapters = sorted(tmp_path.rglob("*.md"))
    assert tmp_path / "docs" / "first-hour.md" in chapters
    links = {(path, link) for path in chapters for _, _, link, _ in pages.LINK.findall(path.read_text()) if link and not re.match("[a-z]+:", link)}
    assert len(links) > 50
    dead = [f"{path.relative_to(tmp_path)}: {link}" for path, link in links if not (path.parent / link).exists()]
    assert not dead
    # Nothing but links is changed.
    assert "Slow nodes" not in (tmp_path / "docs" / "SUMMARY.md").read_text()
    assert (tmp_path / "docs" / "top.md").read_text() == (ROOT / "docs" / "top.md").read_text()
    assert "[With your own MPI](mpi.md)" in (tmp_path / "docs" / "first-hour.md").read_text()


def test_uninstall_leaves_nothing_of_what_install_made(tmp_path):
    (tmp_path / "usr/share/man/man1").mkdir(parents=True)
    (tmp_path / "usr/share/man/man1/other.1").touch()
    words = ["make", "--silent", f"LIBRARY={PROVIDER}", f"PROGRAM={TIDEGATE}", f"DESTDIR={tmp_path}", "PREFIX=/usr"]
    for target in ("install-files", "uninstall"):
        done = subprocess.run([*words, target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*tidegate*"))
        assert bool(found) == (target == "install-files"), found
    assert (tmp_path / "usr/share/man/man1/other.1").exists()


def packing_in(folder: Path, products: Products | None = None) -> packing.Packing:
    """Packs into a folder, at a commit and a time of the tests."""
    return packing.Packing(MACHINES["x86_64"], VERSION, COMMIT, "1700000000", products or Products(Path(), Path()), folder, folder / "work", folder)


def test_the_sources_say_their_commit_and_are_the_same_bytes_each_time(tmp_path):
    tar = sources.source_tar(packing_in(tmp_path))
    first = tar.read_bytes()
    assert sources.source_tar(packing_in(tmp_path)).read_bytes() == first
    shutil.unpack_archive(tar, tmp_path / "unpacked", filter="data")
    folder = tmp_path / "unpacked" / f"tidegate-{VERSION}"
    assert (folder / "packaging" / "COMMIT").read_text() == f"{COMMIT}\n"
    assert (folder / "Cargo.lock").read_bytes() == (ROOT / "Cargo.lock").read_bytes()
    assert not {"build", "target", ".git", ".mpi", "vendor"} & {path.name for path in folder.iterdir()}


def test_the_folder_debian_is_one_that_dpkg_reads(tmp_path):
    if not shutil.which("dpkg-parsechangelog"):
        pytest.skip("there is no dpkg-dev")
    sources.debian_folder(packing_in(tmp_path), tmp_path / "debian")
    said = subprocess.run(["dpkg-parsechangelog", "--all"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"Version: {VERSION}-1\n" in said.stdout and not said.stderr, said.stderr
    assert os.access(tmp_path / "debian" / "rules", os.X_OK)
    for path in (tmp_path / "debian").rglob("*"):
        assert path.is_dir() or "@" not in path.read_text().replace(packing.MAINTAINER, "").replace("$@", ""), path
    control = (tmp_path / "debian" / "control").read_text()
    assert {f"rustc (>= {WORKSPACE['rust-version']})", f"cargo (>= {WORKSPACE['rust-version']})"} <= {line.strip(" ,") for line in control.splitlines()}


def test_the_spec_lists_what_install_installs(tmp_path):
    spec = sources.spec_of(packing_in(tmp_path))
    assert f"Version:        {VERSION}\n" in spec and "@" not in spec.replace("packages.invalid", "").replace("tidegate@", "")
    assert f"rust >= {WORKSPACE['rust-version']}" in spec
    folders = {"_bindir": "/usr/bin", "_prefix": "/usr", "_includedir": "/usr/include", "_datadir": "/usr/share", "_docdir": "/usr/share/doc", "_mandir": "/usr/share/man"}
    listed = spec.partition("%files\n")[2].partition("%changelog")[0]
    for name, folder in folders.items():
        listed = listed.replace(f"%{{{name}}}", folder)
    patterns = [line.split()[-1] for line in listed.splitlines() if "/usr/" in line and not line.startswith("%dir ")]
    root = tmp_path / "root"
    words = ["make", "--silent", "install-files", "install-documents", f"LIBRARY={PROVIDER}", f"PROGRAM={TIDEGATE}", f"DESTDIR={root}", "PREFIX=/usr"]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    covered = [path for pattern in patterns for path in root.glob(pattern.lstrip("/"))]
    assert len(covered) >= len(patterns), "a line of the spec names nothing"
    files = [path for path in root.rglob("*") if path.is_file()]
    assert not [path for path in files if not any(path == one or one in path.parents for one in covered)]


def test_the_easybuild_recipe_is_of_this_version_and_its_own_place():
    (recipe,) = EASYBUILD.glob("*.eb")
    values: dict = {}
    exec(compile(recipe.read_text(), recipe.name, "exec"), values)  # noqa: S102 (EasyBuild reads them so)
    toolchain = values["toolchain"]
    assert recipe.name == f"{values['name']}-{values['version']}-{toolchain['name']}-{toolchain['version']}.eb" and values["version"] == VERSION
    rust = dict(values["builddependencies"])["Rust"].split(".")
    assert list(map(int, rust[:2])) >= list(map(int, WORKSPACE["rust-version"].split(".")))


def test_each_crate_that_is_linked_comes_with_its_licence_and_a_checksum(monkeypatch):
    """Cargo has all crates since the product was built, so that it asks no network."""
    monkeypatch.setenv("CARGO_NET_OFFLINE", "true")
    linked = licences.linked(MACHINES["x86_64"])
    digests = {(package["name"], package["version"]) for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"] if "checksum" in package}
    assert len(linked) > 50
    assert not [package["name"] for package in linked if not package["license"] or not licences.texts(package)]
    assert {(package["name"], package["version"]) for package in linked} <= digests
    spec = (ROOT / "packaging" / "rpm" / "tidegate.spec").read_text()
    named = set(re.findall(r"[A-Za-z0-9.-]+", re.search(r"^License: +(.+)$", spec, re.MULTILINE)[1])) - {"AND", "OR", "WITH"}
    used = {word for package in linked for word in re.findall(r"[A-Za-z0-9.-]+", package["license"])} - {"AND", "OR", "WITH"}
    assert named == used


def test_the_bill_of_materials_is_what_the_schema_asks_and_the_same_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("CARGO_NET_OFFLINE", "true")
    tools = BUILD / "dist" / "tools" / "bin" / "python"
    python = next((path for path in (tools, Path(sys.executable)) if path.exists() and subprocess.run([path, "-c", "import cyclonedx, jsonschema"], capture_output=True).returncode == 0), None)
    if python is None:
        pytest.skip("cyclonedx-python-lib is not there: make dist installs it")
    texts = []
    for name in ("one.json", "two.json"):
        words = [python, "-m", "packages.sbom", "x86_64", tmp_path / name, VERSION, COMMIT[:12], "1700000000", "1.90.0"]
        done = subprocess.run(words, cwd=ROOT / "scripts", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    bill = json.loads(texts[0])
    names = {(part["name"], part["version"]) for part in bill["components"]}
    assert names == {(package["name"], package["version"]) for package in licences.linked(MACHINES["x86_64"])} | {("rust-std", "1.90.0")}
    assert {"name": "tidegate:commit", "value": COMMIT[:12]} in bill["metadata"]["component"]["properties"]


def test_a_deb_has_what_debian_looks_for(tmp_path):
    if not shutil.which("dpkg-deb"):
        pytest.skip("there is no dpkg-deb")
    small = tmp_path / "small"
    small.write_text("#!/bin/sh\n")
    products = Products(program=small, library=small)
    what = packing_in(tmp_path, products)
    package, folder = packing.deb(what), tmp_path / "unpacked"
    subprocess.run(["dpkg-deb", "--raw-extract", package, folder], check=True)
    documents = folder / "usr/share/doc/tidegate"
    log = gzip.decompress((documents / "changelog.gz").read_bytes()).decode()
    assert re.fullmatch(rf"tidegate \({VERSION}\) unstable; urgency=\w+\n\n  \* .+\n\n -- .+ <.+>  \w{{3}}, \d\d \w{{3}} \d{{4}} [\d:]{{8}} \+0000\n", log), log
    assert re.search(r"^Copyright: \d{4} ", (documents / "copyright").read_text(), re.MULTILINE)
    done = subprocess.run(["md5sum", "--quiet", "--check", "DEBIAN/md5sums"], cwd=folder, capture_output=True, text=True)
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "DEBIAN"]
    assert done.returncode == 0 and len((folder / "DEBIAN/md5sums").read_text().splitlines()) == len(files), done.stderr


def test_the_command_tells_its_version_and_the_schemes():
    said = module("-m", "tidegate", "--version").stdout
    commit = r"(?:[0-9a-f]{7,40}(?:-dirty)?|unknown)"
    assert re.fullmatch(rf"tidegate {re.escape(VERSION)} \(commit {commit}\)\nschemes: {', '.join(SCHEMES)}\n", said), said


def test_env_is_what_the_command_prints():
    words = "import json, tidegate; print(json.dumps(tidegate.env(mpi='mpich', scheme='static', rx_memory='16M')))"
    said = module("-c", words)
    assert said.returncode == 0, said.stderr
    command = [TIDEGATE, "env", "--json", "--mpi", "mpich", "--scheme", "static", "--rx-memory", "16M"]
    printed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["environment"]
    assert json.loads(said.stdout) == printed
    assert printed["FI_PROVIDER"] == "tidegate" and printed["FI_TIDEGATE_RX_MEMORY"] == "16M"


def test_env_refuses_a_wrong_option_by_name():
    said = module("-c", "import tidegate; tidegate.env(slots=0)")
    assert said.returncode == 1 and "ValueError" in said.stderr and "--slots" in said.stderr, said.stderr


def test_env_passes_on_warnings():
    said = module("-c", "import tidegate; tidegate.env()", FI_TIDEGATE_SLOT="8")
    assert said.returncode == 0 and "UserWarning" in said.stderr and "FI_TIDEGATE_SLOTS" in said.stderr, said.stderr


def test_a_module_without_the_command_says_what_helps():
    said = module("-m", "tidegate", "env", PATH="/nowhere")
    assert said.returncode == 1 and "the command tidegate was not found" in said.stderr, said.stderr


@pytest.mark.full
def test_packages_are_built_and_ask_for_nothing_new():
    done = subprocess.run(["make", "dist"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert re.findall(r"^  (tidegate|libtidegate-fi.so): GLIBC_2\.(?:[0-9]|1[0-9]|2[0-8]) at most", done.stdout, re.MULTILINE) != []
    # The check is one that can fail: what was built for this system asks for more, where this system's C library is newer.
    command = [BUILD / "dist" / "tools" / "bin" / "python", "-m", "packages.elf", os.uname().machine, BUILD / "lib"]
    library = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    if tuple(map(int, library.split("."))) >= (2, 34):
        native = subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True)
        assert native.returncode == 1 and "asks libc.so.6 for GLIBC_2.34" in native.stderr, native.stderr
