/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/asks.h"

#include <string.h>

#include "base/attr.h"
#include "dialect/dialect.h"
#include "dialect/keys.h"
#include "wire/json.h"
#include "wire/quantity.h"

const char *const container_lists[2] = { "initContainers", "containers" };

/* What is no quantity is no zero either: somebody wants something. */
static bool is_zero(const struct json *value)
{
	struct quantity q;

	return quantity_from_json(value, &q, NULL) == 0 && q.nano == 0;
}

static bool limits_ask(const struct json *container, bool *elastic)
{
	struct json_iter iter = json_members(container, "resources", "limits");
	struct json_member m;
	bool asks = false;

	while (json_next_member(&iter, &m)) {
		if (!dialect_is_gpu_resource(m.key) || is_zero(m.value))
			continue;
		asks = true;
		*elastic |= strncmp(m.key, PREFIX_ELASTIC, sizeof(PREFIX_ELASTIC) - 1) == 0;
	}
	return asks;
}

bool container_asks(const struct json *container)
{
	bool elastic = false;

	return limits_ask(container, &elastic);
}

/* "" is one that asks for something that cannot be read: it has a NUL. */
static const char *annotation(const struct json *annotations, const char *key)
{
	const char *text = json_str(annotations, key);

	return text || !json_get(annotations, key) ? text : "";
}

void pod_asks_read(const struct json *pod, struct pod_asks *ret)
{
	const struct json *annotations = json_get(pod, "metadata", "annotations");
	const char *scheduler = json_str(pod, "spec", "schedulerName");

	*ret = (struct pod_asks){
		.scheduler = scheduler ? scheduler : "",
		.claim = annotation(annotations, KEY_CLAIM),
		.map = annotation(annotations, KEY_MAP),
		.count = annotation(annotations, KEY_GPU_COUNT) != NULL,
	};
	for (unsigned i = 0; i < ARRAY_SIZE(container_lists); i++) {
		struct json_iter iter = json_items(pod, "spec", container_lists[i]);

		for (const struct json *c; (c = json_next(&iter));)
			ret->limits |= limits_ask(c, &ret->elastic);
	}
}

bool pod_asks_any(const struct pod_asks *asks)
{
	return asks->limits || asks->claim || asks->map || asks->map_of_owner || asks->count;
}
