"""Hosts made of namespaces: each has a network, a `/dev/shm` and a host name of its own, and they are joined by a switch.
Boot id and process ids are the machine's, so whoever runs a job here sees all its processes.

Needs root. Everything that is made belongs to one process per host, and goes with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from . import process
from .mpi import IntelMpi, Mpi, Mpich
from .paths import PROVIDER

SUBNET = "10.77.0"
SHARED_MEMORY = "1g"
READY_SECONDS = 10.0


def why_not() -> str | None:
    """Why no hosts can be made here; `None` if they can."""
    if os.geteuid() != 0:
        return "hosts are made of network namespaces, which needs root: sudo make system PYTEST_OPTIONS='tests/hosts'"
    missing = [tool for tool in ("ip", "unshare", "nsenter") if not shutil.which(tool)]
    if missing:
        return f"{', '.join(missing)} missing (Debian: iproute2, util-linux)"
    tried = subprocess.run(["unshare", "-n", "-u", "-m", "true"], capture_output=True)
    return None if tried.returncode == 0 else "this system lets nobody make namespaces (unshare failed)"


def _shell(script: str) -> None:
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{script}\n{done.stderr}")


class Hosts:
    """So many hosts, until the end of a `with`."""

    def __init__(self, count: int) -> None:
        self.addresses = [f"{SUBNET}.{number}" for number in range(1, count + 1)]
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self._keepers: list[subprocess.Popen] = []

    def __enter__(self) -> Hosts:
        self.folder = Path(tempfile.mkdtemp(prefix="tidegate-hosts-"))
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for keeper in self._keepers:
            keeper.kill()
            keeper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _keeper(self, name: str) -> int:
        """A process that keeps namespaces; returns its id when it has them."""
        ready = self.folder / f"{name}.ready"
        script = f"""
            mount -t tmpfs -o size={SHARED_MEMORY} none /dev/shm
            mount --bind {self.folder}/hosts /etc/hosts
            hostname {name}
            ip link set lo up
            touch {ready}
            exec sleep infinity"""
        keeper = subprocess.Popen(["unshare", "-n", "-u", "-m", "sh", "-ec", script], stdin=subprocess.DEVNULL)
        self._keepers.append(keeper)
        deadline = time.monotonic() + READY_SECONDS
        while not ready.exists():
            if keeper.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no namespaces for {name}")
            time.sleep(0.01)
        return keeper.pid

    def _make(self) -> None:
        table = zip(self.addresses, self.names, strict=True)
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for address, name in table))
        switch = self._keeper("switch")
        _shell(f"nsenter -t {switch} -n sh -ec 'ip link add br0 type bridge; ip link set br0 up'")
        self.pids = [self._keeper(name) for name in self.names]
        for name, address, pid in zip(self.names, self.addresses, self.pids, strict=True):
            _shell(f"""
                nsenter -t {switch} -n ip link add {name} type veth peer name eth0 netns {pid}
                nsenter -t {switch} -n sh -ec 'ip link set {name} master br0; ip link set {name} up'
                nsenter -t {pid} -n sh -ec 'ip addr add {address}/24 dev eth0; ip link set eth0 up'""")
            for known in (name, address):
                (self.folder / f"{known}.pid").write_text(str(pid))
        self.switch = switch
        self.rsh = self.folder / "rsh"
        self.rsh.write_text(f"""#!/bin/sh
            while [ "${{1#-}}" != "$1" ]; do shift; done
            host=${{1#*@}}; shift
            exec nsenter -t $(cat {self.folder}/$host.pid) -n -u -m -w"$PWD" sh -c "$*"\n""")
        self.rsh.chmod(0o755)

    def on(self, host: int, command: list[str | Path], cwd: Path | None = None) -> list[str | Path]:
        """The command as one that runs on a host, in this folder."""
        return ["nsenter", "-t", str(self.pids[host]), "-n", "-u", "-m", f"-w{cwd or os.getcwd()}", *command]

    def shell(self, host: int, script: str) -> None:
        """Runs a script on a host, in its network."""
        _shell(f"nsenter -t {self.pids[host]} -n sh -ec '{script}'")

    def segments(self) -> list[str]:
        """What lies in the shared memory of all hosts, by host and name."""
        left = []
        for name, pid in zip(self.names, self.pids, strict=True):
            left += [f"{name}:{entry}" for entry in sorted(os.listdir(f"/proc/{pid}/root/dev/shm")) if entry.startswith("tidegate-")]
        return left

    def command(self, mpi: Mpi, ranks_per_host: int, program: list[str | Path], *options: str, before: Sequence[str | Path] = (),
                cwd: Path | None = None) -> list[str | Path]:
        """The command line of a job with so many ranks on each host, started on the first, in a folder; `options` are its
        launcher's, and `before` comes before that."""
        hosts, ranks = self.addresses, ranks_per_host * len(self.addresses)
        if isinstance(mpi, IntelMpi):
            words = ["-bootstrap", "rsh", "-bootstrap-exec", self.rsh, "-hosts", ",".join(self.names), "-ppn", str(ranks_per_host)]
        elif isinstance(mpi, Mpich):
            placed = ",".join(f"{host}:{ranks_per_host}" for host in hosts)
            words = ["-launcher", "rsh", "-launcher-exec", self.rsh, "-localhost", hosts[0], "-hosts", placed]
        else:
            # With `--oversubscribe` alone all ranks go to the first host, however many slots it has.
            words = ["--oversubscribe", "--map-by", f"ppr:{ranks_per_host}:node", "--host", ",".join(f"{name}:{ranks_per_host}" for name in self.names)]
        return self.on(0, [*before, mpi.launcher, *words, *options, "-n", str(ranks), *program], cwd)

    def environment(self, mpi: Mpi) -> dict[str, str]:
        """What the launcher needs in its environment beside what it needs on one host."""
        return self._providers(mpi) | {
            # Open MPI 5, and 4.1.
            "PRTE_MCA_plm_ssh_agent": str(self.rsh),
            "OMPI_MCA_plm_rsh_agent": str(self.rsh),
            "OMPI_MCA_oob_tcp_if_include": f"{SUBNET}.0/24",
            "PRTE_MCA_prte_if_include": f"{SUBNET}.0/24",
            "OMPI_MCA_btl_tcp_if_include": f"{SUBNET}.0/24",
        }

    def _providers(self, mpi: Mpi) -> dict[str, str]:
        """Intel MPI's libfabric looks for providers in the first folder of FI_PROVIDER_PATH only: one folder has to have
        Tidegate and the provider below."""
        if not mpi.own_providers:
            return {}
        folder = self.folder / "providers"
        folder.mkdir(exist_ok=True)
        for library in (PROVIDER, *mpi.own_providers.glob("*-fi.so")):
            if not (folder / library.name).exists():
                (folder / library.name).symlink_to(library)
        return {"FI_PROVIDER_PATH": str(folder)}

    def has(self, host: int, pid: int) -> bool:
        """Whether a process is on this host."""
        try:
            return os.readlink(f"/proc/{pid}/ns/net") == os.readlink(f"/proc/{self.pids[host]}/ns/net")
        except OSError:
            return False

    def end(self, pid: int) -> None:
        """Kills a process, as kill -9 does."""
        os.kill(pid, signal.SIGKILL)


def run(hosts: Hosts, mpi: Mpi, ranks_per_host: int, program: list[str | Path], environment: dict[str, str], *options: str,
        cwd: Path | None = None, **settings) -> process.Result:
    """Runs a job to its end, with such options of its launcher, in a folder. What it leaves in shared memory on any host counts
    as left behind."""
    command = hosts.command(mpi, ranks_per_host, program, *options, cwd=cwd)
    result = process.run(command, environment | hosts.environment(mpi), **settings)
    if result.status == 0:
        result.leftovers += hosts.segments()
    return result


class Breaker:
    """Ends the ranks' connections between hosts every 0.3 s, as a reset does; not those of the launcher."""

    def __init__(self, hosts: Hosts, program: Path) -> None:
        self.hosts, self.program, self.next, self.count = hosts, program.name, 0.0, 0

    def __call__(self, processes: set[int]) -> None:
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + 0.3
        listed = subprocess.run(self.hosts.on(1, ["ss", "-tnpH", "state", "established"]), capture_output=True, text=True)
        for line in listed.stdout.splitlines():
            if f'"{self.program}"' in line and "hydra" not in line:
                ours, theirs = line.split()[2:4]
                ended = subprocess.run(self.hosts.on(1, ["ss", "-KH", "src", ours, "dst", theirs]), capture_output=True, text=True)
                self.count += bool(ended.stdout.strip())
