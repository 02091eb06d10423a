// Two processes on two hosts, each with one endpoint of the provider `tidegate`, used through libfabric itself. They find each
// other by files in a folder that both see.
//
// usage: apart FOLDER NUMBER sleep SECONDS    0 sleeps on its completion queue until 1 sends, after so long; it prints how much
//                                             processor time it took meanwhile, and how late it woke
//        apart FOLDER NUMBER close SECONDS COUNT    0 sends messages to 1 and closes, while 1 computes for so long

#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ADDRESS = 64, MOST = 1000, LENGTH = 1000 };

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static fi_addr_t peer;
static const char *folder;
static int number;

#define OK(call)                                                                                            \
    do {                                                                                                    \
        long long result_ = (long long)(call);                                                              \
        if (result_ < 0) {                                                                                  \
            fprintf(stderr, "apart %d: line %d: %s: %s\n", number, __LINE__, #call, fi_strerror((int)-result_)); \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Leaves a file with these bytes, all at once.
static void leave(const char *name, int from, const void *bytes, size_t length) {
    char path[512], hidden[600];
    snprintf(path, sizeof path, "%s/%s-%d", folder, name, from);
    snprintf(hidden, sizeof hidden, "%s.new", path);
    FILE *file = fopen(hidden, "w");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0 || rename(hidden, path) != 0)
        exit(1);
}

// Waits for a file, while messages move.
static void find(const char *name, int from, void *bytes, size_t length) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s-%d", folder, name, from);
    struct stat found;
    while (stat(path, &found) != 0) {
        fi_cq_read(cq, NULL, 0);
        usleep(1000);
    }
    FILE *file = fopen(path, "r");
    if (!file || fread(bytes, 1, length, file) != length)
        exit(1);
    fclose(file);
}

static void open_endpoint(void) {
    struct fi_info *hints = fi_allocinfo(), *info;
    hints->fabric_attr->prov_name = strdup("tidegate");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED;
    OK(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
    OK(fi_fabric(info->fabric_attr, &fabric, NULL));
    OK(fi_domain(fabric, info, &domain, NULL));
    OK(fi_av_open(domain, &(struct fi_av_attr){.count = 2}, &av, NULL));
    OK(fi_cq_open(domain, &(struct fi_cq_attr){.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD}, &cq, NULL));
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_ep_bind(ep, &av->fid, 0));
    OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_enable(ep));
    char address[ADDRESS] = {0};
    size_t length = sizeof address;
    OK(fi_getname(&ep->fid, address, &length));
    leave("address", number, address, sizeof address);
    find("address", 1 - number, address, sizeof address);
    if (fi_av_insert(av, address, 1, &peer, 0, NULL) != 1)
        exit(1);
    fi_freeinfo(hints), fi_freeinfo(info);
}

static void close_endpoint(void) {
    OK(fi_close(&ep->fid));
    OK(fi_close(&cq->fid));
    OK(fi_close(&av->fid));
    OK(fi_close(&domain->fid));
    OK(fi_close(&fabric->fid));
}

static void complete(int count) {
    struct fi_cq_tagged_entry entry;
    while (count > 0) {
        ssize_t got = fi_cq_read(cq, &entry, 1);
        if (got != -FI_EAGAIN)
            OK(got);
        count -= got == 1;
    }
}

// A message to the peer and one from it.
static void greet(void) {
    static char out[8], in[8];
    OK(fi_trecv(ep, in, sizeof in, NULL, peer, 1, 0, NULL));
    while (fi_tsend(ep, out, sizeof out, NULL, peer, 1, NULL) == -FI_EAGAIN)
        fi_cq_read(cq, NULL, 0);
    complete(2);
}

static void sleeping(double wait) {
    double sent;
    greet();
    if (number == 1) {
        usleep((useconds_t)(wait * 1e6));
        sent = seconds(CLOCK_MONOTONIC);
        while (fi_tsend(ep, &sent, sizeof sent, NULL, peer, 2, NULL) == -FI_EAGAIN)
            fi_cq_read(cq, NULL, 0);
        complete(1);
        char done;
        find("woken", 0, &done, 1);
        return;
    }
    struct fi_cq_tagged_entry entry;
    OK(fi_trecv(ep, &sent, sizeof sent, NULL, peer, 2, 0, NULL));
    double used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    ssize_t got;
    while ((got = fi_cq_sread(cq, &entry, 1, NULL, -1)) == -FI_EAGAIN)
        ;
    OK(got);
    printf("apart: woke %.4f s late, took %.4f s of processor time\n", seconds(CLOCK_MONOTONIC) - sent, seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
    leave("woken", 0, "", 1);
}

static int closing(double wait, int messages) {
    static char bytes[MOST][LENGTH];
    greet();
    if (number == 0) {
        for (int i = 0; i < messages; i++) {
            memset(bytes[i], i, LENGTH);
            while (fi_tsend(ep, bytes[i], LENGTH, NULL, peer, 2, NULL) == -FI_EAGAIN)
                fi_cq_read(cq, NULL, 0);
        }
        double begun = seconds(CLOCK_MONOTONIC);
        close_endpoint();
        printf("apart: closed in %.2f s\n", seconds(CLOCK_MONOTONIC) - begun);
        return 0;
    }
    usleep((useconds_t)(wait * 1e6));
    for (int i = 0; i < messages; i++)
        OK(fi_trecv(ep, bytes[i], LENGTH, NULL, peer, 2, 0, NULL));
    struct fi_cq_tagged_entry entry;
    int count = 0;
    for (double end = seconds(CLOCK_MONOTONIC) + 5; count < messages && seconds(CLOCK_MONOTONIC) < end;) {
        ssize_t got = fi_cq_read(cq, &entry, 1);
        if (got < 0 && got != -FI_EAGAIN)
            break;
        count += got == 1;
    }
    for (int i = 0; i < count; i++)
        for (int at = 0; at < LENGTH; at++)
            if (bytes[i][at] != (char)i)
                exit(1);
    printf("apart: %d of %d messages arrived\n", count, messages);
    close_endpoint();
    return count == messages ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    folder = argv[1], number = atoi(argv[2]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_endpoint();
    if (argc == 6)
        return closing(atof(argv[4]), atoi(argv[5]));
    sleeping(atof(argv[4]));
    close_endpoint();
    return 0;
}
