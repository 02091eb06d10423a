/* What a process that has no part in a job can do to endpoints of libfabric's tcp provider (FI_EP_RDM) over their port.
 *
 *     cc -O1 -g -Wall -o tcp_strangers tcp_strangers.c -lfabric
 *     ./tcp_strangers ack | truncate [MiB] | replace | hold
 *
 * Two processes open an endpoint each on 127.0.0.1 and exchange a short message every 20 ms: the server and its peer.
 * A third one, the stranger, uses plain sockets and knows the server's port; for `replace` also the peer's, as whoever
 * may read /proc/net/tcp does. It speaks to 127.0.0.1 only, and everything ends after 20 seconds at the latest.
 *
 *     ack       an acknowledgement of something that was never sent: 16 bytes
 *     truncate  one message of so many MiB (64), although the server's receive buffers have 4096 bytes
 *     replace   a connection in the peer's name: whose messages come now, and what does the stranger get?
 *     hold      messages of which only the beginning comes, one on each of as many connections as there are buffers
 *
 * The server and the peer say each second what they have received; the last line says what became of the server. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BUFFERS = 8, BUFFER_BYTES = 4096, LIMIT_SECONDS = 20, MESSAGE_BYTES = 32 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void fail(const char *what, long code) {
    fprintf(stderr, "%s: %s\n", what, code < 0 ? fi_strerror((int)-code) : strerror(errno));
    exit(2);
}

/* ---- an endpoint, by libfabric ---- */

struct endpoint {
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;
    char buffers[BUFFERS][BUFFER_BYTES];
    struct fi_context2 contexts[BUFFERS], sending;
};

static struct fi_info *offer(const char *provider) {
    struct fi_info *hints = fi_allocinfo(), *found = NULL;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    hints->fabric_attr->prov_name = strdup(provider);
    int code = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &found);
    fi_freeinfo(hints);
    /* Until 1.17 tcp has reliable datagrams only below a layer that has a protocol of its own: "tcp;ofi_rxm". */
    while (!code && found && strcmp(found->fabric_attr->prov_name, provider))
        found = found->next;
    return code ? NULL : found;
}

static void post(struct endpoint *e, int number) {
    long code = fi_recv(e->ep, e->buffers[number], BUFFER_BYTES, NULL, FI_ADDR_UNSPEC, &e->contexts[number]);
    if (code)
        fail("fi_recv", code);
}

static void open_endpoint(struct endpoint *e, struct sockaddr_in *name) {
    /* In libfabric 1.16 and 1.17 the provider that is tcp today is called net. */
    struct fi_info *info = offer("tcp");
    if (!info)
        info = offer("net");
    if (!info)
        fail("fi_getinfo", -FI_ENODATA);
    printf("libfabric %u.%u, provider %s\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()), info->fabric_attr->prov_name);
    fflush(stdout);
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = 8};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE, .size = 64};
    long code;
    if ((code = fi_fabric(info->fabric_attr, &fabric, NULL)) || (code = fi_domain(fabric, info, &domain, NULL)) ||
        (code = fi_av_open(domain, &av, &e->av, NULL)) || (code = fi_cq_open(domain, &cq, &e->cq, NULL)) ||
        (code = fi_endpoint(domain, info, &e->ep, NULL)) || (code = fi_ep_bind(e->ep, &e->av->fid, 0)) ||
        (code = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV)) || (code = fi_enable(e->ep)))
        fail("opening the endpoint", code);
    size_t bytes = sizeof *name;
    if ((code = fi_getname(&e->ep->fid, name, &bytes)))
        fail("fi_getname", code);
    for (int number = 0; number < BUFFERS; number++)
        post(e, number);
}

/* Sends a message every 20 ms and counts what comes, until the time is over; says so every second. */
static void exchange(const char *name, int to_parent, int from_parent, const char *text) {
    struct endpoint e;
    struct sockaddr_in mine, theirs;
    alarm(LIMIT_SECONDS);
    open_endpoint(&e, &mine);
    /* Libraries of other providers may have set handlers that turn a signal into an exit code. */
    signal(SIGSEGV, SIG_DFL);
    if (write(to_parent, &mine, sizeof mine) != sizeof mine || read(from_parent, &theirs, sizeof theirs) != sizeof theirs)
        fail("names", 0);
    fi_addr_t peer;
    if (fi_av_insert(e.av, &theirs, 1, &peer, 0, NULL) != 1)
        fail("fi_av_insert", -FI_EINVAL);
    char message[MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", text);
    double next_send = now(), next_word = now() + 1, end = now() + LIMIT_SECONDS;
    long received = 0, errors = 0, last = 0, is_sending = 0;
    while (now() < end) {
        struct fi_cq_msg_entry entry;
        long got = fi_cq_read(e.cq, &entry, 1);
        void *context = NULL;
        if (got == 1) {
            context = entry.op_context;
        } else if (got == -FI_EAVAIL) {
            struct fi_cq_err_entry error = {0};
            fi_cq_readerr(e.cq, &error, 0);
            context = error.op_context;
            if (context != &e.sending) {
                printf("%s: a receive ended with: %s\n", name, fi_strerror(error.err));
                fflush(stdout);
            }
            errors++;
        }
        if (context == &e.sending) {
            is_sending = 0;
        } else if (context) {
            received += got == 1;
            post(&e, (int)((struct fi_context2 *)context - e.contexts));
        }
        if (now() > next_send && !is_sending) {
            is_sending = fi_send(e.ep, message, sizeof message, NULL, peer, &e.sending) == 0;
            if (is_sending)
                next_send = now() + .02;
        }
        if (now() > next_word) {
            printf("%s: received %ld in the last second, errors %ld\n", name, received - last, errors);
            fflush(stdout);
            next_word += 1, last = received;
        }
    }
    exit(0); /* not reached: the parent ends this process before */
}

/* ---- the stranger, by plain sockets ---- */

/* prov/tcp/src/xnet_cm.c: a request to connect, and what reliable datagrams add to it (xnet_rdm_cm.c). */
struct request {
    uint8_t version, type;
    uint16_t more_bytes; /* network order */
    uint32_t number;
    uint64_t connection, message, byte_order;
    uint8_t rdm_version, features;
    uint16_t port; /* network order: where the sender of the request listens, as it says */
    uint32_t pid;  /* network order */
} __attribute__((packed));

/* prov/tcp/src/xnet_proto.h: struct xnet_base_hdr */
struct header {
    uint8_t version, op;
    uint16_t flags;
    uint8_t op_data, rma_iov_cnt, hdr_size, id;
    uint64_t size;
};
enum { OP_MSG = 0, OP_DATA_ACK = 2 };

static int try_connect(struct sockaddr_in *server, uint16_t claimed_port, uint32_t pid) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0 || connect(s, (struct sockaddr *)server, sizeof *server))
        fail("connect", 0);
    struct request request = {.version = 3, .more_bytes = htons(8), .byte_order = 1, .rdm_version = 1,
                              .port = htons(claimed_port), .pid = htonl(pid)};
    struct timeval wait = {.tv_sec = 3};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (send(s, &request, sizeof request, MSG_NOSIGNAL) != sizeof request)
        fail("send", 0);
    struct request answer;
    long got = recv(s, &answer, sizeof answer, MSG_WAITALL);
    printf("stranger: %s\n", got == sizeof answer && answer.type == 1 ? "was accepted" : "was refused");
    fflush(stdout);
    return s;
}

static long resident_kib(int pid) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    long found = 0;
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &found);
    if (file)
        fclose(file);
    return found;
}

static void stranger(const char *mode, long mib, int server_pid, struct sockaddr_in *server, struct sockaddr_in *peer) {
    struct header header = {.version = 3, .op = OP_MSG, .hdr_size = sizeof header, .size = sizeof header};
    if (!strcmp(mode, "ack")) {
        int s = try_connect(server, 1, 4711);
        header.op_data = OP_DATA_ACK;
        send(s, &header, sizeof header, MSG_NOSIGNAL);
        sleep(1);
    } else if (!strcmp(mode, "truncate")) {
        int s = try_connect(server, 1, 4711);
        long before = resident_kib(server_pid);
        header.size += (uint64_t)mib << 20;
        send(s, &header, sizeof header, MSG_NOSIGNAL);
        static char block[1 << 20];
        memset(block, 1, sizeof block);
        for (long sent = 1; sent < mib; sent++)
            if (send(s, block, sizeof block, MSG_NOSIGNAL) != sizeof block)
                break;
        sleep(1);
        printf("stranger: the server has taken %ld MiB more\n", (resident_kib(server_pid) - before) >> 10);
    } else if (!strcmp(mode, "replace")) {
        /* The peer connects again as soon as it wants to send, and may come first. */
        char bytes[sizeof header + MESSAGE_BYTES];
        ssize_t got = 0;
        for (int tries = 0; tries < 10 && got != sizeof bytes; tries++)
            got = recv(try_connect(server, ntohs(peer->sin_port), 4711), bytes, sizeof bytes, MSG_WAITALL);
        if (got == sizeof bytes)
            printf("stranger: got what was for the peer: \"%s\"\n", bytes + sizeof header);
        sleep(1);
    } else {
        for (int number = 0; number < BUFFERS; number++) {
            int s = try_connect(server, (uint16_t)(1 + number), 4711);
            header.size = sizeof header + 1000;
            send(s, &header, sizeof header, MSG_NOSIGNAL);
            send(s, "x", 1, MSG_NOSIGNAL);
        }
        sleep(3);
    }
    fflush(stdout);
}

int main(int count, char **words) {
    static const char *modes[] = {"ack", "truncate", "replace", "hold"};
    const char *mode = count > 1 ? words[1] : "";
    int is_known = 0;
    for (int n = 0; n < 4; n++)
        is_known |= !strcmp(mode, modes[n]);
    if (!is_known) {
        fprintf(stderr, "usage: %s ack | truncate [MiB] | replace | hold\n", words[0]);
        return 1;
    }
    long mib = count > 2 ? atol(words[2]) : 64;
    int up[2][2], down[2][2], pids[2];
    struct sockaddr_in names[2];
    for (int n = 0; n < 2; n++) {
        if (pipe(up[n]) || pipe(down[n]) || (pids[n] = fork()) < 0)
            fail("fork", 0);
        if (pids[n] == 0)
            exchange(n ? "peer" : "server", up[n][1], down[n][0], n ? "from the peer" : "a secret for the peer");
    }
    alarm(LIMIT_SECONDS);
    for (int n = 0; n < 2; n++)
        if (read(up[n][0], &names[n], sizeof names[n]) != sizeof names[n])
            fail("no endpoint", 0);
    for (int n = 0; n < 2; n++)
        if (write(down[n][1], &names[!n], sizeof names[n]) != sizeof names[n])
            fail("names", 0);
    usleep(1500000);
    stranger(mode, mib, pids[0], &names[0], &names[1]);
    int status;
    pid_t ended = waitpid(pids[0], &status, WNOHANG);
    if (ended == pids[0] && WIFSIGNALED(status))
        printf("the server was ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (ended == pids[0])
        printf("the server has ended\n");
    else
        printf("the server goes on\n");
    for (int n = 0; n < 2; n++) {
        kill(pids[n], SIGKILL);
        waitpid(pids[n], &status, 0);
    }
    return 0;
}
