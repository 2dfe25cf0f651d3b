/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "wire/file.h"
#include "wire/json.h"

#define NAMED(kind) kind " " CONFIG_NAMESPACE "/" CONFIG_NAME

/* What the cluster may have, the first that is there counts. */
static const struct place {
	enum kube_kind_id kind;
	const char *name;
} places[] = {
	{ KUBE_SCHEDULER_CONFIG, NAMED("SchedulerConfig") },
	{ KUBE_TOPOLOGY_SCHEDULER_CONFIG, NAMED("TopologySchedulerConfig") },
	{ KUBE_CONFIG_MAP, NAMED("ConfigMap") },
};
#define PLACES	 ARRAY_SIZE(places)
#define DEFAULTS "the defaults"

struct config {
	struct config_options options;
	char *file;
	struct scheduler_settings settings;
	const char *source;
	struct kube_cache *caches[PLACES];
	bool synced[PLACES];
	/* What was looked at last, so that it is not complained about twice. */
	char version[KUBE_VERSION_MAX + KUBE_UID_MAX + 2];
	const char *looked_at;
	struct stat stat;
	uint64_t looked_ms;
};

const struct scheduler_settings *config_settings(const struct config *config)
{
	return &config->settings;
}

const char *config_source(const struct config *config)
{
	return config->source;
}

/* These hold from now on. */
static void adopt(struct config *config, const struct scheduler_settings *settings,
		  const char *source)
{
	bool same = settings_equal(settings, &config->settings);

	if (same && source == config->source)
		return;
	config->settings = *settings;
	config->source = source;
	log_info(config->options.log, "the configuration is in force", LOG_STR("source", source),
		 LOG_BOOL("changed", !same));
	if (!same && config->options.changed)
		config->options.changed(config->options.context, &config->settings);
}

static void refuse(const struct config *config, const struct err *err)
{
	log_warn(config->options.log, "the configuration is refused, the former stays",
		 LOG_STR("reason", err->text), LOG_STR("in_force", config->source));
}

/* The file. */

static int read_file(const struct config *config, struct scheduler_settings *ret, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(SETTINGS_BYTES_MAX);
	int rc = file_read(config->file, SETTINGS_BYTES_MAX, &text, err);

	return rc < 0 ? rc
		      : settings_parse(config->file, text.s ? text.s : "", text.len, ret, err);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What there is before it is read: a write in between is seen the next time. */
static void note_file(const struct config *config, struct stat *ret)
{
	if (stat(config->file, ret) < 0)
		*ret = (struct stat){ 0 };
}

void config_tick(struct config *config)
{
	uint64_t now_ms = clock_monotonic_ms(config->options.clock);
	struct scheduler_settings settings;
	struct err err = ERR_INIT;
	struct stat found;

	if (!config->file || now_ms < config->looked_ms + CONFIG_LOOK_MS)
		return;
	config->looked_ms = now_ms;
	note_file(config, &found);
	if (same_file(&found, &config->stat))
		return;
	config->stat = found;
	if (read_file(config, &settings, &err) < 0)
		refuse(config, &err);
	else
		adopt(config, &settings, config->file);
}

static int begin_file(struct config *config, struct err *err)
{
	config->file = strdup(config->options.file);
	if (!config->file)
		return err_set(err, ENOMEM, "out of memory");
	config->source = config->file;
	config->looked_ms = clock_monotonic_ms(config->options.clock);
	note_file(config, &config->stat);
	return read_file(config, &config->settings, err);
}

/* The cluster. */

/* The text of a ConfigMap: under the key, or the only one. */
static const char *map_text(const struct json *map, struct err *err)
{
	const char *text = json_str(map, "data", CONFIG_KEY);
	struct json_iter iter = json_members(map, "data");
	struct json_member m;

	if (!text && json_len(map, "data") == 1 && json_next_member(&iter, &m))
		text = json_str(m.value);
	if (!text)
		err_set(err, EINVAL, NAMED("ConfigMap") " has no key " CONFIG_KEY);
	return text;
}

static int read_object(const struct place *place, const struct kube_object *object,
		       struct scheduler_settings *ret, struct err *err)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	const char *text;
	int rc = kube_object_parse(object, &doc);

	if (rc < 0)
		return err_set(err, -rc, "%s: out of memory", place->name);
	if (place->kind != KUBE_CONFIG_MAP)
		return settings_read(place->name, json_get(json_root(doc), "spec"), ret, err);
	text = map_text(json_root(doc), err);
	return text ? settings_parse(place->name, text, strlen(text), ret, err) : -EINVAL;
}

/* Whether this very version has been looked at already. */
static bool seen_before(struct config *config, const struct place *place,
			const struct kube_object *object)
{
	char version[sizeof(config->version)];

	snprintf(version, sizeof(version), "%s/%s", object->uid, object->version);
	if (config->looked_at == place->name && strcmp(version, config->version) == 0)
		return true;
	memcpy(config->version, version, sizeof(version));
	config->looked_at = place->name;
	return false;
}

/* Only when everything is known: what comes first need not be what counts. */
static void look(struct config *config)
{
	struct scheduler_settings settings;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < PLACES; i++)
		if (!config->synced[i])
			return;
	for (size_t i = 0; i < PLACES; i++) {
		const struct kube_object *object =
			kube_cache_get(config->caches[i], CONFIG_NAMESPACE, CONFIG_NAME);

		if (!object)
			continue;
		if (seen_before(config, &places[i], object))
			return;
		if (read_object(&places[i], object, &settings, &err) < 0)
			refuse(config, &err);
		else
			adopt(config, &settings, places[i].name);
		return;
	}
	config->looked_at = NULL;
	settings_default(&settings);
	adopt(config, &settings, DEFAULTS);
}

static void on_changed(void *context, enum kube_change change, const struct kube_object *before,
		       struct kube_object *now, const struct json *object)
{
	(void)change, (void)before, (void)now, (void)object;
	look(context);
}

/* Which of the caches it was does not matter but for the first time. */
static void on_synced(void *context)
{
	struct config *config = context;

	for (size_t i = 0; i < PLACES; i++) {
		struct kube_cache_status status;

		if (!config->caches[i])
			return;
		kube_cache_status(config->caches[i], &status);
		config->synced[i] |= status.synced;
	}
	look(config);
}

static int begin_caches(struct config *config, struct err *err)
{
	struct kube_cache_options options = {
		.namespace = CONFIG_NAMESPACE,
		/* Who may read nothing else there can list and watch the one of this name. */
		.field_selector = "metadata.name=" CONFIG_NAME,
		.log = config->options.log,
		.changed = on_changed,
		.synced = on_synced,
		.context = config,
	};

	for (size_t i = 0; i < PLACES; i++) {
		options.kind = &kube_kinds[places[i].kind];
		int rc =
			kube_caches_add(config->options.caches, &options, &config->caches[i], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int config_new(const struct config_options *options, struct config **ret, struct err *err)
{
	struct config *config = calloc(1, sizeof(*config));
	int rc = 0;

	if (!config)
		return err_set(err, ENOMEM, "out of memory");
	config->options = *options;
	config->source = DEFAULTS;
	settings_default(&config->settings);
	if (options->file)
		rc = begin_file(config, err);
	else if (options->caches)
		rc = begin_caches(config, err);
	if (rc < 0) {
		config_free(config);
		return rc;
	}
	*ret = config;
	return 0;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	free(config->file);
	free(config);
}
