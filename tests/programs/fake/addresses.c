// Addresses in the layout of the provider that is played. Each holds the address and the port of a socket, of IPv4, in
// bytes in which the real ones differ; all others are what they are there.

#include "fake.h"
#include <arpa/inet.h>

struct place {
    size_t length, ip, port;
};

// In the number of the port's place there are its two bytes, as sockets have them.
static const struct place places[] = {
    [PSM2] = {16, 2, 6},     // epid
    [PSM3] = {32, 8, 16},    // epid: 24 bytes; then type, unit, port, padding, service
    [EFA] = {32, 12, 16},    // the end of the GID; the number of the queue pair
    [IB] = {48, 20, 30},     // the end of the GID; the end of the service number
    [UD] = {32, 12, 16},     // the end of the GID; the number of the queue pair
    [OPX_OLD] = {8, 4, 2},   // lid; subctxt_rx
    [OPX_NEW] = {40, 4, 2},  // those of the first plane
    [OPX_LONG] = {48, 4, 2}, // with rank and rank_inst behind it
    [UCX] = {1024, 40, 44},
    [RAILS] = {32, 4, 2},    // two addresses of sockets
};

// The bytes that are the same in all addresses.
static void fill(unsigned char *fake) {
    const uint32_t qkey = 0x11111111;
    memset(fake, 0, address_bytes());
    switch (profile.layout) {
    case PSM2:
        fake[0] = 2; // so it looks like the address of a socket
        fake[8] = 1;
        break;
    case PSM3:
        fake[0] = 0x29, fake[1] = 0x18; // IPv4, its prefix; all behind epid is 0
        break;
    case EFA:
        fake[0] = 0xfe, fake[1] = 0x80;
        memcpy(fake + 20, &qkey, sizeof qkey);
        break;
    case IB: {
        const uint16_t family = 27, pkey = 0xffff; // AF_IB
        memcpy(fake, &family, sizeof family), memcpy(fake + 2, &pkey, sizeof pkey);
        fake[8] = 0xfe, fake[9] = 0x80, fake[16] = 0x02, fake[17] = 0xc9;
        fake[28] = 0x01, fake[29] = 0x3f; // service: RDMA_PS_IB
        memset(fake + 32, 0xff, 8);       // its mask
        fake[40] = 1;                     // scope: the port of the card
        break;
    }
    case UD:
        fake[0] = 0xfe, fake[1] = 0x80;
        fake[20] = 0x17, fake[22] = 0xff, fake[23] = 0xff, fake[24] = 3, fake[26] = 1; // lid, pkey, service, sl
        break;
    case OPX_OLD:
        fake[0] = 1;
        break;
    case OPX_NEW:
    case OPX_LONG:
        fake[0] = fake[16] = 1, fake[15] = fake[31] = 0xfe, fake[19] = 7, fake[20] = 0x33, fake[32] = 1;
        break;
    case UCX:
        memset(fake, 0x5c, 300);
        break;
    case RAILS:
        fake[0] = fake[16] = AF_INET, fake[18] = 0x77, fake[20] = 10;
        break;
    case CXI:
    case SOCKET:
        break;
    }
}

size_t address_bytes(void) {
    switch (profile.layout) {
    case SOCKET:
        return sizeof(struct sockaddr_in);
    case CXI:
        return 8;
    default:
        return places[profile.layout].length;
    }
}

// cxip_addr has 45 bits: 20 of the address, and the port as its VNI. The other 12 all hosts have alike.
static uint32_t network_bits;

size_t disguise(const void *real, size_t length, unsigned char *fake) {
    struct sockaddr_in socket;
    if (profile.layout == SOCKET) {
        memcpy(fake, real, length);
        return length;
    }
    memcpy(&socket, real, sizeof socket);
    if (socket.sin_family != AF_INET)
        violation("below is no IPv4");
    fill(fake);
    if (profile.layout == CXI) {
        uint32_t ip = ntohl(socket.sin_addr.s_addr), word = (ip & 0xfffff) << 9;
        network_bits = ip & ~0xfffffu;
        memcpy(fake, &word, sizeof word), memcpy(fake + 4, &socket.sin_port, 2);
    } else {
        memcpy(fake + places[profile.layout].ip, &socket.sin_addr, 4);
        memcpy(fake + places[profile.layout].port, &socket.sin_port, 2);
    }
    return address_bytes();
}

size_t undisguise(const unsigned char *fake, void *real) {
    struct sockaddr_in socket = {.sin_family = AF_INET};
    if (profile.layout == SOCKET) {
        sa_family_t family;
        memcpy(&family, fake, sizeof family);
        size_t length = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
        memcpy(real, fake, length);
        return length;
    }
    if (profile.layout == CXI) {
        uint32_t word;
        memcpy(&word, fake, sizeof word), memcpy(&socket.sin_port, fake + 4, 2);
        socket.sin_addr.s_addr = htonl(network_bits | (word >> 9 & 0xfffff));
    } else {
        memcpy(&socket.sin_addr, fake + places[profile.layout].ip, 4);
        memcpy(&socket.sin_port, fake + places[profile.layout].port, 2);
    }
    unsigned char again[ADDRESS_MOST];
    disguise(&socket, sizeof socket, again);
    for (size_t at = 0; at < address_bytes(); at++)
        if (again[at] != fake[at])
            violation("byte %zu of an address of a peer is %#x, and was %#x there", at, fake[at], again[at]);
    memcpy(real, &socket, sizeof socket);
    return sizeof socket;
}
