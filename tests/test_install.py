"""`make install` into a folder, what the installed module file sets, and `make uninstall`. 2 seconds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.paths import PROVIDER, ROOT, TIDEGATE

TCL = r"""
proc module-whatis args {}
proc conflict args {}
proc report {name value} { puts "$name\t$value" }
proc setenv {name value} { report $name $value }
proc prepend-path {name value} { report $name $value }
set ModulesCurrentModulefile [lindex $argv 0]
source $ModulesCurrentModulefile
"""
"""What a module file calls, in as much as it needs: each variable is printed."""


def make(*words: str) -> str:
    """What a make of its own says, whichever one has started these tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name not in ("DESTDIR", "PREFIX")}
    return subprocess.run(["make", *words], cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout


def make_in(destination: Path | str, prefix: str, *targets: str) -> None:
    make("--silent", *targets, f"LIBRARY={PROVIDER}", f"PROGRAM={TIDEGATE}", f"DESTDIR={destination}", f"PREFIX={prefix}")


def settings_of(tidegate: Path, **environment: str) -> dict[str, str]:
    """What `tidegate env` sets for one who is not root."""
    found = subprocess.run([tidegate, "env", "--json"], env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True, check=True, timeout=30)
    variables = json.loads(found.stdout)["environment"]
    return {name: value for name, value in variables.items() if "RUN_AS_ROOT" not in name}


def settings_of_module(file: Path, **environment: str) -> dict[str, str]:
    """What the module file sets, by a Tcl, or else as it is written."""
    tcl = shutil.which("tclsh")
    if tcl is None:
        pytest.skip("no tclsh is here")
    found = subprocess.run([tcl, "-", file], input=TCL.replace("[lindex $argv 0]", f"{{{file}}}"), env={"PATH": os.environ["PATH"], **environment},
                           capture_output=True, text=True, check=True, timeout=30)
    variables: dict[str, str] = {}
    for line in found.stdout.splitlines():
        name, value = line.split("\t")
        variables[name] = f"{value}:{variables[name]}" if name in variables else value
    return variables


@pytest.fixture(name="installed", scope="module")
def install(tmp_path_factory) -> Path:
    """A folder in which the prefix is where it will be."""
    folder = tmp_path_factory.mktemp("prefix") / "tidegate"
    make_in("", str(folder), "install-files", "install-documents")
    return folder


def test_the_module_file_sets_what_tidegate_env_does(installed):
    (file,) = (installed / "share/modulefiles/tidegate").iterdir()
    assert "@" not in re.sub(r"#.*", "", file.read_text())
    module = settings_of_module(file)
    assert module.pop("PATH") == f"{installed}/bin" and module.pop("MANPATH") == f"{installed}/share/man"
    assert module == settings_of(installed / "bin/tidegate")


def test_the_module_file_leaves_intel_mpis_providers_in_reach(installed, tmp_path):
    (file,) = (installed / "share/modulefiles/tidegate").iterdir()
    providers = tmp_path / "opt/mpi/libfabric/lib/prov"
    providers.mkdir(parents=True)
    (providers / "libmlx-fi.so").touch()
    module = settings_of_module(file, I_MPI_ROOT=str(tmp_path))
    assert module["FI_PROVIDER_PATH"] == settings_of(installed / "bin/tidegate", I_MPI_ROOT=str(tmp_path))["FI_PROVIDER_PATH"]


def test_a_module_file_that_was_moved_finds_its_own_place(tmp_path):
    make_in(tmp_path / "tar", "", "install-files")
    moved = (tmp_path / "tar").rename(tmp_path / "moved")
    (file,) = (moved / "share/modulefiles/tidegate").iterdir()
    assert settings_of_module(file)["FI_PROVIDER_PATH"] == f"{moved}/lib/tidegate"


def test_the_service_names_the_command_where_it_is_installed_or_by_the_command_of_the_page(installed, tmp_path):
    service, begins = "share/tidegate/monitoring/tidegate-export.service", "\nExecStart={}/bin/tidegate export --every 15s "
    assert begins.format(installed) in (installed / service).read_text()
    make_in(tmp_path, "", "install-files")
    (line,) = [line for line in (ROOT / "docs/monitor.md").read_text().splitlines() if line.startswith("sed ") and "ExecStart" in line]
    named = subprocess.run(["sh", "-c", line.partition(" > ")[0]], env={"PATH": os.environ["PATH"], "prefix": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert begins.format(tmp_path) in named.stdout


def test_completions_licences_and_the_book_are_installed(installed):
    share = installed / "share"
    assert "complete -F _tidegate" in (share / "bash-completion/completions/tidegate").read_text()
    assert (share / "zsh/site-functions/_tidegate").read_text().startswith("#compdef tidegate")
    assert "complete -c tidegate" in (share / "fish/vendor_completions.d/tidegate.fish").read_text()
    documents = share / "doc/tidegate"
    assert {"LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"} <= {path.name for path in documents.iterdir()}
    assert (documents / "docs/first-hour.md").is_file()
    assert (share / "man/man1/tidegate.1").is_file()


@pytest.mark.parametrize("prefix", ["/usr/local", "/opt/tidegate/0.2.0"])
def test_uninstall_leaves_nothing(tmp_path, prefix):
    other = tmp_path / prefix.lstrip("/") / "share/modulefiles/other"
    other.parent.mkdir(parents=True)
    other.touch()
    make_in(tmp_path, prefix, "install-files", "install-documents")
    make_in(tmp_path, prefix, "uninstall")
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == [other]
    assert [path.name for path in (tmp_path / prefix.lstrip("/")).iterdir()] == ["share"]


def test_a_prefix_with_spaces_is_one_folder_that_all_may_read(tmp_path):
    neighbour = tmp_path / "a" / "file"
    neighbour.parent.mkdir()
    neighbour.touch()
    prefix = tmp_path / "a b&c"
    before = os.umask(0o077)
    try:
        make_in("", str(prefix), "install-files", "install-documents")
    finally:
        os.umask(before)
    (file,) = (prefix / "share/modulefiles/tidegate").iterdir()
    assert f'set prefix "{prefix}"' in file.read_text()
    assert [path for path in prefix.rglob("*") if path.stat().st_mode & 0o044 != 0o044] == []
    empty = prefix / "share/other/empty"
    empty.mkdir(parents=True)
    make_in("", str(prefix), "uninstall")
    assert [path for path in prefix.rglob("*")] == [prefix / "share", empty.parent, empty] and neighbour.exists()
    empty.rmdir(), empty.parent.rmdir()
    make_in("", str(prefix), "install-files", "install-documents")
    make_in("", f"{prefix}/", "uninstall")
    assert not prefix.exists()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make_in("", "relative", "uninstall")
    assert "PREFIX has to begin with /" in refused.value.stderr


def test_install_says_how_to_use_it_in_a_line_that_carries():
    said = make("--dry-run", "install", "PREFIX=/opt/tidegate")
    assert "echo '  eval \"$(/opt/tidegate/bin/tidegate env)\"'" in said and "FI_PROVIDER_PATH" not in said
