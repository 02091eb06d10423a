"""A rank forks a child by `os.fork`, as libraries do, while messages for it wait in its mailbox; the child ends by `sys.exit`,
so that mpi4py's exit handler calls MPI_Finalize there. The rank then receives its messages, and the ranks finish."""

import os
import sys
import time

from mpi4py import MPI

MESSAGES, SECONDS_MOST = 200, 15
comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank
requests = [comm.isend(number, other, 1) for number in range(MESSAGES)] if rank == 1 else []
comm.barrier()
if rank == 0:
    # A thread of the provider that has had something to do is asleep by then.
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        sys.exit(0)
    end = time.monotonic() + SECONDS_MOST
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(child, 9)
            sys.exit("the child does not end")
        time.sleep(0.01)
    received = [comm.recv(source=other, tag=1) for _ in range(MESSAGES)]
    assert received == list(range(MESSAGES)), received
MPI.Request.waitall(requests)
comm.barrier()
print(f"rank {rank} has its messages", flush=True)
