/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/views/node.h"

#include "kube/timestamp.h"
#include "wire/json.h"

#include <string.h>

/* One that cannot be read is as good as none: it is for people and for pauses. */
static int64_t ready_since(const struct json *node)
{
	struct json_iter iter = json_items(node, "status", "conditions");
	for (const struct json *item; (item = json_next(&iter));) {
		const char *type = json_str(item, "type");
		const char *text = json_str(item, "lastTransitionTime");
		int64_t ns;
		if (type && strcmp(type, "Ready") == 0)
			return text && timestamp_parse(text, strlen(text), &ns) == 0
				       ? ns
				       : VIEW_TIME_NONE;
	}
	return VIEW_TIME_NONE;
}

int node_view_read(const struct json *node, struct node_view *ret, struct err *err)
{
	struct view_field field = { node, "Node", "spec", "unschedulable" };
	struct node_view view;
	int rc;
	if ((rc = view_meta_read(node, "Node", &view.meta, err)) < 0 ||
	    (rc = view_bool(&field, &view.unschedulable, err)) < 0)
		return rc;
	field.name = "taints";
	const struct json *taints = view_get(&field);
	if (taints && json_type(taints) != JSON_ARRAY)
		return view_wrong(&field, "no list", err);
	view.taints = (uint32_t)json_len(taints);
	view.ready = view_condition(node, "Ready", &view.ready_reason);
	view.ready_since_ns = ready_since(node);
	*ret = view;
	return 0;
}
