// The completion queue: completions of tcp become those of the caller's operations, late, in another order, or never.

#include "fake.h"

static const double LATE_SECONDS = 0.005;

void tell(struct queue *queue, struct completion completion) {
    struct completion *new = malloc(sizeof *new), **place = &queue->first;
    *new = completion;
    new->due = seconds_now();
    if (happens("late"))
        new->due += LATE_SECONDS;
    if (happens("shuffle"))
        new->due += LATE_SECONDS * (double)(rand() % 100) / 100;
    while (*place && (*place)->due <= new->due)
        place = &(*place)->next;
    new->next = *place, *place = new;
}

static void tell_stray(struct queue *queue) {
    static uint64_t nowhere[8];
    if (happens("stray")) {
        tell(queue, (struct completion){.context = NULL, .flags = FI_MSG | FI_SEND});
        tell(queue, (struct completion){.context = nowhere, .flags = FI_MSG | FI_RECV, .length = 40});
        tell(queue, (struct completion){.context = NULL, .is_error = true, .error = FI_EIO});
        tell(queue, (struct completion){.context = &nowhere[1], .is_error = true, .error = FI_EIO});
    }
}

static void handle_end(struct queue *queue, struct operation *operation, uint64_t flags, size_t length, int error) {
    struct completion completion = {.context = operation->context, .flags = flags, .length = length, .error = error};
    enum kind kind = operation->kind;
    enum ending ending = operation->ending;
    // The caller has its memory back, and hears of nothing any more.
    if (operation->endpoint->is_closed)
        return;
    if (operation->peer && !error)
        operation->peer->was_reached = true;
    // The caller waits for its end for ever.
    if (kind == SEND && error && operation->peer && happens("dead_silent")) {
        operation->peer->is_dead = true;
        return;
    }
    end_operation(operation);
    if (ending == SWALLOWED)
        return;
    if (kind == RECEIVE && !error) {
        completion.error = happens("recv_error") ? FI_EIO : happens("recv_cut") ? FI_ETRUNC : 0;
        if (happens("recv_long"))
            completion.length += 1 << 20;
    }
    if (ending == FAILED)
        completion.error = FI_EIO;
    completion.is_error = completion.error;
    tell(queue, completion);
    tell_stray(queue);
}

static void handle_error(struct queue *queue) {
    // Larger than the struct of any version, which grow at their end.
    struct {
        struct fi_cq_err_entry known;
        uint64_t later[16];
    } entry = {.known = {0}};
    if (fi_cq_readerr(queue->real, &entry.known, 0) == 1 && entry.known.op_context)
        handle_end(queue, entry.known.op_context, entry.known.flags, entry.known.len, entry.known.err ? entry.known.err : FI_EOTHER);
}

// Takes the completions that tcp has.
static void pump(struct queue *queue) {
    struct fi_cq_msg_entry entries[16];
    ssize_t count = fi_cq_read(queue->real, entries, 16);
    for (ssize_t i = 0; i < count; i++)
        if (entries[i].op_context)
            handle_end(queue, entries[i].op_context, entries[i].flags, entries[i].len, 0);
    if (count == -FI_EAVAIL)
        handle_error(queue);
}

bool has_completions(struct queue *queue) {
    enter(queue->domain);
    bool has = queue->first;
    leave(queue->domain);
    return has;
}

static struct completion take(struct queue *queue) {
    struct completion taken = *queue->first;
    free(queue->first);
    queue->first = taken.next;
    return taken;
}

static ssize_t take_all(struct queue *queue, struct fi_cq_msg_entry *entries, size_t count) {
    double now = seconds_now();
    size_t taken = 0;
    while (queue->first && queue->first->due <= now && !queue->first->is_error && taken < count) {
        struct completion it = take(queue);
        entries[taken++] = (struct fi_cq_msg_entry){.op_context = it.context, .flags = it.flags, .len = it.length};
    }
    if (taken)
        return (ssize_t)taken;
    if (queue->first && queue->first->due <= now && queue->first->is_error)
        return -FI_EAVAIL;
    return queue->first && queue->first->due <= now && count == 0 ? 0 : -FI_EAGAIN;
}

static ssize_t read_queue(struct fid_cq *fid, void *entries, size_t count) {
    struct queue *queue = (struct queue *)fid;
    if (happens("cq_error"))
        return -FI_EIO;
    enter(queue->domain);
    pump(queue);
    ssize_t taken = take_all(queue, entries, count);
    leave(queue->domain);
    return taken;
}

static ssize_t read_error(struct fid_cq *fid, struct fi_cq_err_entry *entry, uint64_t flags) {
    struct queue *queue = (struct queue *)fid;
    (void)flags;
    if (happens("readerr_again") || !queue->first || !queue->first->is_error)
        return -FI_EAGAIN;
    enter(queue->domain);
    struct completion it = take(queue);
    leave(queue->domain);
    entry->op_context = it.context, entry->flags = it.flags, entry->len = 0, entry->olen = 0, entry->err = it.error, entry->prov_errno = -1;
    return 1;
}

static const char *error_text(struct fid_cq *fid, int number, const void *data, char *text, size_t length) {
    (void)fid, (void)number, (void)data;
    return text ? strncpy(text, "an error of the provider that is played", length) : "an error of the provider that is played";
}

static int close_queue(struct fid *fid) {
    struct queue *queue = (struct queue *)fid;
    if (queue->domain->fabric->is_busy)
        return -FI_EBUSY;
    while (queue->first)
        take(queue);
    int code = fi_close(&queue->real->fid);
    queue->domain->users--;
    free(queue);
    return code;
}

static int control_queue(struct fid *fid, int command, void *argument) {
    if (command == FI_GETWAIT && happens("no_getwait"))
        return -FI_ENOSYS;
    return fi_control(&((struct queue *)fid)->real->fid, command, argument);
}

int open_queue(struct fid_domain *fid, struct fi_cq_attr *attributes, struct fid_cq **place, void *context) {
    static struct fi_ops object = {.size = sizeof object, .close = close_queue, .bind = no_bind, .ops_open = no_ops};
    static struct fi_ops_cq ops = {.size = sizeof ops, .strerror = error_text};
    struct domain *domain = (struct domain *)fid;
    if (happens("cq_fails"))
        return -FI_EIO;
    if (attributes->wait_obj != FI_WAIT_NONE && (profile.no_descriptor || happens("no_fd")))
        return -FI_ENOSYS;
    if (attributes->format != FI_CQ_FORMAT_MSG)
        return -FI_ENOSYS;
    ops.read = UNLESS_MISSING("cq_read", read_queue), ops.readerr = UNLESS_MISSING("cq_readerr", read_error);
    object.control = control_queue;
    struct queue *queue = calloc(1, sizeof *queue);
    queue->domain = domain;
    int code = fi_cq_open(domain->real, attributes, &queue->real, context);
    if (code) {
        free(queue);
        return code;
    }
    queue->fid.fid = (struct fid){.fclass = FI_CLASS_CQ, .context = context, .ops = &object};
    queue->fid.ops = &ops;
    domain->users++;
    *place = &queue->fid;
    return 0;
}
