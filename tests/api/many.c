// SPDX-License-Identifier: GPL-2.0
/* Very many identifiers, which stay until the suite "many-gone" is run or the module unloads. */

#include <linux/mm.h>

#include "api.h"

#define MANY	100000

static struct ib_cm_id **ids;
static unsigned int made;

static int nobody(struct ib_cm_id *cm_id, const struct ib_cm_event *event)
{
	return 0;
}

static void make(struct api_test *t)
{
	if (!api_check(t, !ids, "they exist already"))
		return;
	ids = kvcalloc(MANY, sizeof(*ids), GFP_KERNEL);
	if (!api_check(t, ids, "no memory"))
		return;
	for (made = 0; made < MANY; made++) {
		ids[made] = ib_create_cm_id(api_device.ib_device, nobody, NULL);
		if (!api_check(t, !IS_ERR(ids[made]), "number %u: %pe", made, ids[made]))
			break;
		cond_resched();
	}
}

void api_many_free(void)
{
	while (made) {
		ib_destroy_cm_id(ids[--made]);
		cond_resched();
	}
	kvfree(ids);
	ids = NULL;
}

static void destroy(struct api_test *t)
{
	api_eq(t, made, MANY, "identifiers");
	api_many_free();
}

static const struct api_case make_cases[] = {
	{ "100,000 identifiers are made", make },
};

static const struct api_case gone_cases[] = {
	{ "they are destroyed", destroy },
};

const struct api_suite api_suite_many = {
	.name = "many",
	.cases = make_cases,
	.count = ARRAY_SIZE(make_cases),
	.keep = true,
};

const struct api_suite api_suite_many_gone = {
	.name = "many-gone",
	.cases = gone_cases,
	.count = ARRAY_SIZE(gone_cases),
	.no_device = true,
};
