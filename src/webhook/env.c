/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/env.h"

#include <string.h>

#include "base/utf8.h"
#include "webhook/admission.h"
#include "webhook/variables.h"
#include "wire/json.h"

struct env {
	struct ruling *ruling;
	const struct json *container;
	struct patch_path path;	  /* of the list */
	size_t removed;		  /* entries that are gone already */
	bool seen[VARIABLES_MAX]; /* by number of the variable: it is in the list */
};

/* {"name":...,"value":...}, or with valueFrom. */
static void write_entry(struct json_writer *w, const struct variable *v)
{
	json_open_object(w);
	json_add_key(w, "name");
	json_add_str(w, v->name);
	if (v->field) {
		json_add_key(w, "valueFrom");
		json_open_object(w);
		json_add_key(w, "fieldRef");
		json_open_object(w);
		json_add_key(w, "apiVersion");
		json_add_str(w, "v1");
		json_add_key(w, "fieldPath");
		json_add_str(w, v->value);
		json_close_object(w);
		json_close_object(w);
	} else {
		json_add_key(w, "value");
		json_add_str(w, v->value);
	}
	json_close_object(w);
}

static int find(const struct variables *list, const char *name)
{
	for (unsigned i = 0; name && i < list->count; i++)
		if (strcmp(list->items[i].name, name) == 0)
			return (int)i;
	return -1;
}

static void warn_replaced(const struct env *env, const struct variable *v,
			  const struct json *entry)
{
	const char *container = json_str(env->container, "name");
	const char *value = json_str(entry, "value");
	char shown[UTF8_SHOW_MAX] = "its source";

	if (value)
		utf8_show(value, strlen(value), shown);
	ruling_warn(env->ruling, "container %s: %s is set by gpu-scheduler, %s%s%s was replaced",
		    container ? container : "", v->name, value ? "\"" : "", shown,
		    value ? "\"" : "");
}

/* An entry that has the name of one of ours: it stays, is replaced, or goes. */
static void settle(struct env *env, const struct variables *list, unsigned number,
		   const struct json *entry, size_t index)
{
	const struct variable *v = &list->items[number];
	struct patch_path at = patch_index(env->path, index - env->removed);
	bool again = env->seen[number];

	env->seen[number] = true;
	if (!v->forced || (!again && variable_is(v, entry)))
		return;
	if (!variable_is(v, entry))
		warn_replaced(env, v, entry);
	patch_test(&env->ruling->patch, patch_key(at, "name"), v->name);
	if (again) {
		patch_remove(&env->ruling->patch, at);
		env->removed++;
		return;
	}
	write_entry(patch_replace(&env->ruling->patch, at), v);
	patch_end(&env->ruling->patch);
}

static void add_missing(const struct env *env, const struct variables *list)
{
	struct patch *patch = &env->ruling->patch;

	for (unsigned i = list->count; i-- > 0;) {
		if (env->seen[i])
			continue;
		write_entry(patch_add(patch, patch_index(env->path, 0)), &list->items[i]);
		patch_end(patch);
	}
}

static void add_list(const struct env *env, const struct variables *list)
{
	struct json_writer *w =
		patch_set(&env->ruling->patch, env->path, json_get(env->container, "env"));

	json_open_array(w);
	for (unsigned i = 0; i < list->count; i++)
		write_entry(w, &list->items[i]);
	json_close_array(w);
	patch_end(&env->ruling->patch);
}

void env_patch(struct ruling *ruling, const struct json *container, struct patch_path at,
	       const struct variables *variables)
{
	struct env env = { .ruling = ruling,
			   .container = container,
			   .path = patch_key(at, "env") };
	struct json_iter iter = json_items(container, "env");
	const struct json *entry;

	if (variables->count == 0)
		return;
	if (json_type(container, "env") != JSON_ARRAY) {
		add_list(&env, variables);
		return;
	}
	for (size_t i = 0; (entry = json_next(&iter)); i++) {
		int number = find(variables, json_str(entry, "name"));

		if (number >= 0)
			settle(&env, variables, (unsigned)number, entry, i);
	}
	add_missing(&env, variables);
}
