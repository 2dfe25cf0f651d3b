/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/views/lease.h"

#include "base/err.h"
#include "wire/json.h"

#include <string.h>

static int read_spec(const struct json *lease, struct lease_view *view, struct err *err)
{
	struct view_field field = { lease, "Lease", "spec", "holderIdentity" };
	int rc = view_str(&field, &view->holder, err);
	if (rc < 0)
		return rc;
	field.name = "leaseDurationSeconds";
	if ((rc = view_i64(&field, 0, INT32_MAX, 0, &view->duration_s, err)) < 0)
		return rc;
	field.name = "leaseTransitions";
	if ((rc = view_i64(&field, 0, INT32_MAX, 0, &view->transitions, err)) < 0)
		return rc;
	field.name = "acquireTime";
	if ((rc = view_time(&field, &view->acquire_ns, err)) < 0)
		return rc;
	field.name = "renewTime";
	return view_time(&field, &view->renew_ns, err);
}

int lease_view_read(const struct json *lease, struct lease_view *ret, struct err *err)
{
	struct lease_view view;
	int rc;
	if ((rc = view_meta_read(lease, "Lease", &view.meta, err)) < 0 ||
	    (rc = read_spec(lease, &view, err)) < 0)
		return rc;
	const char *managed = json_str(lease, "metadata", "labels", "gpu.scheduling/managed");
	view.managed = managed && strcmp(managed, "true") == 0;
	view.labels = json_get(lease, "metadata", "labels");
	view.annotations = json_get(lease, "metadata", "annotations");
	*ret = view;
	return 0;
}
