/* An application that expects a million addresses gets an endpoint that is made for fewer: a hint reserves no more than
 * 64 MiB for the mailbox. With `pool`, slots belong to no peer, and all find room in little.
 *
 * usage: expecting [pool] */
#include "harness.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

/* Bytes that the segments of this process take in /dev/shm. */
static long long bytes_of_segments(void)
{
	long long bytes = 0;
	char own[32], path[300];
	struct dirent *entry;
	struct stat status;
	DIR *folder = opendir("/dev/shm");
	CHECK(folder);
	snprintf(own, sizeof own, "-%d-", (int)getpid());
	while ((entry = readdir(folder))) {
		snprintf(path, sizeof path, "/dev/shm/%s", entry->d_name);
		if (!strncmp(entry->d_name, "tidegate-", 9) && strstr(entry->d_name, own) && stat(path, &status) == 0)
			bytes += 512LL * status.st_blocks;
	}
	closedir(folder);
	return bytes;
}

int main(int argc, char **argv)
{
	enum { MIB = 1 << 20 };
	struct statvfs room;
	printf("pid %d\n", (int)getpid());
	EQUAL(statvfs("/dev/shm", &room), 0);
	if ((long long)room.f_bavail * (long long)room.f_frsize < 200LL * MIB) {
		printf("SKIPPED: /dev/shm has less than 200 MiB\n");
		return 0;
	}
	/* fi_tidegate(7): "It is a hint: for it alone no mailbox takes more than 64 MiB in /dev/shm, and a line says if it
	 * would have." */
	my.ranks = 1048560;
	open_endpoint(&(struct wishes){0});
	long long bytes = bytes_of_segments();
	bool is_pool = argc > 1 && !strcmp(argv[1], "pool");
	if (is_pool ? bytes > 8LL * MIB : bytes < 64LL * MIB || bytes > 80LL * MIB)
		FAIL("the segment takes %lld bytes", bytes);
	my.ranks = 1;
	close_endpoint();
	return 0;
}
