/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/story.h"

#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "engine/policy/policy.h"
#include "sim/description.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/shape.h"
#include "sim/story_private.h"
#include "sim/world.h"
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

		rc = name ? step(w, name, err)
			  : err_set(err, EINVAL, "a name must be a string, not %s",
				    shape_name(item));
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

/* An entry names a node, or one GPU of it. */
static int at_place(struct world *w, const struct json *place,
		    int (*gpu_step)(struct world *w, const char *node, int64_t gpu,
				    struct err *err),
		    int (*node_step)(struct world *w, const char *node, struct err *err),
		    struct err *err)
{
	const char *node = json_str(place, "node");
	int64_t gpu;

	if (!node)
		return err_set(err, EINVAL,
			       "an entry needs a node: {node: NAME} or {node: NAME, "
			       "gpu: ID}");
	if (json_i64(place, &gpu, "gpu") == 0)
		return gpu_step(w, node, gpu, err);
	return node_step(w, node, err);
}

static int fail(struct world *w, const struct json *place, struct err *err)
{
	return at_place(w, place, world_fail_gpu, world_fail_node, err);
}

static int recover(struct world *w, const struct json *place, struct err *err)
{
	return at_place(w, place, world_recover_gpu, world_recover_node, err);
}

static int for_places(struct world *w, const struct json *list, place_step step, struct err *err)
{
	static const struct shape_key keys[] = { { "node", SHAPE_STRING },
						 { "gpu", SHAPE_NUMBER },
						 { NULL, 0 } };
	struct json_iter iter = json_items(list);
	const struct json *item;
	int rc = 0;

	while (rc == 0 && (item = json_next(&iter))) {
		rc = shape_check(item, keys, err);
		if (rc == 0)
			rc = step(w, item, err);
	}
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
	return 0; /* null: nothing is asked for; check_step() knows the others */
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

static int check_step(const struct json *step, struct err *err)
{
	static const struct shape_key keys[] = {
		{ "submit", SHAPE_LIST },   { "expect", SHAPE_OBJECT },
		{ "delete", SHAPE_LIST },   { "fail", SHAPE_LIST },
		{ "recover", SHAPE_LIST },  { "cordon", SHAPE_LIST },
		{ "uncordon", SHAPE_LIST }, { NULL, 0 },
	};

	if (json_type(step) != JSON_OBJECT || !json_len(step))
		return err_set(err, EINVAL, "a step is an object such as {delete: [name]}, not %s",
			       shape_name(step));
	return shape_check(step, keys, err);
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

		rc = check_step(step, err);
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

static int check_root(const struct json *root, struct err *err)
{
	static const struct shape_key keys[] = {
		{ "name", SHAPE_STRING },
		{ "cluster", SHAPE_OBJECT },
		{ "steps", SHAPE_LIST },
		{ "preemption", SHAPE_BOOL },
		{ "policy", SHAPE_STRING },
		{ "seed", SHAPE_NUMBER },
		{ NULL, 0 },
	};
	int rc = shape_check(root, keys, err);

	if (rc < 0)
		return rc;
	if (!json_get(root, "cluster") || !json_len(root, "steps"))
		return err_set(err, EINVAL, "a scenario needs a cluster and steps");
	return 0;
}

static int configure(const char *name, const struct json *root, struct world_config *ret,
		     struct err *err)
{
	const char *policy = json_str(root, "policy");
	bool preemption = true;
	int64_t seed = 1;
	int rc = check_root(root, err);

	if (rc < 0) {
		err_prefix(err, "%s", name);
		return rc;
	}
	json_bool(root, &preemption, "preemption");
	ret->policy = policy ? policy_find(policy) : NULL;
	if (policy && !ret->policy)
		return err_set(err, EINVAL, "%s: there is no policy %.40s", name, policy);
	if (json_i64(root, &seed, "seed") == -EINVAL || seed < 0)
		return err_set(err, EINVAL, "%s: seed must be a whole number", name);
	ret->no_preemption = !preemption;
	ret->seed = (uint64_t)seed;
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
	if ((rc = run_steps(&s, &m, root, err)) < 0)
		return rc;
	if (!ret->checked && !ret->failed)
		return err_set(err, EINVAL, "%s: nothing is expected in any step", name);
	return 0;
}

int story_run(const char *name, const char *text, size_t len, struct strbuf *out,
	      struct story_result *ret, struct err *err)
{
	struct yaml yaml CLEANUP(description_done) = YAML_INIT;
	int rc = description_parse(name, "a scenario", text, len, &yaml, err);

	return rc < 0 ? rc : run_root(name, json_root(yaml.items[0].doc), out, ret, err);
}

int story_run_file(const char *path, struct strbuf *out, struct story_result *ret, struct err *err)
{
	struct yaml yaml CLEANUP(description_done) = YAML_INIT;
	int rc = description_read(path, "a scenario", &yaml, err);

	return rc < 0 ? rc : run_root(path, json_root(yaml.items[0].doc), out, ret, err);
}
