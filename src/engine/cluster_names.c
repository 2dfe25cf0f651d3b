/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_names.c - numbers for strings, GPU models and adapters. */
#include "engine/cluster_private.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

uint32_t cluster_intern(struct cluster *c, const char *s)
{
	size_t len = strlen(s);
	uint32_t id = (uint32_t)c->strings.len;
	char *copy;

	if (map_get_u32(&c->string_ids, s, len, &id))
		return id;
	copy = strdup(s);
	if (!copy || vec_reserve(&c->strings, c->strings.len + 1) < 0 ||
	    map_put_u32(&c->string_ids, copy, len, id) < 0) {
		free(copy);
		return UINT32_MAX;
	}
	c->strings.items[c->strings.len++] = copy;
	return id;
}

uint32_t cluster_find(const struct cluster *c, const char *s)
{
	uint32_t id;

	return map_get_u32(&c->string_ids, s, strlen(s), &id) ? id : UINT32_MAX;
}

const char *cluster_string(const struct cluster *c, uint32_t id)
{
	return id < c->strings.len ? c->strings.items[id] : "";
}

uint16_t cluster_model_find(const struct cluster *c, const char *name)
{
	uint32_t id;

	if (!map_get_u32(&c->string_ids, name, strlen(name), &id))
		return UINT16_MAX;
	for (uint32_t i = 0; i < c->models_count; i++)
		if (c->models[i] == id)
			return (uint16_t)i;
	return UINT16_MAX;
}

uint16_t cluster_model(struct cluster *c, const char *name)
{
	uint16_t model = cluster_model_find(c, name);
	uint32_t id;

	if (model != UINT16_MAX || c->models_count == MODEL_MAX)
		return model;
	id = cluster_intern(c, name);
	if (id == UINT32_MAX)
		return UINT16_MAX;
	c->models[c->models_count] = id;
	return (uint16_t)c->models_count++;
}

uint8_t cluster_hca_find(const struct cluster *c, const char *name)
{
	uint32_t id = cluster_find(c, name);

	for (uint32_t i = 0; i < c->hcas_count; i++)
		if (c->hcas[i] == id)
			return (uint8_t)i;
	return UINT8_MAX;
}

uint8_t cluster_hca(struct cluster *c, const char *name)
{
	uint8_t hca = cluster_hca_find(c, name);
	uint32_t id;

	if (hca != UINT8_MAX || c->hcas_count == HCA_MAX)
		return hca;
	id = cluster_intern(c, name);
	if (id == UINT32_MAX)
		return UINT8_MAX;
	c->hcas[c->hcas_count] = id;
	return (uint8_t)c->hcas_count++;
}

uint32_t cluster_resource_asked(struct cluster *c, const char *name)
{
	uint32_t id = cluster_find(c, name);

	if (id != UINT32_MAX)
		return id;
	if (c->strays == STRAYS_MAX)
		return cluster_intern(c, "extended resource");
	c->strays++;
	return cluster_intern(c, name);
}

uint32_t cluster_group(const struct cluster *c, uint64_t hash)
{
	uint32_t group = (uint32_t)hash_bytes(&hash, sizeof(hash), c->config.seed);

	return group ? group : 1;
}

const char *cluster_model_name(const struct cluster *c, uint16_t model)
{
	return model < c->models_count ? cluster_string(c, c->models[model]) : "";
}

uint32_t cluster_models(const struct cluster *c)
{
	return c->models_count;
}

uint64_t cluster_model_free_milli(const struct cluster *c, uint16_t model)
{
	return model < MODEL_MAX ? c->model_free_milli[model] : 0;
}

void names_done(struct cluster *c)
{
	for (size_t i = 0; i < c->strings.len; i++)
		free(c->strings.items[i]);
	vec_done(&c->strings);
	map_done(&c->string_ids);
}
