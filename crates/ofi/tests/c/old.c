/* An application of interface version 1.4: it knows only the two old registration modes, and smaller structs. The
 * memory behind its structs must not be written. */
#include "harness.h"

int main(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	CHECK(hints);
	hints->fabric_attr->prov_name = strdup("tidegate");
	hints->caps = FI_TAGGED | FI_RMA;
	OK(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &info));
	EQUAL(info->domain_attr->mr_mode, FI_MR_SCALABLE);
	EQUAL(fi_version() >= info->fabric_attr->api_version, 1);
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	fi_freeinfo(info);
	OK(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &info));
	EQUAL(info->domain_attr->mr_mode, FI_MR_BASIC);

	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG};
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_av_open(domain, &av_attr, &av, NULL));
	OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
	OK(fi_endpoint(domain, info, &ep, NULL));
	EQUAL(fi_enable(ep), -FI_ENOAV);
	OK(fi_ep_bind(ep, &av->fid, 0));
	EQUAL(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	EQUAL(fi_ep_bind(ep, &cq->fid, FI_RECV), -FI_EINVAL);
	OK(fi_enable(ep));
	/* In use: these stay. */
	EQUAL(fi_close(&cq->fid), -FI_EBUSY);
	EQUAL(fi_close(&av->fid), -FI_EBUSY);
	EQUAL(fi_close(&domain->fid), -FI_EBUSY);
	EQUAL(fi_close(&fabric->fid), -FI_EBUSY);

	char name[64], text[64];
	size_t length = 8;
	EQUAL(fi_getname(&ep->fid, name, &length), -FI_ETOOSMALL);
	CHECK(length > 8 && length <= sizeof name);
	OK(fi_getname(&ep->fid, name, &length));
	fi_addr_t self;
	EQUAL(fi_av_insert(av, name, 1, &self, 0, NULL), 1);
	EQUAL(self, 0);
	size_t room = sizeof text;
	CHECK(fi_av_straddr(av, name, text, &room));
	snprintf(name, sizeof name, "pid %d", (int)getpid());
	CHECK(!strncmp(text, name, strlen(name)));

	/* The error entry of that version ends before the size of the error data. */
	struct {
		struct fi_cq_err_entry entry;
		char behind[16];
	} place;
	char buffer[8];
	size_t known = offsetof(struct fi_cq_err_entry, err_data_size);
	OK(fi_trecv(ep, buffer, sizeof buffer, NULL, self, 1, 0, buffer));
	OK(fi_cancel(&ep->fid, buffer));
	struct fi_cq_msg_entry entry;
	EQUAL(fi_cq_read(cq, &entry, 1), -FI_EAVAIL);
	memset(&place, 0x5a, sizeof place);
	/* Called as an old binary calls it: newer headers fill in a field of their own first. */
	EQUAL(cq->ops->readerr(cq, &place.entry, 0), 1);
	EQUAL(place.entry.err, FI_ECANCELED);
	for (size_t i = known; i < sizeof place; i++)
		EQUAL(((unsigned char *)&place)[i], 0x5a);

	EQUAL(fi_trecv(ep, buffer, sizeof buffer, NULL, 99, 1, 0, buffer), 0);
	OK(fi_av_remove(av, &self, 1, 0));
	EQUAL(fi_tinject(ep, "x", 1, self, 1), -FI_EINVAL);
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	printf("pid %d\n", (int)getpid());
	return 0;
}
