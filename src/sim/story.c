/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/story.h"

#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "engine/policy/policy.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/story_private.h"
#include "sim/world.h"
#include "wire/file.h"
#include "wire/json.h"
#include "wire/yaml.h"

typedef int (*named_step)(struct world *w, const char *name, struct err *err);
typedef int (*place_step)(struct world *w, const struct json *place, struct err *err);

static int for_names(struct world *w, const struct json *list, named_step step, struct err *err)
{
	struct json_iter iter = json_items(list);
	const struct json *item;
	int rc = 0;

	while (rc == 0 && (item = json_next(&iter))) {
		const char *name = json_str(item);

		rc = name ? step(w, name, err) : err_set(err, EINVAL, "a name is no string");
	}
	return rc;
}

static int cordon(struct world *w, const char *node, struct err *err)
{
	return world_cordon(w, node, true, err);
}

static int uncordon(struct world *w, const char *node, struct err *err)
{
	return world_cordon(w, node, false, err);
}

static int fail(struct world *w, const struct json *place, struct err *err)
{
	const char *node = json_str(place, "node");
	int64_t gpu;

	if (!node)
		return err_set(err, EINVAL, "there is no node");
	if (json_i64(place, &gpu, "gpu") == 0)
		return world_fail_gpu(w, node, gpu, err);
	return world_fail_node(w, node, err);
}

static int recover(struct world *w, const struct json *place, struct err *err)
{
	const char *node = json_str(place, "node");
	int64_t gpu;

	if (!node)
		return err_set(err, EINVAL, "there is no node");
	if (json_i64(place, &gpu, "gpu") == 0)
		return world_recover_gpu(w, node, gpu, err);
	return world_recover_node(w, node, err);
}

static int for_places(struct world *w, const struct json *list, place_step step, struct err *err)
{
	struct json_iter iter = json_items(list);
	const struct json *item;
	int rc = 0;

	while (rc == 0 && (item = json_next(&iter)))
		rc = step(w, item, err);
	return rc;
}

static int submit(struct story *s, struct manifests *m, const struct json *objects,
		  struct err *err)
{
	struct json_iter iter = json_items(objects);
	size_t from = m->items.len;
	const struct json *object;
	int rc = 0;

	while (rc == 0 && (object = json_next(&iter)))
		rc = manifests_add(m, object, err);
	return rc < 0 ? rc : world_submit(s->world, m, from, err);
}

static int run_step(struct story *s, struct manifests *m, const struct json_member *step,
		    struct err *err)
{
	if (strcmp(step->key, "submit") == 0)
		return submit(s, m, step->value, err);
	if (strcmp(step->key, "expect") == 0)
		return story_expect(s, step->value, err);
	if (strcmp(step->key, "delete") == 0)
		return for_names(s->world, step->value, world_delete, err);
	if (strcmp(step->key, "fail") == 0)
		return for_places(s->world, step->value, fail, err);
	if (strcmp(step->key, "recover") == 0)
		return for_places(s->world, step->value, recover, err);
	if (strcmp(step->key, "cordon") == 0)
		return for_names(s->world, step->value, cordon, err);
	if (strcmp(step->key, "uncordon") == 0)
		return for_names(s->world, step->value, uncordon, err);
	return err_set(err, EINVAL, "step %.40s is unknown", step->key);
}

/* The cluster's own books must be right after everything. */
static void check_books(struct story *s)
{
	const char *wrong = cluster_check(world_cluster(s->world));

	if (!wrong)
		return;
	s->result->failed++;
	strbuf_addf(s->out, "step %zu: the cluster contradicts itself: %s\n", s->step, wrong);
}

static int run_steps(struct story *s, struct manifests *m, const struct json *root,
		     struct err *err)
{
	struct json_iter steps = json_items(root, "steps");
	const struct json *step;
	int rc = 0;

	for (s->step = 1; rc == 0 && (step = json_next(&steps)); s->step++) {
		struct json_iter members = json_members(step);
		struct json_member member;

		while (rc == 0 && json_next_member(&members, &member)) {
			rc = run_step(s, m, &member, err);
			if (rc == 0)
				rc = world_settle(s->world, err);
		}
		if (rc < 0)
			err_prefix(err, "%s: step %zu", s->name, s->step);
		else
			check_books(s);
	}
	return rc;
}

static int configure(const char *name, const struct json *root, struct world_config *ret,
		     struct err *err)
{
	const char *policy = json_str(root, "policy");
	bool preemption = true;
	int64_t seed = 1;

	json_bool(root, &preemption, "preemption");
	json_i64(root, &seed, "seed");
	ret->no_preemption = !preemption;
	ret->seed = (uint64_t)seed;
	ret->policy = policy ? policy_find(policy) : NULL;
	if (policy && !ret->policy)
		return err_set(err, EINVAL, "%s: there is no policy %.40s", name, policy);
	return 0;
}

static int run_root(const char *name, const struct json *root, struct strbuf *out,
		    struct story_result *ret, struct err *err)
{
	struct manifests m CLEANUP(manifests_done) = { 0 };
	struct fleet *fleet CLEANUP(fleet_freep) = NULL;
	struct world *world CLEANUP(world_freep) = NULL;
	struct world_config config = { .seed = 1 };
	int rc;

	*ret = (struct story_result){ 0 };
	if ((rc = configure(name, root, &config, err)) < 0 ||
	    (rc = fleet_new(name, json_get(root, "cluster"), &fleet, err)) < 0 ||
	    (rc = world_new(fleet, &config, &world, err)) < 0)
		return rc;
	struct story s = { name, world, out, ret, 0 };
	return run_steps(&s, &m, root, err);
}

static void yaml_cleanup(struct yaml *y)
{
	yaml_done(y);
}

int story_run(const char *name, const char *text, size_t len, struct strbuf *out,
	      struct story_result *ret, struct err *err)
{
	struct yaml yaml CLEANUP(yaml_cleanup) = YAML_INIT;
	int rc = yaml_parse(name, text, len, NULL, &yaml, err);

	if (rc < 0)
		return rc;
	if (yaml.len != 1)
		return err_set(err, EINVAL, "%s: a scenario is one document", name);
	return run_root(name, json_root(yaml.items[0].doc), out, ret, err);
}

int story_run_file(const char *path, struct strbuf *out, struct story_result *ret, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	int rc = file_read(path, MANIFEST_FILE_MAX, &text, err);

	return rc < 0 ? rc : story_run(path, text.s, text.len, out, ret, err);
}
