/* Two processes send each other messages of all interesting sizes, tagged and untagged, by every send call. With the
 * argument `once`, the longest ones are sent once, by one of these calls: tests add it where each packet waits for an
 * answer, so that these messages would take most of the time and go the same way again. */
#include "harness.h"

static const size_t sizes[] = {0, 1, 2, 31, 32, 38, 39, 40, 41, 42, 55, 56, 57, 96, 97, 112, 113, 1000, 2000, 2047, 2048, 2049,
			       4096, 10000, 65535, 65536, 200000, 1 << 20, (4 << 20) + 3};
#define SIZES (sizeof sizes / sizeof *sizes)
#define LARGEST ((4 << 20) + 3)
/* Longer messages than these are the longest ones. */
#define USUAL 200000

static unsigned char *out, *in;
static bool once;

static void post(bool tagged, size_t length, uint64_t tag)
{
	fi_addr_t peer = my.peers[1 - my.rank];
	if (tagged)
		OK_WHEN_ROOM(fi_trecv(my.ep, in, length, NULL, peer, tag, 0, in));
	else
		OK_WHEN_ROOM(fi_recv(my.ep, in, length, NULL, peer, in));
}

/* Sends and receives one message at the same time, as one scattered piece if `pieces`. */
static void swap(bool tagged, size_t length, uint64_t tag, bool with_data, bool pieces)
{
	fi_addr_t peer = my.peers[1 - my.rank];
	uint64_t data = 0x1122334455667788ull * (uint64_t)(with_data ? 1 + my.rank : 0);
	struct iovec iov[3] = {{out, length / 3}, {out + length / 3, 0}, {out + length / 3, length - length / 3}};

	fill(out, length, (unsigned)(length + tag) * 2 + (unsigned)my.rank);
	post(tagged, length, tag);
	if (pieces && tagged)
		OK_WHEN_ROOM(fi_tsendv(my.ep, iov, NULL, 3, peer, tag, out));
	else if (pieces)
		OK_WHEN_ROOM(fi_sendv(my.ep, iov, NULL, 3, peer, out));
	else if (with_data && tagged)
		OK_WHEN_ROOM(fi_tsenddata(my.ep, out, length, NULL, data, peer, tag, out));
	else if (with_data)
		OK_WHEN_ROOM(fi_senddata(my.ep, out, length, NULL, data, peer, out));
	else if (tagged)
		OK_WHEN_ROOM(fi_tsend(my.ep, out, length, NULL, peer, tag, out));
	else
		OK_WHEN_ROOM(fi_send(my.ep, out, length, NULL, peer, out));

	for (int done = 0; done < 2; done++) {
		fi_addr_t source = 12345;
		struct fi_cq_tagged_entry entry = next_from(&source);
		uint64_t kind = tagged ? FI_TAGGED : FI_MSG;
		if (entry.op_context == out) {
			EQUAL(entry.flags & (kind | FI_SEND | FI_RECV), kind | FI_SEND);
			continue;
		}
		CHECK(entry.op_context == in);
		EQUAL(entry.flags & (kind | FI_SEND | FI_RECV), kind | FI_RECV);
		EQUAL(entry.len, length);
		EQUAL(source, peer);
		if (tagged)
			EQUAL(entry.tag, tag);
		EQUAL(!!(entry.flags & FI_REMOTE_CQ_DATA), with_data);
		if (with_data)
			EQUAL(entry.data, 0x1122334455667788ull * (uint64_t)(2 - my.rank));
	}
	check_filled(in, length, (unsigned)(length + tag) * 2 + (unsigned)(1 - my.rank));
}

/* Injected messages complete at the receiver only, and their memory may change at once. */
static void inject_all(void)
{
	fi_addr_t peer = my.peers[1 - my.rank];
	for (unsigned i = 0; i < 300; i++) {
		size_t length = i * 7 % (my.info->tx_attr->inject_size + 1);
		fill(out, length, i);
		if (i % 2)
			OK_WHEN_ROOM(fi_tinjectdata(my.ep, out, length, i, peer, 7));
		else
			OK_WHEN_ROOM(fi_tinject(my.ep, out, length, peer, 7));
		memset(out, 0xee, length);
	}
	EQUAL(fi_tinject(my.ep, out, my.info->tx_attr->inject_size + 1, peer, 7), -FI_EMSGSIZE);
	for (unsigned i = 0; i < 300; i++) {
		size_t length = i * 7 % (my.info->tx_attr->inject_size + 1);
		OK_WHEN_ROOM(fi_trecv(my.ep, in, length, NULL, FI_ADDR_UNSPEC, 7, 0, in));
		struct fi_cq_tagged_entry entry = next();
		CHECK(entry.op_context == in);
		EQUAL(entry.len, length);
		if (i % 2)
			EQUAL(entry.data, i);
		check_filled(in, length, i);
	}
}

/* A burst larger than any mailbox, received late: everything arrives, in order. */
static void burst(void)
{
	enum { COUNT = 2000 };
	static uint64_t numbers[COUNT], got[COUNT];
	fi_addr_t peer = my.peers[1 - my.rank];
	for (int i = 0; i < COUNT; i++) {
		numbers[i] = (uint64_t)i;
		OK_WHEN_ROOM(fi_tsend(my.ep, &numbers[i], sizeof numbers[i], NULL, peer, 9, NULL));
	}
	for (int i = 0; i < COUNT; i++)
		OK_WHEN_ROOM(fi_trecv(my.ep, &got[i], sizeof got[i], NULL, peer, 9, 0, &got[i]));
	for (int i = 0; i < 2 * COUNT; i++)
		next();
	for (int i = 0; i < COUNT; i++)
		EQUAL(got[i], i);
}

static void body(void)
{
	out = malloc(LARGEST);
	in = malloc(LARGEST);
	for (int tagged = 0; tagged < 2; tagged++)
		for (size_t i = 0; i < SIZES; i++) {
			bool is_long = sizes[i] > USUAL;
			if (once && is_long && !tagged)
				continue;
			swap(tagged, sizes[i], 1000 + i, false, false);
			if (once && is_long)
				continue;
			swap(tagged, sizes[i], 2000 + i, true, false);
			swap(tagged, sizes[i], 3000 + i, false, true);
		}
	inject_all();
	/* inject_all has left no completion. That is checked here, because sends of the burst complete at any time. */
	struct fi_cq_tagged_entry entry;
	EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EAGAIN);
	burst();
	meet(2);
}

int main(int count, char **arguments)
{
	once = count > 1 && !strcmp(arguments[1], "once");
	return run(2, &(struct wishes){0}, body, -1);
}
