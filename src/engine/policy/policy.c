/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - the table of policies. */
#include "engine/policy/policy.h"
#include "base/attr.h"

#include <strings.h>

static const struct policy *const policies[] = {
	&policy_default, &policy_binpack, &policy_spread,  &policy_random,
	&policy_fgd,	 &policy_bestfit, &policy_dotprod, &policy_packing,
};

const struct policy *policy_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (!strcasecmp(policies[i]->name, name))
			return policies[i];
	return NULL;
}

const struct policy *policy_at(size_t i)
{
	return i < ARRAY_SIZE(policies) ? policies[i] : NULL;
}
