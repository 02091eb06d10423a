/* How many tagged messages may come unexpectedly before libfabric's tcp provider stops a connection?
 *
 *     cc -O1 -g -Wall -o tcp_saved tcp_saved.c -lfabric
 *     ./tcp_saved [MESSAGES [SECONDS]]
 *
 * One process posts a receive for tag 2 and no other. Its peer sends so many messages (65) of tag 1, of 8 bytes each, and
 * then one of tag 2. Once that has come, or so many seconds (3) have passed, the receives for tag 1 are posted: do all
 * messages come now? Both processes read their completion queues all the time. It uses 127.0.0.1 only and ends after 60
 * seconds at the latest. */
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 1, LAST = 2, BYTES = 8, MOST = 200, LIMIT_SECONDS = 60 };

static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fi_context2 contexts[MOST + 1];
static char buffer[BYTES];

static void fail(const char *what, long code) {
    fprintf(stderr, "%s: %s\n", what, code < 0 ? fi_strerror((int)-code) : strerror(errno));
    exit(2);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct fi_info *offer(const char *provider) {
    struct fi_info *hints = fi_allocinfo(), *found = NULL;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = strdup(provider);
    int code = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &found);
    while (!code && found && strcmp(found->fabric_attr->prov_name, provider))
        found = found->next;
    return code ? NULL : found;
}

static void open_endpoint(struct sockaddr_in *name) {
    /* In libfabric 1.16 and 1.17 the provider that is tcp today is called net. */
    struct fi_info *info = offer("tcp");
    if (!info && !(info = offer("net")))
        fail("no provider tcp with FI_EP_RDM", -FI_ENODATA);
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = 8};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE, .size = 4096};
    long code;
    if ((code = fi_fabric(info->fabric_attr, &fabric, NULL)) || (code = fi_domain(fabric, info, &domain, NULL)) ||
        (code = fi_av_open(domain, &av_attr, &av, NULL)) || (code = fi_cq_open(domain, &cq_attr, &cq, NULL)) ||
        (code = fi_endpoint(domain, info, &ep, NULL)) || (code = fi_ep_bind(ep, &av->fid, 0)) ||
        (code = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV)) || (code = fi_enable(ep)))
        fail("opening the endpoint", code);
    size_t bytes = sizeof *name;
    if ((code = fi_getname(&ep->fid, name, &bytes)))
        fail("fi_getname", code);
    printf("libfabric %u.%u, provider %s, resource management %s\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()), info->fabric_attr->prov_name,
           info->domain_attr->resource_mgmt == FI_RM_ENABLED ? "enabled" : "not enabled");
    fflush(stdout);
}

/* Counts the completions that are there. */
static int progress(void) {
    struct fi_cq_tagged_entry entry;
    long got = fi_cq_read(cq, &entry, 1);
    if (got == -FI_EAVAIL)
        fail("a transfer failed", -FI_EOTHER);
    return got == 1;
}

static void send_all(int messages, fi_addr_t to) {
    for (int n = 0; n <= messages; n++)
        while (fi_tsend(ep, buffer, BYTES, NULL, to, n < messages ? FIRST : LAST, &contexts[n]) == -FI_EAGAIN)
            progress();
    for (;;) /* the parent ends this process */
        progress();
}

static void post(uint64_t tag, struct fi_context2 *context) {
    long code;
    while ((code = fi_trecv(ep, buffer, BYTES, NULL, FI_ADDR_UNSPEC, tag, 0, context)) == -FI_EAGAIN)
        progress();
    if (code)
        fail("fi_trecv", code);
}

static void receive_all(int messages, double seconds) {
    int came = 0;
    post(LAST, &contexts[messages]);
    for (double start = now(); !came && now() - start < seconds;)
        came = progress();
    printf("%d messages of tag 1 before it: the message of tag 2 %s\n", messages, came ? "has come" : "has not come");
    fflush(stdout);
    for (int n = 0; n < messages; n++)
        post(FIRST, &contexts[n]);
    for (double start = now(); came <= messages && now() - start < LIMIT_SECONDS / 2;)
        came += progress();
    printf("with receives for tag 1, %d of %d messages have come\n", came, messages + 1);
}

int main(int count, char **words) {
    int messages = count > 1 ? atoi(words[1]) : 65, up[2], down[2];
    double seconds = count > 2 ? atof(words[2]) : 3;
    if (messages < 0 || messages > MOST) {
        fprintf(stderr, "usage: %s [MESSAGES (0 to %d) [SECONDS]]\n", words[0], MOST);
        return 1;
    }
    struct sockaddr_in mine, theirs;
    if (pipe(up) || pipe(down))
        fail("pipe", 0);
    pid_t sender = fork();
    alarm(LIMIT_SECONDS);
    if (sender == 0) {
        /* It says nothing: the receiver has said which libfabric this is. */
        if (!freopen("/dev/null", "w", stdout))
            fail("/dev/null", 0);
        open_endpoint(&mine);
        fi_addr_t to;
        if (read(down[0], &theirs, sizeof theirs) != sizeof theirs || fi_av_insert(av, &theirs, 1, &to, 0, NULL) != 1 ||
            write(up[1], &mine, sizeof mine) != sizeof mine)
            fail("the name of the receiver", 0);
        send_all(messages, to);
    }
    open_endpoint(&mine);
    fi_addr_t from;
    if (write(down[1], &mine, sizeof mine) != sizeof mine || read(up[0], &theirs, sizeof theirs) != sizeof theirs ||
        fi_av_insert(av, &theirs, 1, &from, 0, NULL) != 1)
        fail("the name of the sender", 0);
    receive_all(messages, seconds);
    kill(sender, SIGKILL);
    waitpid(sender, NULL, 0);
    return 0;
}
