"""What try_packages.py runs on a fresh system: two ranks or more exchange short and long messages and check every byte."""

import sys

from mpi4py import MPI

LENGTHS = [0, 1, 56, 2048, 4096, 100_000, 3_000_000]
"""In bytes: through the mailbox in one packet, in several, and by rendezvous."""


def main() -> None:
    """Everybody sends to everybody."""
    world = MPI.COMM_WORLD
    me, ranks = world.rank, world.size
    for length in LENGTHS:
        data = {peer: bytes((me * 7 + peer + byte) % 251 for byte in range(min(length, 251))) * (length // 251 + 1) for peer in range(ranks)}
        sends = [world.isend(data[peer][:length], peer, tag=length) for peer in range(ranks) if peer != me]
        for peer in range(ranks):
            if peer == me:
                continue
            expected = bytes((peer * 7 + me + byte) % 251 for byte in range(min(length, 251))) * (length // 251 + 1)
            if world.recv(source=peer, tag=length) != expected[:length]:
                sys.exit(f"rank {me}: {length} bytes from rank {peer} are not those that were sent")
        MPI.Request.waitall(sends)
    if world.allreduce(1) != ranks:
        sys.exit("the sum over all ranks is wrong")
    if me == 0:
        print(f"{ranks} ranks have exchanged what was sent")


if __name__ == "__main__":
    main()
