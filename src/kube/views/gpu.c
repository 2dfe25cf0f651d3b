/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/views/gpu.h"

#include "base/err.h"
#include "wire/json.h"

int claim_view_read(const struct json *claim, struct claim_view *ret, struct err *err)
{
	static const char *const phases[] = { "Pending", "Reserved", "Bound", "Failed", NULL };
	struct view_field field = { claim, "GpuClaim", "status", "phase" };
	struct claim_view view;
	int rc, phase;
	if ((rc = view_meta_read(claim, "GpuClaim", &view.meta, err)) < 0 ||
	    (rc = view_word(&field, phases, &phase, err)) < 0)
		return rc;
	view.phase = (enum claim_phase)phase;
	field.name = "observedGeneration";
	if ((rc = view_i64(&field, 0, INT64_MAX, 0, &view.observed_generation, err)) < 0)
		return rc;
	field.name = "nodeName";
	if ((rc = view_str(&field, &view.node, err)) < 0)
		return rc;
	field.name = "allocated";
	if ((rc = view_str(&field, &view.allocated, err)) < 0)
		return rc;
	field.name = "message";
	if ((rc = view_str(&field, &view.message, err)) < 0)
		return rc;
	field.name = "allocations";
	view.allocations = view_get(&field);
	if (view.allocations && json_type(view.allocations) != JSON_ARRAY)
		return view_wrong(&field, "no list", err);
	*ret = view;
	return 0;
}

int node_status_view_read(const struct json *status, struct node_status_view *ret, struct err *err)
{
	static const char *const modes[] = { "cdi", "env", "external", "all", NULL };
	struct view_field field = { status, "GpuNodeStatus", "status", "injectionMode" };
	struct node_status_view view;
	int rc, mode;
	if ((rc = view_meta_read(status, "GpuNodeStatus", &view.meta, err)) < 0 ||
	    (rc = view_word(&field, modes, &mode, err)) < 0)
		return rc;
	view.injection = (enum injection_mode)mode;
	field.name = "observedGeneration";
	if ((rc = view_i64(&field, 0, INT64_MAX, 0, &view.observed_generation, err)) < 0)
		return rc;
	field.name = "devices";
	const struct json *devices = view_get(&field);
	if (devices && json_type(devices) != JSON_ARRAY)
		return view_wrong(&field, "no list", err);
	view.devices = (uint32_t)json_len(devices);
	*ret = view;
	return 0;
}

int config_view_read(const struct json *config, const char *kind, struct config_view *ret,
		     struct err *err)
{
	struct view_field field = { config, kind, NULL, "spec" };
	struct config_view view;
	int rc = view_meta_read(config, kind, &view.meta, err);
	if (rc < 0)
		return rc;
	view.spec = view_get(&field);
	if (view.spec && json_type(view.spec) != JSON_OBJECT)
		return view_wrong(&field, "no object", err);
	*ret = view;
	return 0;
}

const char *config_map_text(const struct json *config_map, const char *key)
{
	return json_str(config_map, "data", key);
}
