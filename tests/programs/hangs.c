// Jobs that hang, and jobs that only look like it. Ranks that wait do so inside their MPI, in blocking calls.
//
// usage: hangs tag                  the last rank waits for a message with tag 77 from rank 0, which sends one with tag 78; all others
//                                   are in a barrier; it never ends
//        hangs ring                 each rank waits for its left neighbour; it never ends
//        hangs any                  each rank waits for a message of any rank; it never ends
//        hangs sends BYTES          each rank sends messages of so many bytes to its right neighbour, which receives none, until it waits
//                                   for room; it never ends
//        hangs computes SECONDS     rank 1 computes for so long, the others wait for it in a barrier; then the job ends
//        hangs sleeps SECONDS       the same, but rank 1 sleeps
//        hangs tests SECONDS        the same, but rank 1 has posted a receive from rank 0, and asks for it between pieces of its work of
//                                   some milliseconds: what is open looks as if both waited for each other
//        hangs helped SECONDS       the same, but rank 1 waits in its MPI for rank 0, while a second thread of it computes, and sends
//                                   then what rank 0 waits for
//        hangs pauses SECONDS TIMES   all ranks sleep for so long and meet in a barrier, again and again
//        hangs again SECONDS        ranks wait for rank 1, which sleeps for so long, twice

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORK_MS = 5 };

static int rank, ranks;
static double seconds;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void compute(double duration) {
    for (double end = now() + duration; now() < end;)
        ;
}

static void nap(double duration) { usleep((useconds_t)(duration * 1e6)); }

static void send_to(int other, int tag) { MPI_Send(&rank, 1, MPI_INT, other, tag, MPI_COMM_WORLD); }

static void receive_from(int other, int tag) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void tag(void) {
    if (rank == 0)
        send_to(ranks - 1, 78);
    if (rank == ranks - 1)
        receive_from(0, 77);
}

static void sends(int bytes) {
    for (char *message = calloc((size_t)bytes, 1);;)
        MPI_Send(message, bytes, MPI_BYTE, (rank + 1) % ranks, 5, MPI_COMM_WORLD);
}

static void tests(void) {
    if (rank == 0) {
        receive_from(1, 1);
        send_to(1, 2);
    }
    if (rank != 1)
        return;
    int word, is_done = 0;
    MPI_Request request;
    MPI_Irecv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
    for (double end = now() + seconds; now() < end;) {
        compute(WORK_MS * 1e-3);
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    }
    send_to(0, 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void *help(void *nothing) {
    compute(seconds);
    send_to(0, 1);
    return nothing;
}

static void helped(void) {
    pthread_t helper;
    if (rank == 0) {
        receive_from(1, 1);
        send_to(1, 2);
    }
    if (rank != 1)
        return;
    pthread_create(&helper, NULL, help, NULL);
    receive_from(0, 2);
    pthread_join(helper, NULL);
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, argc > 1 && strcmp(argv[1], "helped") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    const char *what = argc > 1 ? argv[1] : "";
    int times = argc > 3 ? atoi(argv[3]) : 1;
    seconds = argc > 2 ? atof(argv[2]) : 0;
    if (strcmp(what, "tag") == 0)
        tag();
    else if (strcmp(what, "ring") == 0)
        receive_from((rank + ranks - 1) % ranks, 5);
    else if (strcmp(what, "any") == 0)
        receive_from(MPI_ANY_SOURCE, 5);
    else if (strcmp(what, "sends") == 0)
        sends(atoi(argv[2]));
    else if (strcmp(what, "computes") == 0 && rank == 1)
        compute(seconds);
    else if (strcmp(what, "sleeps") == 0 && rank == 1)
        nap(seconds);
    else if (strcmp(what, "tests") == 0)
        tests();
    else if (strcmp(what, "helped") == 0)
        helped();
    else if (strcmp(what, "pauses") == 0)
        for (int time = 0; time < times; time++) {
            nap(seconds);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    else if (strcmp(what, "again") == 0)
        for (int time = 0; time < 2; time++) {
            if (rank == 1)
                nap(seconds);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
