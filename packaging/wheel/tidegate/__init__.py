"""Tidegate for Python: where its command is, and the environment that makes an MPI use it.

In a notebook, before anything starts MPI:

    import os, tidegate
    os.environ.update(tidegate.env(scheme="static", slots=16))
    from mpi4py import MPI
"""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from importlib import metadata
from pathlib import Path

__all__ = ["command", "env"]


def command() -> Path:
    """The command `tidegate` that was installed with this module, else the one in `PATH`."""
    try:
        files = metadata.files("tidegate") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(file.locate())
        # The list of a wheel names the module's own files, too.
        if file.name == "tidegate" and path.is_file():
            return path.resolve()
    found = shutil.which("tidegate")
    if found is None:
        raise FileNotFoundError("the command tidegate was not found: install the wheel anew (pip install --force-reinstall), or put the command into PATH")
    return Path(found)


def env(*launcher: str, **options: str | int | float) -> dict[str, str]:
    """The variables that make an MPI use Tidegate, as `tidegate env` has them.

    `launcher`: the command that starts the job, such as `"mpiexec"`, for the settings of its MPI alone; without one the settings for all
    MPIs, which do not disturb each other. `options`: those of `tidegate env`, such as `scheme="static"`, `slots=16`, `mpi="mpich"`.
    A wrong option is a ValueError with what the command says of it; what it warns of becomes a warning.
    """
    words = [str(command()), "env", "--json"]
    words += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    done = subprocess.run([*words, "--", *launcher], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    for line in done.stderr.splitlines():
        warnings.warn(line, stacklevel=2)
    return json.loads(done.stdout)["environment"]
