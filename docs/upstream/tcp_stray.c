/* A header of 16 bytes that libfabric's tcp provider does not expect: what does it do to the process that gets it?
 *
 *     cc -O1 -g -Wall -o tcp_stray tcp_stray.c -lfabric
 *     ./tcp_stray ack | cts | data | read
 *
 * One process opens an endpoint of reliable datagrams (FI_EP_RDM) on 127.0.0.1 and reads its completion queue. Another
 * connects to its port with a plain socket, as a peer does, and sends one header that answers nothing:
 *
 *     ack    an acknowledgement, of a send that did not ask for one
 *     cts    a clear to send, for a request to send that was not made
 *     data   the data of a rendezvous that was not agreed on
 *     read   the response to a read that was not asked for
 *
 * It speaks to 127.0.0.1 only, and ends after 10 seconds at the latest. The last line says what became of the process. */
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
#include <unistd.h>

enum { LIMIT_SECONDS = 10 };

static void fail(const char *what, long code) {
    fprintf(stderr, "%s: %s\n", what, code < 0 ? fi_strerror((int)-code) : strerror(errno));
    exit(2);
}

static struct fi_info *offer(const char *provider) {
    struct fi_info *hints = fi_allocinfo(), *found = NULL;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = strdup(provider);
    int code = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &found);
    /* Until 1.17 only the layer "tcp;ofi_rxm" has reliable datagrams by tcp, with a protocol of its own. */
    while (!code && found && strcmp(found->fabric_attr->prov_name, provider))
        found = found->next;
    return code ? NULL : found;
}

/* Opens an endpoint, writes its name to `to` and reads its completion queue until the time is over. */
static void serve(int to) {
    alarm(LIMIT_SECONDS);
    struct fi_info *info = offer("tcp");
    /* In libfabric 1.16 and 1.17 the provider that is tcp today is called net. */
    if (!info && !(info = offer("net")))
        fail("no provider tcp with FI_EP_RDM", -FI_ENODATA);
    printf("libfabric %u.%u, provider %s\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()), info->fabric_attr->prov_name);
    fflush(stdout);
    long code;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = 8};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE, .size = 64};
    if ((code = fi_fabric(info->fabric_attr, &fabric, NULL)) || (code = fi_domain(fabric, info, &domain, NULL)) ||
        (code = fi_av_open(domain, &av_attr, &av, NULL)) || (code = fi_cq_open(domain, &cq_attr, &cq, NULL)) ||
        (code = fi_endpoint(domain, info, &ep, NULL)) || (code = fi_ep_bind(ep, &av->fid, 0)) ||
        (code = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV)) || (code = fi_enable(ep)))
        fail("opening the endpoint", code);
    struct sockaddr_in name;
    size_t bytes = sizeof name;
    if ((code = fi_getname(&ep->fid, &name, &bytes)) || write(to, &name, sizeof name) != sizeof name)
        fail("fi_getname", code);
    /* Libraries of other providers may have set handlers that turn a signal into an exit code. */
    signal(SIGSEGV, SIG_DFL);
    for (;;) {
        struct fi_cq_msg_entry entry;
        fi_cq_read(cq, &entry, 1);
        usleep(1000);
    }
}

/* prov/tcp/src/xnet_cm.c: a request to connect, and what reliable datagrams add to it (xnet_rdm_cm.c). */
struct request {
    uint8_t version, type;
    uint16_t more_bytes; /* network order */
    uint32_t number;
    uint64_t connection, message, byte_order;
    uint8_t rdm_version, features;
    uint16_t port; /* network order */
    uint32_t pid;  /* network order */
} __attribute__((packed));

/* prov/tcp/src/xnet_proto.h: struct xnet_base_hdr, and its numbers. */
struct header {
    uint8_t version, op;
    uint16_t flags;
    uint8_t op_data, rma_iov_cnt, hdr_size, id;
    uint64_t size;
};
static const struct { const char *word; uint8_t op, op_data; } STRAY[] = {
    {"ack", 0, 2}, {"cts", 6, 1}, {"data", 7, 1}, {"read", 3, 0}};

static void send_stray(const struct sockaddr_in *server, uint8_t op, uint8_t op_data) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0 || connect(s, (const struct sockaddr *)server, sizeof *server))
        fail("connect", 0);
    struct timeval wait = {.tv_sec = 3};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    struct request request = {.version = 3, .more_bytes = htons(8), .byte_order = 1, .rdm_version = 1,
                              .port = htons(1), .pid = htonl(4711)}, answer;
    if (send(s, &request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
        recv(s, &answer, sizeof answer, MSG_WAITALL) != sizeof answer || answer.type != 1)
        fail("the connection was refused", 0);
    struct header header = {.version = 3, .op = op, .op_data = op_data, .hdr_size = sizeof header, .size = sizeof header};
    if (send(s, &header, sizeof header, MSG_NOSIGNAL) != sizeof header)
        fail("send", 0);
    char byte;
    long got = recv(s, &byte, 1, 0);
    printf("the connection %s\n", got < 0 && errno == EAGAIN ? "stays open" : "was closed");
}

int main(int count, char **words) {
    int which = 0, to[2], status;
    while (which < 4 && strcmp(count > 1 ? words[1] : "", STRAY[which].word))
        which++;
    if (which == 4) {
        fprintf(stderr, "usage: %s ack | cts | data | read\n", words[0]);
        return 1;
    }
    if (pipe(to))
        fail("pipe", 0);
    alarm(LIMIT_SECONDS);
    pid_t server = fork();
    if (server == 0)
        serve(to[1]);
    close(to[1]);
    struct sockaddr_in name;
    if (read(to[0], &name, sizeof name) != sizeof name) {
        waitpid(server, &status, 0);
        return 2;
    }
    send_stray(&name, STRAY[which].op, STRAY[which].op_data);
    pid_t ended = 0;
    for (int tries = 0; tries < 10 && !ended; tries++) {
        usleep(100000);
        ended = waitpid(server, &status, WNOHANG);
    }
    if (ended && WIFSIGNALED(status)) {
        printf("the process was ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (ended) {
        printf("the process has ended with exit code %d\n", WEXITSTATUS(status));
    } else {
        printf("the process goes on\n");
        kill(server, SIGKILL);
        waitpid(server, &status, 0);
    }
    return 0;
}
