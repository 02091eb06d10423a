// The offers of the providers that this one plays, and the words of the environment.

#include "fake.h"
#include <stdarg.h>
#include <time.h>

#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
// From libfabric 1.22 on.
enum { ADDR_UCX = FI_ADDR_CXI + 2 };

// The offers of libfabric 2.6's providers to hints like Tidegate's, by the files of prov/ that are named. Numbers that depend on
// hardware are those of a common card.
static const struct profile profiles[] = {
    {.name = "plain", .domains = "plain0:25", .address_format = FI_SOCKADDR_IN, .key_bytes = 8, .reads = true, .inject = 64, .longest = SIZE_MAX,
     .sends = 256, .receives = 256},
    // psm3/src/psmx3.h (psmx3_ep_name), psmx3_attr.c, psmx3_av.c, psmx3_wait.c, psmx3_init.c (the names of domains)
    {.name = "psm3", .domains = "autoselect_one:irdma0;irdma1:0,irdma0:100,irdma1:100", .fabric = "RoCE 192.168.101.0/24", .layout = PSM3,
     .insertion = FOR_EVER, .address_format = FI_ADDR_PSMX3, .key_bytes = 8, .reads = true, .no_descriptor = true, .mode = FI_CONTEXT, .inject = 64,
     .longest = 0xfffff000, .sends = UINT64_MAX, .receives = UINT64_MAX},
    // psm2/src/psmx2.h (psmx2_ep_name)
    {.name = "psm2", .domains = "hfi1_0:100", .layout = PSM2, .insertion = FOR_EVER, .address_format = FI_ADDR_PSMX2, .key_bytes = 8, .reads = true,
     .no_descriptor = true, .mode = FI_CONTEXT, .inject = 64, .longest = 0xfffff000, .sends = UINT64_MAX, .receives = UINT64_MAX},
    // efa/src/efa_av.h (efa_ep_addr), efa_av.c, efa_prov_info.c, efa_user_info.c
    {.name = "efa", .domains = "rdmap0s6-rdm:100", .fabric = "efa", .layout = EFA, .insertion = UNCOUNTED, .address_format = FI_ADDR_EFA,
     .mr_mode = BASIC, .mr_local_if_hinted = true, .key_bytes = 4, .reads = true, .inject = 8832, .longest = UINT64_MAX, .sends = 1024,
     .receives = 8192},
    // From 2.1 on, in front of it: a message has one packet at most, but the length that is stated is that of a read.
    {.name = "efa_direct", .domains = "rdmap0s6-rdm:100", .fabric = "efa-direct", .then = "efa", .layout = EFA, .insertion = UNCOUNTED,
     .address_format = FI_ADDR_EFA, .mr_mode = BASIC | FI_MR_LOCAL, .key_bytes = 4, .reads = true, .mode = FI_CONTEXT2, .inject = 32,
     .longest = 1 << 30, .longest_message = 8928, .sends = 256, .receives = 1024},
    // verbs/src/verbs_info.c below rxm/src/rxm_attr.c and rxm_init.c, with addresses of IP
    {.name = "verbs", .domains = "mlx5_0:200,mlx5_1:100", .fabric = "IB-0xfe80000000000000", .address_format = FI_SOCKADDR_IN, .mr_mode = BASIC,
     .mr_local_if_hinted = true, .key_bytes = 4, .reads = true, .inject = 16384, .longest = 1 << 30, .sends = 2048, .receives = 2048},
    // With a device without IP: include/ofi_net.h (ofi_sockaddr_ib), verbs_info.c (vrb_alloc_ib_addrinfo)
    {.name = "verbs_ib", .domains = "mlx5_0:200,mlx5_1:200", .fabric = "IB-0xfe80000000000000", .layout = IB, .address_format = FI_SOCKADDR_IB,
     .mr_mode = BASIC, .mr_local_if_hinted = true, .key_bytes = 4, .reads = true, .inject = 16384, .longest = 1 << 30, .sends = 2048,
     .receives = 2048},
    // verbs below rxd: verbs/src/verbs_ofi.h (ofi_ib_ud_ep_name), rxd/src/rxd_av.c
    {.name = "verbs_ud", .domains = "mlx5_0-dgram:200", .layout = UD, .insertion = UNCOUNTED, .address_format = FI_ADDR_IB_UD, .key_bytes = 8,
     .reads = true, .inject = 3000, .longest = SIZE_MAX, .sends = 1024, .receives = 1024},
    // cxi/include/cxip.h (cxip_addr), cxip_info.c: with keys of its own, and then with those of the caller
    {.name = "cxi", .domains = "cxi0:200,cxi1:200", .then = "cxi_client", .layout = CXI, .address_format = FI_ADDR_CXI,
     .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY, .key_bytes = 8, .reads = true, .inject = 192, .longest = UINT32_MAX,
     .sends = 1024, .receives = 1024},
    {.name = "cxi_client", .domains = "cxi0:200", .layout = CXI, .address_format = FI_ADDR_CXI, .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED,
     .key_bytes = 4, .reads = true, .inject = 192, .longest = UINT32_MAX, .sends = 1024, .receives = 1024},
    // opx/include/rdma/opx/fi_opx_addr.h, opx/src/fi_opx_av.c, fi_opx_domain.c: of 2.5; of 2.6; of 2.6 for DAOS
    {.name = "opx25", .domains = "hfi1_0:100", .layout = OPX_OLD, .insertion = FRESH, .address_format = FI_ADDR_OPX, .key_bytes = 8, .reads = true,
     .mode_always = FI_ASYNC_IOV, .inject = 16, .longest = UINT64_MAX, .sends = SIZE_MAX, .receives = SIZE_MAX},
    {.name = "opx26", .domains = "hfi1_0:400", .layout = OPX_NEW, .insertion = FRESH, .address_format = FI_ADDR_OPX, .key_bytes = 8, .reads = true,
     .mode_always = FI_ASYNC_IOV, .inject = 16, .longest = UINT64_MAX, .sends = SIZE_MAX, .receives = SIZE_MAX},
    {.name = "opx_daos", .domains = "hfi1_0:400", .layout = OPX_LONG, .insertion = FRESH, .address_format = FI_ADDR_OPX, .key_bytes = 8, .reads = true,
     .mode_always = FI_ASYNC_IOV, .inject = 16, .longest = UINT64_MAX, .sends = SIZE_MAX, .receives = SIZE_MAX},
    // tcp below rxm; udp below rxd/src/rxd_attr.c, rxd_av.c; sockets/src/sock_av.c
    {.name = "rxm", .domains = "eth0:0", .address_format = FI_SOCKADDR_IN, .key_bytes = 8, .reads = true, .inject = 16384, .longest = SIZE_MAX,
     .sends = 2048, .receives = 2048},
    {.name = "rxd", .domains = "eth0:0", .insertion = UNCOUNTED, .address_format = FI_SOCKADDR_IN, .key_bytes = 8, .reads = true, .inject = 4000,
     .longest = SIZE_MAX, .sends = 1024, .receives = 1024},
    {.name = "sockets", .domains = "eth0:0", .insertion = FRESH, .address_format = FI_SOCKADDR_IN, .key_bytes = 8, .reads = true, .inject = 255,
     .longest = SIZE_MAX - 4096, .sends = 256, .receives = 256},
    // ucx/src/ucx_init.c, ucx_cm.c: addresses of any length, told in 1024 bytes; raw keys
    {.name = "ucx", .domains = "mlx5_0:200", .layout = UCX, .insertion = FRESH, .address_format = ADDR_UCX, .mr_mode = BASIC | FI_MR_RAW,
     .key_bytes = 64, .reads = true, .inject = 1024, .longest = SIZE_MAX, .sends = 384, .receives = 384},
    // mrail/src/mrail_ep.c: the addresses of two rails, one behind the other; raw keys
    {.name = "mrail", .domains = "rails0:0", .layout = RAILS, .address_format = FI_ADDR_UNSPEC & UINT32_MAX, .mr_mode = FI_MR_RAW, .key_bytes = 16,
     .reads = true, .inject = 64, .longest = SIZE_MAX, .sends = 256, .receives = 256},
};

struct profile offered[OFFERS_MOST];
int offered_count;
struct profile profile;
struct named_domain domains[DOMAINS_MOST];
int domain_count;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

_Noreturn void violation(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "fake-fi: VIOLATION: %s\n", text);
    fflush(stderr);
    abort();
}

static _Noreturn void misspelt(const char *variable, const char *word) {
    fprintf(stderr, "fake-fi: %s: nothing is called %s\n", variable, word);
    abort();
}

static void set_fact_of(struct profile *it, const char *name, unsigned long long value) {
    struct {
        const char *name;
        size_t *place;
    } sizes[] = {{"key", &it->key_bytes}, {"inject", &it->inject}, {"longest", &it->longest}, {"longest_message", &it->longest_message},
                 {"tx", &it->sends}, {"rx", &it->receives}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!strcmp(sizes[i].name, name)) {
            *sizes[i].place = value;
            return;
        }
    if (!strcmp(name, "reads"))
        it->reads = value;
    else if (!strcmp(name, "mr"))
        it->mr_mode = (int)value, it->mr_local_if_hinted = false;
    else if (!strcmp(name, "context"))
        it->mode = value == 2 ? FI_CONTEXT2 : value ? FI_CONTEXT : 0;
    else if (!strcmp(name, "insertion"))
        it->insertion = (enum insertion)value;
    else
        misspelt("FAKE_FACTS", name);
}

// Calls it for each word of a list that commas separate, with the number behind its `sign`, and what follows that.
static void each_word(const char *list, char sign, void (*handle)(const char *word, unsigned long long number, char after)) {
    char copy[1024], *rest = copy, *word;
    snprintf(copy, sizeof copy, "%s", list);
    while ((word = strsep(&rest, ","))) {
        char *number = strrchr(word, sign), *end = "";
        unsigned long long value = 0;
        if (number && number[1] >= '0' && number[1] <= '9')
            *number = 0, value = strtoull(number + 1, &end, 0);
        if (*word)
            handle(word, value, *end);
    }
}

static void fact(const char *word, unsigned long long number, char after) {
    (void)after;
    for (int i = 0; i < offered_count; i++)
        set_fact_of(&offered[i], word, number);
}

static void domain(const char *word, unsigned long long number, char after) {
    if (domain_count < DOMAINS_MOST) {
        snprintf(domains[domain_count].name, NAME_MOST, "%s", word);
        domains[domain_count].is_down = after == 'd';
        domains[domain_count++].gigabits = (unsigned)number;
    }
}

enum { MISDEEDS_MOST = 16 };
static struct misdeed {
    char name[32];
    unsigned long long number, count;
    char how;
} misdeeds[MISDEEDS_MOST];
static int misdeed_count;

static const char *const known[] = {
    "fabric_fails", "domain_fails", "av_fails", "cq_fails", "endpoint_fails", "bind_fails", "enable_fails", "first_domain_fails", "odd_offers",
    "no_offers", "name_fails", "name_empty", "name_long", "insert_fails", "insert_none", "insert_nowhere", "mr_fails", "mr_bind_fails", "key_most",
    "send_again", "send_refused", "send_blocks", "send_error", "send_lost", "lost", "twice", "dead_errors", "dead_silent", "swallowed", "read_swallowed", "close_busy", "recv_again", "recv_refused", "recv_error", "recv_cut",
    "recv_long", "read_again", "read_refused", "read_missing", "read_error", "late", "shuffle", "cq_error", "readerr_again", "stray", "no_fd",
    "no_getwait", "trywait_again"};

static void misdeed(const char *word, unsigned long long number, char how) {
    bool is_known = !strncmp(word, "null_", 5);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known |= !strcmp(known[i], word);
    if (!is_known || misdeed_count == MISDEEDS_MOST)
        misspelt("FAKE_BAD", word);
    struct misdeed *new = &misdeeds[misdeed_count++];
    snprintf(new->name, sizeof new->name, "%s", word);
    new->number = number ? number : 1, new->how = how;
}

bool happens(const char *name) {
    for (struct misdeed *it = misdeeds; it < misdeeds + misdeed_count; it++) {
        if (strcmp(it->name, name))
            continue;
        unsigned long long time = __atomic_add_fetch(&it->count, 1, __ATOMIC_RELAXED);
        bool now = it->how == '+' ? time >= it->number : it->how == '!' ? time == it->number : time % it->number == 0;
        if (now && time < 2 * it->number)
            fprintf(stderr, "fake-fi: %s\n", name);
        return now;
    }
    return false;
}

bool is_missing(const char *function) {
    char name[32];
    snprintf(name, sizeof name, "null_%s", function);
    return happens(name);
}

void read_settings(void) {
    const char *like = setting("FAKE_LIKE", "plain"), *only = getenv("FAKE_RANK"), *wanted = like;
    snprintf(provider_name, sizeof provider_name, "%s", setting("FAKE_NAME", "fake"));
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles && wanted && offered_count < OFFERS_MOST; i++)
        if (!strcmp(profiles[i].name, wanted)) {
            offered[offered_count++] = profiles[i];
            wanted = profiles[i].then;
            i = (size_t)-1;
        }
    if (!offered_count)
        misspelt("FAKE_LIKE", like);
    each_word(setting("FAKE_FACTS", ""), '=', fact);
    each_word(setting("FAKE_DOMAINS", offered[0].domains), ':', domain);
    if (!only || !strcmp(only, setting("PMI_RANK", setting("OMPI_COMM_WORLD_RANK", ""))))
        each_word(setting("FAKE_BAD", ""), ':', misdeed);
    for (int i = 0; i < offered_count; i++)
        if (!offered[i].longest_message)
            offered[i].longest_message = offered[i].longest;
    profile = offered[0];
}

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
