/* Nobody can guess, and so take, the name of the socket by which an endpoint is woken; and an endpoint whose enabling
 * fails for want of descriptors fails again, and is enabled when there are some. */
#include "harness.h"
#include <dirent.h>
#include <sys/resource.h>

/* The soft limit of descriptors. Returns what it was. */
static rlim_t limit_descriptors(rlim_t most)
{
	struct rlimit limit;
	OK(getrlimit(RLIMIT_NOFILE, &limit));
	rlim_t before = limit.rlim_cur;
	limit.rlim_cur = most;
	OK(setrlimit(RLIMIT_NOFILE, &limit));
	return before;
}

/* Whether a socket of the host has this in its name. */
static bool has_socket(const char *name)
{
	char line[512];
	bool found = false;
	FILE *sockets = fopen("/proc/net/unix", "r");
	CHECK(sockets);
	while (fgets(line, sizeof line, sockets))
		found |= strstr(line, name) != NULL;
	fclose(sockets);
	return found;
}

int main(void)
{
	struct wishes wishes = {.wait = FI_WAIT_FD};
	struct fi_av_attr av_attr = {.count = 1};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
	char name[64], segment[256] = "";
	size_t length = sizeof name;
	struct dirent *entry;

	alarm(60);
	printf("pid %d\n", (int)getpid());
	struct fi_info *hints = hints_for(&wishes);
	OK(fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), NULL, NULL, 0, hints, &my.info));
	fi_freeinfo(hints);
	OK(fi_fabric(my.info->fabric_attr, &my.fabric, NULL));
	OK(fi_domain(my.fabric, my.info, &my.domain, NULL));
	OK(fi_av_open(my.domain, &av_attr, &my.av, NULL));
	OK(fi_cq_open(my.domain, &cq_attr, &my.cq, NULL));
	OK(fi_endpoint(my.domain, my.info, &my.ep, NULL));
	OK(fi_ep_bind(my.ep, &my.av->fid, 0));
	OK(fi_ep_bind(my.ep, &my.cq->fid, FI_TRANSMIT | FI_RECV));
	/* From here on the segment is there, and its name can be read by anybody. */
	OK(fi_getname(&my.ep->fid, name, &length));
	rlim_t before = limit_descriptors(3);
	CHECK(fi_enable(my.ep) < 0);
	CHECK(fi_enable(my.ep) < 0);
	limit_descriptors(before);
	OK(fi_enable(my.ep));
	OK(fi_enable(my.ep));

	char own[32];
	snprintf(own, sizeof own, "-%d-", (int)getpid());
	DIR *folder = opendir("/dev/shm");
	CHECK(folder);
	while ((entry = readdir(folder)))
		if (strstr(entry->d_name, "tidegate-") && strstr(entry->d_name, own))
			snprintf(segment, sizeof segment, "%s", entry->d_name);
	closedir(folder);
	CHECK(segment[0]);
	CHECK(has_socket("@tidegate-"));
	CHECK(!has_socket(segment));
	CHECK(!has_socket(strrchr(segment, '-') + 1));
	close_endpoint();
	return 0;
}
