/* Delivery complete as an endpoint's default: a short message counts as delivered when it lies in its receiver's
 * mailbox.
 *
 * fi_tidegate(7): "FI_DELIVERY_COMPLETE as an endpoint's default (op_flags), which MPIs set for the sake of their RMA, does
 * not: an eager message is delivered when it lies whole in the mailbox of its receiver, within the window kept for it
 * (“buffered by the provider”, fi_cq(3))." */
#include "harness.h"

static char text[40], got[40];

static void body(void)
{
	if (my.rank == 0) {
		strcpy(text, "here");
		OK_WHEN_ROOM(fi_tsend(my.ep, text, sizeof text, NULL, my.peers[1], 1, text));
		/* Nobody receives before we have met. */
		CHECK(next().op_context == text);
	}
	meet(2);
	if (my.rank == 1) {
		OK_WHEN_ROOM(fi_trecv(my.ep, got, sizeof got, NULL, my.peers[0], 1, 0, got));
		CHECK(next().op_context == got && !strcmp(got, "here"));
	}
	meet(2);
}

int main(void)
{
	return run(2, &(struct wishes){.op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE}, body, -1);
}
