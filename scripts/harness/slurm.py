"""Slurm on hosts made of namespaces (`hosts`): a controller on the first, a daemon on each. It needs no account, no database and
no munge: whoever runs it is root, and its files are in one folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from .hosts import Hosts

READY_SECONDS = 15.0


def why_not() -> str | None:
    """Why there is no Slurm here; `None` if there is."""
    missing = [tool for tool in ("slurmctld", "slurmd", "srun", "sinfo") if not shutil.which(tool)]
    return f"{', '.join(missing)} missing (Debian: slurm-wlm)" if missing else None


class Slurm:
    """So long as a `with` lasts."""

    def __init__(self, hosts: Hosts, cpus: int) -> None:
        self.hosts, self.cpus = hosts, cpus
        self.folder = hosts.folder / "slurm"
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self._daemons: list[subprocess.Popen] = []

    def __enter__(self) -> Slurm:
        for name in ("state", *self.hosts.names):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "cgroup.conf").touch()
        (self.folder / "slurm.conf").write_text(self._configuration())
        self._daemon(0, "slurmctld", "-D")
        for host, name in enumerate(self.hosts.names):
            self._daemon(host, "slurmd", "-D", "-N", name)
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self._daemons:
            daemon.terminate()
        for daemon in self._daemons:
            daemon.wait()

    def _configuration(self) -> str:
        folder, hosts = self.folder, self.hosts
        nodes = "".join(f"NodeName={name} NodeAddr={address} CPUs={self.cpus}\n" for name, address in zip(hosts.names, hosts.addresses, strict=True))
        return f"""ClusterName=tidegate
SlurmctldHost={hosts.names[0]}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=pmi2
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
{nodes}PartitionName=all Nodes={",".join(hosts.names)} Default=YES MaxTime=INFINITE State=UP
"""

    def _daemon(self, host: int, *command: str) -> None:
        with (self.folder / f"{command[0]}-{host}.out").open("wb") as output:
            words = self.hosts.on(host, list(command))
            self._daemons.append(subprocess.Popen(words, env=os.environ | self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output))

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            listed = subprocess.run(self.hosts.on(0, ["sinfo", "-h", "-t", "idle", "-o", "%D"]), env=os.environ | self.environment, capture_output=True, text=True)
            if listed.stdout.strip() == str(len(self.hosts.names)):
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"Slurm's hosts are not ready: {listed.stdout}{listed.stderr}\n{self.log()}")
            time.sleep(0.1)

    def log(self) -> str:
        """What the daemons have said."""
        return "\n".join(f"{path.name}: {path.read_text()[-1000:]}" for path in sorted(self.folder.glob("*.log")))

    def command(self, ranks_per_host: int, program: list[str | Path]) -> list[str | Path]:
        """The command line of a job with so many ranks on each host."""
        hosts = len(self.hosts.names)
        return self.hosts.on(0, ["srun", "--mpi=pmi2", "-N", str(hosts), "-n", str(ranks_per_host * hosts), *program])
