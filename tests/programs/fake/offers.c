// The offers that fi_getinfo finds: that of tcp, changed into those of the provider that is played.

#include "fake.h"
#include <dlfcn.h>

// Flag of libfabric for its own layers: providers that the user has hidden from the application too.
#define HIDDEN_TOO (1ULL << 60)
#define READS (FI_RMA | FI_READ | FI_REMOTE_READ)

struct library library;
char provider_name[NAME_MOST];
static struct fi_provider provider = {
    .version = FI_VERSION(999, 0), // above any that libfabric has of the same name
    .getinfo = fake_getinfo,
    .fabric = fake_fabric,
};
// libfabric asks all providers for tcp, this one too.
static __thread bool is_asking;

static void find_library(const void *caller) {
    Dl_info place;
    void *object = dladdr(caller, &place) ? dlopen(place.dli_fname, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    if (!object || !dlsym(object, "fi_getinfo"))
        object = RTLD_DEFAULT;
    *(void **)&library.getinfo = dlsym(object, "fi_getinfo"), *(void **)&library.dupinfo = dlsym(object, "fi_dupinfo");
    *(void **)&library.freeinfo = dlsym(object, "fi_freeinfo"), *(void **)&library.fabric = dlsym(object, "fi_fabric");
    *(void **)&library.version = dlsym(object, "fi_version");
}

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void) {
    find_library(__builtin_return_address(0));
    if (!library.fabric || !library.freeinfo || !library.version)
        return NULL;
    provider.fi_version = library.version();
    read_settings();
    const char *above = strrchr(provider_name, ';');
    provider.name = above ? above + 1 : provider_name;
    return &provider;
}

static struct fi_info *ask_for(const char *name) {
    struct fi_info *hints = library.dupinfo(NULL), *list = NULL;
    hints->caps = FI_MSG | FI_SEND | FI_RECV | READS;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup(name);
    is_asking = true;
    int failed = library.getinfo(FI_VERSION(1, 17), NULL, NULL, HIDDEN_TOO, hints, &list);
    is_asking = false;
    library.freeinfo(hints);
    return failed ? NULL : list;
}

static bool is_wanted(const struct fi_info *offer) {
    const char *interface = getenv("FAKE_INTERFACE");
    const struct sockaddr_in *source = offer->src_addr;
    if (strchr(offer->fabric_attr->prov_name, ';') || !source || source->sin_family != AF_INET)
        return false;
    return interface ? !strcmp(offer->domain_attr->name, interface) : (ntohl(source->sin_addr.s_addr) >> 24) != 127;
}

struct fi_info *real_offer(void) {
    static const char *const names[] = {"tcp", "net"};
    struct fi_info *found = NULL;
    for (int i = 0; i < 2 && !found; i++) {
        struct fi_info *list = ask_for(names[i]);
        for (struct fi_info *it = list; it && !found; it = it->next)
            if (is_wanted(it))
                found = library.dupinfo(it);
        if (list)
            library.freeinfo(list);
    }
    return found;
}

// The device of an offer frees itself with it.
static int close_card(struct fid *fid) {
    struct fid_nic *card = (struct fid_nic *)fid;
    free(card->link_attr), free(card->device_attr), free(card->bus_attr), free(card);
    return 0;
}

static struct fi_ops card_ops = {.size = sizeof card_ops, .close = close_card, .bind = no_bind, .control = no_control, .ops_open = no_ops};

static struct fid_nic *card(const struct named_domain *domain) {
    struct fid_nic *card = calloc(1, sizeof *card);
    card->fid.fclass = FI_CLASS_NIC, card->fid.ops = &card_ops;
    card->device_attr = calloc(1, sizeof *card->device_attr), card->bus_attr = calloc(1, sizeof *card->bus_attr);
    card->link_attr = calloc(1, sizeof *card->link_attr);
    card->link_attr->speed = (size_t)domain->gigabits * 1000000000, card->link_attr->state = domain->is_down ? FI_LINK_DOWN : FI_LINK_UP;
    card->link_attr->mtu = 4096;
    return card;
}

static void rename_to(char **place, const char *name) {
    free(*place);
    *place = strdup(name);
}

static void set_source(struct fi_info *info, const struct fi_info *real) {
    unsigned char fake[ADDRESS_MOST];
    size_t length = disguise(real->src_addr, real->src_addrlen, fake);
    free(info->src_addr);
    info->src_addr = memcpy(malloc(length), fake, length), info->src_addrlen = length;
    info->addr_format = profile.layout == SOCKET ? real->addr_format : profile.address_format;
}

// The modes of registration that a caller has to know: without remote access those alone that concern local memory.
static int mr_mode_for(const struct profile *it, const struct fi_info *hints) {
    uint64_t caps = hints && hints->caps ? hints->caps : READS;
    bool local = it->mr_local_if_hinted && hints && hints->domain_attr && hints->domain_attr->mr_mode & FI_MR_LOCAL;
    int mode = it->mr_mode | (local ? FI_MR_LOCAL : 0);
    return caps & (FI_RMA | FI_ATOMIC) ? mode : mode & FI_MR_LOCAL;
}

static struct fi_info *offer_of(const struct profile *it, const struct fi_info *real, const struct named_domain *domain, const struct fi_info *hints) {
    struct fi_info *info = library.dupinfo(real);
    set_source(info, real);
    free(info->dest_addr), info->dest_addr = NULL, info->dest_addrlen = 0;
    const char *above = strchr(provider_name, ';');
    free(info->fabric_attr->prov_name);
    // libfabric appends the name of the provider.
    info->fabric_attr->prov_name = above ? strndup(provider_name, (size_t)(above - provider_name)) : NULL;
    rename_to(&info->fabric_attr->name, it->fabric ? it->fabric : provider.name);
    rename_to(&info->domain_attr->name, domain->name);
    if (info->nic)
        fi_close(&info->nic->fid);
    info->nic = domain->gigabits ? card(domain) : NULL;
    uint64_t refused = it->reads && (!hints || hints->caps & FI_RMA) ? 0 : READS | FI_WRITE | FI_REMOTE_WRITE;
    info->caps &= ~refused, info->tx_attr->caps &= ~refused, info->rx_attr->caps &= ~refused;
    info->mode = info->tx_attr->mode = info->rx_attr->mode = it->mode | it->mode_always;
    info->tx_attr->inject_size = it->inject, info->tx_attr->size = it->sends, info->rx_attr->size = it->receives;
    info->ep_attr->max_msg_size = it->longest;
    info->domain_attr->mr_mode = mr_mode_for(it, hints), info->domain_attr->mr_key_size = it->key_bytes;
    info->domain_attr->threading = FI_THREAD_DOMAIN;
    return info;
}

static bool fits(const struct profile *it, const struct fi_info *hints) {
    if (!hints)
        return true;
    const struct fi_ep_attr *endpoint = hints->ep_attr;
    const struct fi_domain_attr *domain = hints->domain_attr;
    const char *fabric = hints->fabric_attr ? hints->fabric_attr->name : NULL;
    if (endpoint && endpoint->type != FI_EP_UNSPEC && endpoint->type != FI_EP_RDM)
        return false;
    if (fabric && strcmp(fabric, it->fabric ? it->fabric : provider.name))
        return false;
    if (hints->caps & ~(FI_MSG | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM | (it->reads ? READS : 0)))
        return false;
    if (it->mode & ~hints->mode)
        return false;
    return !domain || (!(mr_mode_for(it, hints) & ~domain->mr_mode) && domain->mr_key_size <= it->key_bytes);
}

static void append(struct fi_info **list, struct fi_info *info) {
    while (*list)
        list = &(*list)->next;
    *list = info;
}

// Offers that are of no use: one that reaches this host alone, and one of messages that are too short.
static void append_odd_ones(struct fi_info **list, const struct fi_info *real, const struct fi_info *hints) {
    struct fi_info *local = offer_of(&offered[0], real, &(struct named_domain){.name = "odd_local", .gigabits = 800}, hints);
    struct fi_info *tiny = offer_of(&offered[0], real, &(struct named_domain){.name = "odd_tiny", .gigabits = 400}, hints);
    if (profile.layout == SOCKET)
        ((struct sockaddr_in *)local->src_addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    tiny->ep_attr->max_msg_size = 64;
    append(list, local), append(list, tiny);
}

int fake_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info) {
    (void)version, (void)node, (void)service, (void)flags;
    const char *wanted = hints && hints->domain_attr ? hints->domain_attr->name : NULL;
    if (is_asking || happens("no_offers"))
        return -FI_ENODATA;
    struct fi_info *real = real_offer();
    if (!real)
        return -FI_ENODATA;
    *info = NULL;
    if (happens("odd_offers") && fits(&offered[0], hints))
        append_odd_ones(info, real, hints);
    for (int i = 0; i < domain_count; i++)
        for (int at = 0; at < offered_count; at++)
            if ((!wanted || !strcmp(wanted, domains[i].name)) && fits(&offered[at], hints))
                append(info, offer_of(&offered[at], real, &domains[i], hints));
    library.freeinfo(real);
    return *info ? 0 : -FI_ENODATA;
}
