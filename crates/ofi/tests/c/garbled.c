/* Addresses that a launcher has changed, cut or mixed up with others are refused one by one, and the good ones between
 * them are not. */
#include "harness.h"

enum { COUNT = 6, BYTES = 64 };

int main(void)
{
	struct wishes wishes = {0};
	unsigned char names[COUNT][BYTES];
	size_t length = BYTES;
	int errors[COUNT];
	fi_addr_t places[COUNT];

	alarm(60);
	my.ranks = 1;
	printf("pid %d\n", (int)getpid());
	open_endpoint(&wishes);
	OK(fi_getname(&my.ep->fid, names[0], &length));
	for (int i = 1; i < COUNT; i++)
		memcpy(names[i], names[0], BYTES);
	names[1][40] ^= 1;              /* in the network's part, of which shared memory needs nothing */
	memset(names[2] + 32, 0, 32);   /* cut in the middle, where it is not empty behind that */
	names[2][31] ^= 0x80;
	memset(names[3], 'x', BYTES);   /* something else */
	names[4][2] = '3';              /* another version */
	EQUAL(fi_av_insert(my.av, names, COUNT, places, FI_SYNC_ERR, errors), 2);
	for (int i = 0; i < COUNT; i++) {
		bool good = i == 0 || i == COUNT - 1;
		EQUAL(errors[i], good ? 0 : FI_EINVAL);
		CHECK((places[i] == FI_ADDR_NOTAVAIL) == !good);
	}
	close_endpoint();
	return 0;
}
