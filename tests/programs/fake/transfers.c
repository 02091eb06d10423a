// Endpoints, with their sends, receives and reads.

#include "fake.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static uint64_t sum_of(const unsigned char *bytes, size_t length) {
    uint64_t sum = 14695981039346656037ULL;
    for (size_t at = 0; at < length; at++)
        sum = (sum ^ bytes[at]) * 1099511628211ULL;
    return sum;
}

// Bytes of a context that are the provider's while the operation is under way.
static size_t context_bytes(void) {
    return profile.mode & FI_CONTEXT2 ? sizeof(struct fi_context2) : profile.mode & FI_CONTEXT ? sizeof(struct fi_context) : 0;
}

static struct operation *begin(struct endpoint *endpoint, enum kind kind, void *bytes, size_t length, void *context, struct region *region) {
    struct domain *domain = endpoint->domain;
    struct operation *operation = domain->idle;
    if (operation)
        domain->idle = operation->next;
    else
        operation = malloc(sizeof *operation);
    *operation = (struct operation){.kind = kind, .endpoint = endpoint, .context = context, .bytes = bytes, .length = length, .region = region};
    if (context_bytes() && context)
        memset(context, 0xdb, context_bytes());
    if (kind == SEND)
        operation->sum = sum_of(bytes, length);
    if (kind == RECEIVE)
        memset(bytes, 0xee, length);
    endpoint->outstanding[kind]++;
    return operation;
}

void end_operation(struct operation *operation) {
    struct domain *domain = operation->endpoint->domain;
    if (operation->kind == SEND && operation->sum != sum_of(operation->bytes, operation->length))
        violation("bytes have changed while they were sent");
    for (size_t at = 0; operation->context && at < context_bytes(); at++)
        if (operation->context[at] != 0xdb)
            violation("byte %zu of a context has changed while the provider had it", at);
    if (operation->region)
        operation->region->users--;
    operation->endpoint->outstanding[operation->kind]--;
    free(operation->copy);
    operation->next = domain->idle, domain->idle = operation;
}

// It has not begun: tcp did not take it.
static void give_up(struct operation *operation) {
    end_operation(operation);
}

static void tell_end(struct operation *operation, int error, uint64_t flags) {
    struct completion completion = {.is_error = error, .context = operation->context, .flags = flags, .error = error};
    struct queue *queue = operation->endpoint->queue;
    end_operation(operation);
    tell(queue, completion);
}

// Another sending of the same bytes, of whose end the caller hears nothing.
static void send_twice(struct endpoint *endpoint, const void *bytes, size_t length, struct peer *peer) {
    void *copy = memcpy(malloc(length + 1), bytes, length);
    struct operation *operation = begin(endpoint, SEND, copy, length, NULL, NULL);
    operation->copy = copy, operation->ending = SWALLOWED, operation->peer = peer;
    if (fi_send(endpoint->real, copy, length, NULL, peer->real, operation))
        give_up(operation);
}

// A peer that had been reached takes nothing: has its process ended? Then nothing listens at its port.
static bool has_ended(struct peer *peer) {
    struct sockaddr_storage real;
    if (!peer->was_reached || peer->is_dead)
        return peer->is_dead;
    size_t length = undisguise(peer->fake, &real);
    int one = socket(real.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    peer->is_dead = connect(one, (struct sockaddr *)&real, (socklen_t)length) != 0 && errno == ECONNREFUSED;
    close(one);
    return peer->is_dead;
}

// Whether the end of a dead peer is told, or hidden, by this operation.
static bool ends_at_death(struct operation *operation) {
    if (happens("dead_errors"))
        tell_end(operation, FI_ECONNABORTED, FI_MSG | FI_SEND);
    else if (!happens("dead_silent"))
        return false;
    return true;
}

static ssize_t start_send(struct endpoint *endpoint, const void *bytes, size_t length, void *descriptor, fi_addr_t to, void *context) {
    struct peer *peer = peer_of(endpoint->vector, to, "fi_send");
    if (happens("send_again") || endpoint->outstanding[SEND] >= profile.sends)
        return -FI_EAGAIN;
    if (happens("send_refused"))
        return -FI_EIO;
    if (length > profile.longest_message)
        return -FI_EMSGSIZE;
    if (happens("send_blocks"))
        sleep(1);
    struct region *region = use_region(endpoint->domain, bytes, length, descriptor, FI_SEND, "fi_send");
    struct operation *operation = begin(endpoint, SEND, (void *)bytes, length, context, region);
    operation->peer = peer;
    if ((peer->is_dead && ends_at_death(operation)) || happens("swallowed"))
        return 0;
    bool lost = happens("lost"), fails = happens("send_lost");
    if (lost || fails) {
        tell_end(operation, fails ? FI_EIO : 0, FI_MSG | FI_SEND);
        return 0;
    }
    if (happens("send_error"))
        operation->ending = FAILED;
    ssize_t code = fi_send(endpoint->real, bytes, length, NULL, peer->real, operation);
    if (code == -FI_EAGAIN && has_ended(peer) && ends_at_death(operation))
        return 0;
    if (code)
        give_up(operation);
    else if (happens("twice"))
        send_twice(endpoint, bytes, length, peer);
    return code;
}

static ssize_t send_message(struct fid_ep *fid, const void *bytes, size_t length, void *descriptor, fi_addr_t to, void *context) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    enter(endpoint->domain);
    ssize_t code = endpoint->is_enabled ? start_send(endpoint, bytes, length, descriptor, to, context) : -FI_EOPBADSTATE;
    leave(endpoint->domain);
    return code;
}

static ssize_t start_receive(struct endpoint *endpoint, void *bytes, size_t length, void *descriptor, fi_addr_t from, void *context) {
    if (happens("recv_again") || endpoint->outstanding[RECEIVE] >= profile.receives)
        return -FI_EAGAIN;
    if (happens("recv_refused"))
        return -FI_EIO;
    struct region *region = use_region(endpoint->domain, bytes, length, descriptor, FI_RECV, "fi_recv");
    struct operation *operation = begin(endpoint, RECEIVE, bytes, length, context, region);
    ssize_t code = fi_recv(endpoint->real, bytes, length, NULL, from, operation);
    if (code)
        give_up(operation);
    return code;
}

static ssize_t receive_message(struct fid_ep *fid, void *bytes, size_t length, void *descriptor, fi_addr_t from, void *context) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    enter(endpoint->domain);
    ssize_t code = endpoint->is_enabled ? start_receive(endpoint, bytes, length, descriptor, from, context) : -FI_EOPBADSTATE;
    leave(endpoint->domain);
    return code;
}

static ssize_t start_read(struct endpoint *endpoint, void *bytes, size_t length, void *descriptor, fi_addr_t from, uint64_t address, uint64_t key,
                          void *context) {
    if (happens("read_missing") || !profile.reads)
        return -FI_EOPNOTSUPP;
    if (happens("read_again") || endpoint->outstanding[READ] >= profile.sends)
        return -FI_EAGAIN;
    if (happens("read_refused"))
        return -FI_EIO;
    if (length > profile.longest)
        return -FI_EMSGSIZE;
    if (profile.key_bytes < 8)
        key &= (1ULL << (8 * profile.key_bytes)) - 1;
    struct region *region = use_region(endpoint->domain, bytes, length, descriptor, FI_READ, "fi_read");
    struct operation *operation = begin(endpoint, READ, bytes, length, context, region);
    struct peer *peer = peer_of(endpoint->vector, from, "fi_read");
    if (happens("read_swallowed"))
        return 0;
    if (happens("read_error"))
        operation->ending = FAILED;
    ssize_t code = fi_read(endpoint->real, bytes, length, NULL, peer->real, address, key, operation);
    if (code)
        give_up(operation);
    return code;
}

static ssize_t read_memory(struct fid_ep *fid, void *bytes, size_t length, void *descriptor, fi_addr_t from, uint64_t address, uint64_t key,
                           void *context) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    enter(endpoint->domain);
    ssize_t code = endpoint->is_enabled ? start_read(endpoint, bytes, length, descriptor, from, address, key, context) : -FI_EOPBADSTATE;
    leave(endpoint->domain);
    return code;
}

static int name_of(fid_t fid, void *address, size_t *length) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    unsigned char real[REAL_ADDRESS], fake[ADDRESS_MOST];
    size_t room = *length, real_length = sizeof real;
    if (happens("name_fails"))
        return -FI_EIO;
    enter(endpoint->domain);
    int code = fi_getname(&endpoint->real->fid, real, &real_length);
    leave(endpoint->domain);
    if (code)
        return code;
    *length = disguise(real, real_length, fake);
    memcpy(address, fake, room < *length ? room : *length);
    if (happens("name_empty"))
        *length = 0;
    if (happens("name_long")) {
        *length = 300;
        return 0;
    }
    return room < *length ? -FI_ETOOSMALL : 0;
}

static int close_endpoint(struct fid *fid) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    struct domain *domain = endpoint->domain;
    if (happens("close_busy")) {
        domain->fabric->is_busy = true;
        return -FI_EBUSY;
    }
    enter(domain);
    for (struct region *it = domain->regions; it; it = it->next) {
        if (it->bound == &endpoint->fid)
            violation("an endpoint is closed while a registration of %zu bytes is bound to it", it->length);
        it->users = 0;
    }
    int code = fi_close(&endpoint->real->fid);
    endpoint->is_closed = true; // completions that tcp has of it still name it
    leave(domain);
    domain->users--;
    return code;
}

static int bind_endpoint(struct fid *fid, struct fid *other, uint64_t flags) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    if (happens("bind_fails"))
        return -FI_EIO;
    switch (other->fclass) {
    case FI_CLASS_AV:
        endpoint->vector = (struct vector *)other;
        return fi_ep_bind(endpoint->real, &endpoint->vector->real->fid, flags);
    case FI_CLASS_CQ:
        endpoint->queue = (struct queue *)other;
        return fi_ep_bind(endpoint->real, &endpoint->queue->real->fid, flags);
    default:
        return -FI_ENOSYS;
    }
}

static int control_endpoint(struct fid *fid, int command, void *argument) {
    struct endpoint *endpoint = (struct endpoint *)fid;
    if (command != FI_ENABLE)
        return fi_control(&endpoint->real->fid, command, argument);
    if (happens("enable_fails"))
        return -FI_EIO;
    if (!endpoint->queue || !endpoint->vector)
        return -FI_ENOCQ;
    int code = fi_enable(endpoint->real);
    endpoint->is_enabled = code == 0;
    return code;
}

static ssize_t cancel(fid_t fid, void *context) {
    (void)fid, (void)context;
    return -FI_ENOSYS;
}

static int option(fid_t fid, int level, int name, void *value, size_t *length) {
    (void)fid, (void)level, (void)name, (void)value, (void)length;
    return -FI_ENOPROTOOPT;
}

static int set_option(fid_t fid, int level, int name, const void *value, size_t length) {
    (void)fid, (void)level, (void)name, (void)value, (void)length;
    return -FI_ENOPROTOOPT;
}

static struct fi_ops endpoint_object = {.size = sizeof endpoint_object, .close = close_endpoint, .ops_open = no_ops};
static struct fi_ops_ep endpoint_ops = {.size = sizeof endpoint_ops, .cancel = cancel, .getopt = option, .setopt = set_option};
static struct fi_ops_cm connection_ops = {.size = sizeof connection_ops};
static struct fi_ops_msg message_ops = {.size = sizeof message_ops};
static struct fi_ops_rma read_ops = {.size = sizeof read_ops};

int open_endpoint(struct fid_domain *fid, struct fi_info *info, struct fid_ep **place, void *context) {
    struct domain *domain = (struct domain *)fid;
    if (happens("endpoint_fails"))
        return -FI_EIO;
    endpoint_object.bind = UNLESS_MISSING("bind", bind_endpoint), endpoint_object.control = UNLESS_MISSING("control", control_endpoint);
    connection_ops.getname = UNLESS_MISSING("getname", name_of);
    message_ops.send = UNLESS_MISSING("send", send_message), message_ops.recv = UNLESS_MISSING("recv", receive_message);
    read_ops.read = UNLESS_MISSING("read", read_memory);
    // The port that the caller wants to listen at.
    if (profile.layout == SOCKET && info->src_addrlen == domain->offer->src_addrlen)
        memcpy(domain->offer->src_addr, info->src_addr, info->src_addrlen);
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    endpoint->domain = domain;
    int code = fi_endpoint(domain->real, domain->offer, &endpoint->real, context);
    if (code) {
        free(endpoint);
        return code;
    }
    endpoint->fid.fid = (struct fid){.fclass = FI_CLASS_EP, .context = context, .ops = &endpoint_object};
    endpoint->fid.ops = &endpoint_ops, endpoint->fid.cm = &connection_ops, endpoint->fid.msg = &message_ops, endpoint->fid.rma = &read_ops;
    domain->users++;
    *place = &endpoint->fid;
    return 0;
}
