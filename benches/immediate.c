// A libfabric provider that answers at once: a send is complete as soon as it is called, and a receive as soon as the
// queue is read, from the peer and with the tag that it names. Nothing is moved but what two ranks agree on when they
// begin. What a message takes over it is what the MPI itself takes above `fi_tsend(3)` and `fi_cq_read(3)`, which no
// provider can save: the floor under every row of `bench.py`. `floor.py` builds it and says what an MPI takes.
//
// It offers tagged and untagged messages of any length with directed receives and remote data, reliable, one queue for
// both directions, and takes every address for a good one: enough for MPICH, Open MPI and Intel MPI to begin, and for a
// program that looks at no byte it receives.

#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_atomic.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS_BYTES = 8, QUEUE = 1 << 16 };

#define CAPS                                                                                                           \
    (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |                \
     FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define ORDER (FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_RAS | FI_ORDER_WAS)

struct queue {
    struct fid_cq cq;
    size_t entry_bytes;
    unsigned first, next;
    struct fi_cq_tagged_entry entries[QUEUE];
    fi_addr_t sources[QUEUE];
};

struct endpoint {
    struct fid_ep ep;
    struct queue *sends, *receives;
    bool is_selective;
};

// ---- what two ranks agree on when they begin: each receives the last eight bytes that it has sent itself

static char last[8];

static void note(const void *bytes, size_t length) {
    if (length == sizeof last)
        memcpy(last, bytes, sizeof last);
}

// ---- completions

static void complete(struct queue *queue, void *context, uint64_t flags, size_t length, void *buffer, uint64_t data, uint64_t tag,
                     fi_addr_t source) {
    if (!queue || queue->next - queue->first == QUEUE)
        return;
    struct fi_cq_tagged_entry *entry = &queue->entries[queue->next % QUEUE];
    *entry = (struct fi_cq_tagged_entry){context, flags, length, buffer, data, tag};
    queue->sources[queue->next++ % QUEUE] = source;
}

static ssize_t read_from(struct fid_cq *cq, void *buffer, size_t count, fi_addr_t *sources) {
    struct queue *queue = (struct queue *)cq;
    if (queue->first == queue->next)
        return -FI_EAGAIN;
    size_t read = 0;
    for (; read < count && queue->first != queue->next; read++, queue->first++) {
        memcpy((char *)buffer + read * queue->entry_bytes, &queue->entries[queue->first % QUEUE], queue->entry_bytes);
        struct fi_cq_tagged_entry *entry = &queue->entries[queue->first % QUEUE];
        if (entry->flags & FI_RECV && entry->len == sizeof last)
            memcpy(entry->buf, last, sizeof last);
        if (sources)
            sources[read] = queue->sources[queue->first % QUEUE];
    }
    return (ssize_t)read;
}

static ssize_t cq_read(struct fid_cq *cq, void *buffer, size_t count) { return read_from(cq, buffer, count, NULL); }
static ssize_t cq_readfrom(struct fid_cq *cq, void *buffer, size_t count, fi_addr_t *sources) {
    return read_from(cq, buffer, count, sources);
}
static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags) { return -FI_EAGAIN; }
static ssize_t cq_sread(struct fid_cq *cq, void *buffer, size_t count, const void *cond, int timeout) { return cq_read(cq, buffer, count); }
static ssize_t cq_sreadfrom(struct fid_cq *cq, void *buffer, size_t count, fi_addr_t *sources, const void *cond, int timeout) {
    return cq_readfrom(cq, buffer, count, sources);
}
static int cq_signal(struct fid_cq *cq) { return 0; }
static const char *cq_strerror(struct fid_cq *cq, int error, const void *data, char *text, size_t length) { return "no error"; }

// ---- sends

static ssize_t sent(struct fid_ep *ep, void *context, uint64_t kind) {
    complete(((struct endpoint *)ep)->sends, context, FI_SEND | kind, 0, NULL, 0, 0, FI_ADDR_NOTAVAIL);
    return 0;
}
static ssize_t tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag, void *context) {
    note(buf, len);
    return sent(ep, context, FI_TAGGED);
}
static ssize_t tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, uint64_t tag, void *context) {
    return sent(ep, context, FI_TAGGED);
}
// MPIs that ask for completions of some sends name them by a flag of this call, and otherwise of all calls of a kind.
static ssize_t sent_with(struct fid_ep *ep, void *context, uint64_t kind, uint64_t flags) {
    return ((struct endpoint *)ep)->is_selective && !(flags & FI_COMPLETION) ? 0 : sent(ep, context, kind);
}
static ssize_t tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) {
    return sent_with(ep, msg->context, FI_TAGGED, flags);
}
static ssize_t tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, uint64_t tag,
                         void *context) {
    note(buf, len);
    return sent(ep, context, FI_TAGGED);
}
static ssize_t tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag) {
    note(buf, len);
    return 0;
}
static ssize_t tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag) {
    note(buf, len);
    return 0;
}
static ssize_t send_(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, void *context) { return sent(ep, context, FI_MSG); }
static ssize_t sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, void *context) {
    return sent(ep, context, FI_MSG);
}
static ssize_t sendmsg_(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) { return sent_with(ep, msg->context, FI_MSG, flags); }
static ssize_t inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to) { return 0; }
static ssize_t senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context) {
    return sent(ep, context, FI_MSG);
}
static ssize_t injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to) { return 0; }

// ---- receives. MPICH and Intel MPI have the source's rank in the remote data, which is its address where ranks are few.
// A receive from any source stays open: MPICH keeps some for what peers may ask of it.

static ssize_t trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context) {
    if (from != FI_ADDR_UNSPEC)
        complete(((struct endpoint *)ep)->receives, context, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA, len, buf, from, tag, from);
    return 0;
}
static ssize_t trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, uint64_t tag, uint64_t ignore,
                      void *context) {
    return trecv(ep, iov->iov_base, iov->iov_len, NULL, from, tag, ignore, context);
}
static ssize_t trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) {
    if (flags & FI_PEEK)
        return -FI_ENOMSG;
    size_t length = msg->iov_count ? msg->msg_iov->iov_len : 0;
    return trecv(ep, msg->iov_count ? msg->msg_iov->iov_base : NULL, length, NULL, msg->addr, msg->tag, msg->ignore, msg->context);
}
// Receives of untagged messages, which MPIs post for what nobody may send, stay open.
static ssize_t recv_(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, void *context) { return 0; }
static ssize_t recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context) { return 0; }
static ssize_t recvmsg_(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) { return 0; }

static struct fi_ops_tagged tagged_ops = {sizeof(struct fi_ops_tagged), trecv,   trecvv,    trecvmsg, tsend, tsendv,
                                          tsendmsg,                     tinject, tsenddata, tinjectdata};
static struct fi_ops_msg message_ops = {sizeof(struct fi_ops_msg), recv_,    recvv,  recvmsg_,   send_,
                                        sendv,                     sendmsg_, inject, senddata, injectdata};

// ---- atomics: only the questions that are asked at the start

static int atomic_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) { return -FI_EOPNOTSUPP; }
static struct fi_ops_atomic atomic_ops = {.size = sizeof(struct fi_ops_atomic), .writevalid = atomic_valid, .readwritevalid = atomic_valid,
                                          .compwritevalid = atomic_valid};
static int query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags) {
    return -FI_EOPNOTSUPP;
}

static struct fi_ops_rma remote_ops = {.size = sizeof(struct fi_ops_rma)};

// ---- objects

static int close_(struct fid *fid) {
    free(fid);
    return 0;
}
static int control(struct fid *fid, int command, void *arg) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }
static int bind_nothing(struct fid *fid, struct fid *other, uint64_t flags) { return 0; }
static int ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context) { return -FI_ENOSYS; }
static struct fi_ops plain_ops = {sizeof(struct fi_ops), close_, bind_nothing, control, ops_open};

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    if (other->fclass == FI_CLASS_CQ && flags & FI_TRANSMIT)
        endpoint->sends = (struct queue *)other;
    endpoint->is_selective |= other->fclass == FI_CLASS_CQ && flags & FI_TRANSMIT && flags & FI_SELECTIVE_COMPLETION;
    if (other->fclass == FI_CLASS_CQ && flags & FI_RECV)
        endpoint->receives = (struct queue *)other;
    return 0;
}
static struct fi_ops ep_fid_ops = {sizeof(struct fi_ops), close_, ep_bind, control, ops_open};

static ssize_t cancel(struct fid *fid, void *context) { return -FI_ENOENT; }
static int getopt_(struct fid *fid, int level, int name, void *value, size_t *length) { return -FI_ENOPROTOOPT; }
static int setopt(struct fid *fid, int level, int name, const void *value, size_t length) { return 0; }
static struct fi_ops_ep endpoint_ops = {.size = sizeof(struct fi_ops_ep), .cancel = cancel, .getopt = getopt_, .setopt = setopt};

static int getname(struct fid *fid, void *address, size_t *length) {
    uint64_t name = 1;
    size_t room = *length;
    *length = ADDRESS_BYTES;
    if (room < ADDRESS_BYTES)
        return -FI_ETOOSMALL;
    memcpy(address, &name, ADDRESS_BYTES);
    return 0;
}
static struct fi_ops_cm cm_ops = {.size = sizeof(struct fi_ops_cm), .getname = getname};

static int endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context) {
    struct endpoint *made = calloc(1, sizeof *made);
    made->ep.fid = (struct fid){FI_CLASS_EP, context, &ep_fid_ops};
    made->ep.ops = &endpoint_ops;
    made->ep.cm = &cm_ops;
    made->ep.msg = &message_ops;
    made->ep.tagged = &tagged_ops;
    made->ep.atomic = &atomic_ops;
    made->ep.rma = &remote_ops;
    *ep = &made->ep;
    return 0;
}

static struct fi_ops_cq queue_ops = {sizeof(struct fi_ops_cq), cq_read, cq_readfrom, cq_readerr, cq_sread, cq_sreadfrom, cq_signal, cq_strerror};

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context) {
    static const size_t entry_bytes[] = {[FI_CQ_FORMAT_UNSPEC] = sizeof(struct fi_cq_tagged_entry),
                                         [FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
                                         [FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
                                         [FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
                                         [FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry)};
    struct queue *made = calloc(1, sizeof *made);
    made->cq.fid = (struct fid){FI_CLASS_CQ, context, &plain_ops};
    made->cq.ops = &queue_ops;
    made->entry_bytes = entry_bytes[attr->format];
    *cq = &made->cq;
    return 0;
}

// Addresses are numbered as they come.
struct vector {
    struct fid_av av;
    fi_addr_t next;
};

static int av_insert(struct fid_av *av, const void *addresses, size_t count, fi_addr_t *numbers, uint64_t flags, void *context) {
    struct vector *vector = (struct vector *)av;
    for (size_t i = 0; i < count; i++, vector->next++)
        if (numbers)
            numbers[i] = vector->next;
    return (int)count;
}
static int av_remove(struct fid_av *av, fi_addr_t *numbers, size_t count, uint64_t flags) { return 0; }
static int av_lookup(struct fid_av *av, fi_addr_t number, void *address, size_t *length) {
    return getname(NULL, address, length);
}
static const char *av_straddr(struct fid_av *av, const void *address, char *text, size_t *length) { return strncpy(text, "any", *length); }
static struct fi_ops_av vector_ops = {.size = sizeof(struct fi_ops_av), .insert = av_insert, .remove = av_remove, .lookup = av_lookup, .straddr = av_straddr};

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context) {
    struct vector *made = calloc(1, sizeof *made);
    made->av.fid = (struct fid){FI_CLASS_AV, context, &plain_ops};
    made->av.ops = &vector_ops;
    *av = &made->av;
    return 0;
}

// Counters are for remote memory, of which there is none.
static uint64_t cntr_read(struct fid_cntr *cntr) { return 0; }
static int cntr_set(struct fid_cntr *cntr, uint64_t value) { return 0; }
static int cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout) { return 0; }
static struct fi_ops_cntr counter_ops = {sizeof(struct fi_ops_cntr), cntr_read, cntr_read, cntr_set, cntr_set, cntr_wait, cntr_set, cntr_set};

static int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context) {
    struct fid_cntr *made = calloc(1, sizeof *made);
    made->fid = (struct fid){FI_CLASS_CNTR, context, &plain_ops};
    made->ops = &counter_ops;
    *cntr = made;
    return 0;
}
static struct fi_ops_domain domain_ops = {.size = sizeof(struct fi_ops_domain), .av_open = av_open, .cq_open = cq_open,
                                          .endpoint = endpoint_open, .cntr_open = cntr_open, .query_atomic = query_atomic};

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
                  struct fid_mr **mr, void *context) {
    struct fid_mr *made = calloc(1, sizeof *made);
    made->fid = (struct fid){FI_CLASS_MR, context, &plain_ops};
    made->key = key;
    *mr = made;
    return 0;
}
static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr) {
    return mr_reg(fid, NULL, 0, 0, 0, attr->requested_key, 0, mr, attr->context);
}
static struct fi_ops_mr region_ops = {.size = sizeof(struct fi_ops_mr), .reg = mr_reg, .regattr = mr_regattr};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context) {
    struct fid_domain *made = calloc(1, sizeof *made);
    made->fid = (struct fid){FI_CLASS_DOMAIN, context, &plain_ops};
    made->ops = &domain_ops;
    made->mr = &region_ops;
    *domain = made;
    return 0;
}

static int no_passive(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context) { return -FI_ENOSYS; }
static int no_eq(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context) { return -FI_ENOSYS; }
static int no_wait(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **wait) { return -FI_ENOSYS; }
static struct fi_ops_fabric fabric_ops = {.size = sizeof(struct fi_ops_fabric), .domain = domain_open, .passive_ep = no_passive, .eq_open = no_eq,
                                          .wait_open = no_wait};

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context) {
    struct fid_fabric *made = calloc(1, sizeof *made);
    made->fid = (struct fid){FI_CLASS_FABRIC, context, &plain_ops};
    made->ops = &fabric_ops;
    *fabric = made;
    return 0;
}

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info) {
    if (hints && (hints->caps & ~CAPS || (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC && hints->ep_attr->type != FI_EP_RDM)))
        return -FI_ENODATA;
    struct fi_info *made = fi_allocinfo();
    made->caps = hints && hints->caps ? hints->caps | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SEND | FI_RECV : CAPS;
    made->addr_format = FI_FORMAT_UNSPEC;
    made->src_addrlen = ADDRESS_BYTES;
    made->src_addr = calloc(1, ADDRESS_BYTES);
    *made->tx_attr = (struct fi_tx_attr){.caps = made->caps, .msg_order = ORDER, .inject_size = 4096, .size = 1024, .iov_limit = 4, .rma_iov_limit = 4,
                                         .op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0};
    *made->rx_attr = (struct fi_rx_attr){.caps = made->caps, .msg_order = ORDER, .size = 1024, .iov_limit = 4};
    made->ep_attr->type = FI_EP_RDM;
    made->ep_attr->protocol = 0x80000001;
    made->ep_attr->max_msg_size = 1 << 30;
    made->ep_attr->mem_tag_format = 0xaaaaaaaaaaaaaaaaull;
    made->ep_attr->max_order_raw_size = made->ep_attr->max_order_waw_size = 1 << 30;
    made->ep_attr->tx_ctx_cnt = made->ep_attr->rx_ctx_cnt = 1;
    struct fi_domain_attr *domain = made->domain_attr;
    domain->name = strdup("immediate");
    domain->threading = hints && hints->domain_attr && hints->domain_attr->threading ? hints->domain_attr->threading : FI_THREAD_SAFE;
    domain->control_progress = domain->data_progress = FI_PROGRESS_MANUAL;
    domain->resource_mgmt = FI_RM_ENABLED;
    domain->av_type = hints && hints->domain_attr && hints->domain_attr->av_type ? hints->domain_attr->av_type : FI_AV_TABLE;
    domain->mr_key_size = 8;
    domain->cq_data_size = 8;
    domain->cq_cnt = domain->ep_cnt = domain->tx_ctx_cnt = domain->rx_ctx_cnt = domain->cntr_cnt = 1024;
    domain->max_ep_tx_ctx = domain->max_ep_rx_ctx = 1;
    domain->mr_iov_limit = 4;
    domain->mr_cnt = 1 << 20;
    domain->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
    made->fabric_attr->name = strdup("immediate");
    made->fabric_attr->prov_name = strdup("immediate");
    *info = made;
    return 0;
}

static void cleanup(void) {}

static struct fi_provider provider = {
    .version = FI_VERSION(1, 0), .fi_version = FI_VERSION(2, 99), .name = "immediate", .getinfo = getinfo, .fabric = fabric_open, .cleanup = cleanup};

FI_EXT_INI { return &provider; }
