/* SPDX-License-Identifier: Apache-2.0 */
/* around.c - what the pod demands of its node's labels and of the pods around it: node
 * affinity, host ports, pod affinity and anti-affinity, topology spread; volumes.c adds its own.
 *
 * Everything is gathered into one specification, which the engine keeps (engine/rules.h).
 * Only what is required is read here; preferences are read in soft.c.
 */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "dialect/around.h"
#include "dialect/draft.h"
#include "dialect/volumes_private.h"
#include "wire/json.h"

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

static int too_many(const char *what, struct err *err)
{
	return err_set(err, EINVAL, "%s has more than %d entries", what, RULES_ITEMS_MAX);
}

int around_strings(struct draft *d, const struct json *list, const char *what,
		   const char *const **ret, uint32_t *count, struct err *err)
{
	size_t len = json_len(list), n = 0;
	const char **strings = arena_array(d->arena, len + 1, sizeof(char *));
	struct json_iter iter = json_items(list);
	const struct json *item;

	if (!strings)
		return no_memory(err);
	while ((item = json_next(&iter))) {
		strings[n] = json_str(item);
		if (!strings[n++])
			return err_set(err, EINVAL, "%s: a value is no string", what);
	}
	*ret = strings;
	*count = (uint32_t)n;
	return 0;
}

static int read_operator(const char *word, bool of_node, bool by_name, uint8_t *ret)
{
	static const char *const words[] = {
		[MATCH_IN] = "In",	   [MATCH_NOT_IN] = "NotIn",
		[MATCH_EXISTS] = "Exists", [MATCH_NOT_EXISTS] = "DoesNotExist",
		[MATCH_GREATER] = "Gt",	   [MATCH_LESS] = "Lt",
	};
	unsigned known = by_name ? 2 : of_node ? 6 : 4;

	for (unsigned i = 0; word && i < known; i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		*ret = (uint8_t)(by_name ? i + MATCH_NAME_IN : i);
		return 0;
	}
	return -EINVAL;
}

/* One expression of node affinity or of a label selector. */
static int read_match(struct draft *d, const struct json *expression, const char *what,
		      bool of_node, bool by_name, struct match *ret, struct err *err)
{
	const char *word = json_str(expression, "operator");
	int rc;

	ret->key = json_str(expression, "key");
	if (!ret->key || !*ret->key)
		return err_set(err, EINVAL, "%s: an expression has no key", what);
	if (by_name && strcmp(ret->key, "metadata.name") != 0)
		return err_set(err, EINVAL, "%s: matchFields knows metadata.name only, not %s",
			       what, ret->key);
	if (read_operator(word, of_node, by_name, &ret->op) < 0)
		return err_set(err, EINVAL, "%s: the operator %s of %s is unknown", what,
			       word ? word : "(none)", ret->key);
	rc = around_strings(d, json_get(expression, "values"), what, &ret->values,
			    &ret->values_count, err);
	if (rc < 0)
		return rc;
	if ((ret->op == MATCH_GREATER || ret->op == MATCH_LESS) && ret->values_count != 1)
		return err_set(err, EINVAL, "%s: %s of %s needs exactly one value", what, word,
			       ret->key);
	return 0;
}

int around_matches(struct draft *d, const struct json *list, const char *what, bool of_node,
		   bool by_name, struct match *matches, uint32_t *count, struct err *err)
{
	struct json_iter iter = json_items(list);
	const struct json *expression;
	int rc = 0;

	while (rc == 0 && (expression = json_next(&iter)))
		rc = read_match(d, expression, what, of_node, by_name, &matches[(*count)++], err);
	return rc;
}

static struct match match_equal(struct draft *d, const char *key, const char *value)
{
	const char **values = arena_array(d->arena, 1, sizeof(char *));

	if (values)
		values[0] = value;
	return (struct match){ .key = key, .values = values, .values_count = values ? 1 : 0 };
}

int around_pairs(struct draft *d, const struct json *pairs, const char *what,
		 struct match *matches, uint32_t *count, struct err *err)
{
	struct json_iter iter = json_members(pairs);
	struct json_member m;

	while (json_next_member(&iter, &m)) {
		const char *value = json_str(m.value);

		if (!value)
			return err_set(err, EINVAL, "%s: the value of %s is no string", what,
				       m.key);
		matches[*count] = match_equal(d, m.key, value);
		if (!matches[(*count)++].values)
			return no_memory(err);
	}
	return 0;
}

int around_node_term(struct draft *d, const struct json *term, struct node_term *ret,
		     struct err *err)
{
	const struct json *labels = json_get(term, "matchExpressions");
	const struct json *fields = json_get(term, "matchFields");
	size_t len = json_len(labels) + json_len(fields);
	struct match *matches = arena_array(d->arena, len + 1, sizeof(*matches));
	int rc;

	if (len > RULES_ITEMS_MAX)
		return too_many("a node affinity term", err);
	if (!matches)
		return no_memory(err);
	ret->matches = matches;
	rc = around_matches(d, labels, "nodeAffinity", true, false, matches, &ret->count, err);
	if (rc < 0)
		return rc;
	return around_matches(d, fields, "nodeAffinity", true, true, matches, &ret->count, err);
}

static int read_node_affinity(struct draft *d, const struct json *required, struct node_group *ret,
			      struct err *err)
{
	size_t len = json_len(required, "nodeSelectorTerms");
	struct node_term *terms = arena_array(d->arena, len + 1, sizeof(*terms));
	struct json_iter iter = json_items(required, "nodeSelectorTerms");
	const struct json *term;
	int rc = 0;

	if (len > RULES_ITEMS_MAX)
		return too_many("nodeSelectorTerms", err);
	if (!terms)
		return no_memory(err);
	ret->terms = terms;
	while (rc == 0 && (term = json_next(&iter)))
		rc = around_node_term(d, term, &terms[ret->count++], err);
	return rc;
}

/* The node selector once more, as even spread wants to know which nodes count. */
static int read_node_selector(struct draft *d, const struct json *pairs, struct node_group *ret,
			      struct err *err)
{
	size_t len = json_len(pairs);
	struct match *matches = arena_array(d->arena, len + 1, sizeof(*matches));
	struct node_term *term = arena_alloc(d->arena, sizeof(*term));

	if (len > RULES_ITEMS_MAX)
		return too_many("nodeSelector", err);
	if (!matches || !term)
		return no_memory(err);
	term->matches = matches;
	ret->terms = term;
	ret->count = 1;
	return around_pairs(d, pairs, "nodeSelector", matches, &term->count, err);
}

int around_groups(struct draft *d, const struct json *spec, struct rules_spec *rules,
		  struct err *err)
{
	const struct json *required = json_get(spec, "affinity", "nodeAffinity", AROUND_REQUIRED);
	struct node_group *groups = arena_array(d->arena, 2, sizeof(*groups));
	int rc = 0;

	if (!groups)
		return no_memory(err);
	rules->groups = groups;
	if (json_type(required) == JSON_OBJECT)
		rc = read_node_affinity(d, required, &groups[rules->groups_count++], err);
	if (rc == 0 && rules->spread_count && json_len(spec, "nodeSelector"))
		rc = read_node_selector(d, json_get(spec, "nodeSelector"),
					&groups[rules->groups_count++], err);
	return rc;
}

static bool has_match(const struct match *matches, uint32_t count, const char *key)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(matches[i].key, key) == 0 && matches[i].op == MATCH_IN)
			return true;
	return false;
}

/* matchLabelKeys: pods that have the same value of these labels as this one.  The API server
 * writes that into the selector by itself; from a file it has not done so. */
static int read_own_keys(struct draft *d, const struct json *keys, enum match_op op,
			 struct match *matches, uint32_t *count, struct err *err)
{
	struct json_iter iter = json_items(keys);
	const struct json *key;

	while ((key = json_next(&iter))) {
		const char *name = json_str(key);
		const char *value =
			name ? json_str(d->source->object, "metadata", "labels", name) : NULL;

		if (!name)
			return err_set(err, EINVAL, "matchLabelKeys: a key is no string");
		if (!value || (op == MATCH_IN && has_match(matches, *count, name)))
			continue;
		matches[*count] = match_equal(d, name, value);
		matches[*count].op = (uint8_t)op;
		if (!matches[(*count)++].values)
			return no_memory(err);
	}
	return 0;
}

/* A label selector with the keys of its term.  NULL or null matches nothing. */
static int read_selector(struct draft *d, const struct json *term, const char *what,
			 const struct match **ret, uint32_t *count, bool *nobody, struct err *err)
{
	const struct json *selector = json_get(term, "labelSelector");
	const struct json *pairs = json_get(selector, "matchLabels");
	const struct json *list = json_get(selector, "matchExpressions");
	const struct json *same = json_get(term, "matchLabelKeys");
	const struct json *other = json_get(term, "mismatchLabelKeys");
	size_t len = json_len(pairs) + json_len(list) + json_len(same) + json_len(other);
	struct match *matches = arena_array(d->arena, len + 1, sizeof(*matches));
	int rc;

	if (len > RULES_ITEMS_MAX)
		return too_many(what, err);
	if (!matches)
		return no_memory(err);
	*ret = matches;
	*nobody = json_type(selector) != JSON_OBJECT;
	if (*nobody)
		return 0;
	rc = around_pairs(d, pairs, what, matches, count, err);
	if (rc == 0)
		rc = around_matches(d, list, what, false, false, matches, count, err);
	if (rc == 0)
		rc = read_own_keys(d, same, MATCH_IN, matches, count, err);
	return rc < 0 ? rc : read_own_keys(d, other, MATCH_NOT_IN, matches, count, err);
}

static const char *const *own_namespace(const struct draft *d)
{
	return (const char *const *)&d->source->namespace;
}

/* The namespaces listed and those that the selector finds; if neither is given, the pod's. */
static int read_namespaces(struct draft *d, const struct json *term, const char *what,
			   struct pod_selector *ret, struct err *err)
{
	const struct json *selector = json_get(term, "namespaceSelector");
	const struct json *pairs = json_get(selector, "matchLabels");
	const struct json *list = json_get(selector, "matchExpressions");
	size_t len = json_len(pairs) + json_len(list);
	struct match *matches = arena_array(d->arena, len + 1, sizeof(*matches));
	uint32_t count = 0;
	int rc;

	if (len > RULES_ITEMS_MAX)
		return too_many(what, err);
	if (!matches)
		return no_memory(err);
	rc = around_strings(d, json_get(term, "namespaces"), what, &ret->namespaces,
			    &ret->namespaces_count, err);
	if (rc < 0)
		return rc;
	ret->by_namespace_labels = json_type(selector) == JSON_OBJECT;
	if (!ret->namespaces_count && !ret->by_namespace_labels) {
		ret->namespaces = own_namespace(d);
		ret->namespaces_count = 1;
	}
	rc = around_pairs(d, pairs, what, matches, &count, err);
	if (rc == 0)
		rc = around_matches(d, list, what, false, false, matches, &count, err);
	ret->namespace_labels = matches;
	ret->namespace_labels_count = count;
	return rc;
}

int around_pod_term(struct draft *d, const struct json *term, const char *what,
		    struct pod_term *ret, struct err *err)
{
	int rc;

	ret->topology_key = json_str(term, "topologyKey");
	if (!ret->topology_key || !*ret->topology_key)
		return err_set(err, EINVAL, "%s: a term has no topologyKey", what);
	rc = read_selector(d, term, what, &ret->pods.labels, &ret->pods.labels_count,
			   &ret->pods.nobody, err);
	return rc < 0 ? rc : read_namespaces(d, term, what, &ret->pods, err);
}

static int read_pod_terms(struct draft *d, const struct json *list, const char *what,
			  const struct pod_term **ret, uint32_t *count, struct err *err)
{
	size_t len = json_len(list);
	struct pod_term *terms = arena_array(d->arena, len + 1, sizeof(*terms));
	struct json_iter iter = json_items(list);
	const struct json *term;
	int rc = 0;

	if (len > RULES_ITEMS_MAX)
		return too_many(what, err);
	if (!terms)
		return no_memory(err);
	*ret = terms;
	while (rc == 0 && (term = json_next(&iter)))
		rc = around_pod_term(d, term, what, &terms[(*count)++], err);
	return rc;
}

static bool says(const struct json *object, const char *key, const char *word)
{
	const char *said = json_str(object, key);

	return said && strcmp(said, word) == 0;
}

static int read_spread_rule(struct draft *d, const struct json *constraint,
			    struct spread_rule *ret, struct err *err)
{
	int64_t skew = 0, domains = 1;

	ret->topology_key = json_str(constraint, "topologyKey");
	if (!ret->topology_key || !*ret->topology_key)
		return err_set(err, EINVAL,
			       "topologySpreadConstraints: an entry has no topologyKey");
	if (json_i64(constraint, &skew, "maxSkew") < 0 || skew < 1 || skew > INT32_MAX)
		return err_set(err, EINVAL,
			       "topologySpreadConstraints: maxSkew must be a whole number from 1");
	if (json_i64(constraint, &domains, "minDomains") == -EINVAL || domains < 1 ||
	    domains > INT32_MAX)
		return err_set(
			err, EINVAL,
			"topologySpreadConstraints: minDomains must be a whole number from 1");
	ret->max_skew = (uint32_t)skew;
	ret->min_domains = (uint32_t)domains;
	ret->ignore_affinity = says(constraint, "nodeAffinityPolicy", "Ignore");
	ret->honor_taints = says(constraint, "nodeTaintsPolicy", "Honor");
	return read_selector(d, constraint, "topologySpreadConstraints", &ret->labels,
			     &ret->labels_count, &ret->nobody, err);
}

int around_spread(struct draft *d, const struct json *spec, bool soft, struct rules_spec *rules,
		  struct err *err)
{
	const struct json *list = json_get(spec, "topologySpreadConstraints");
	struct spread_rule *spread = arena_array(d->arena, json_len(list) + 1, sizeof(*spread));
	struct json_iter iter = json_items(list);
	const struct json *constraint;
	int rc = 0;

	if (json_len(list) > RULES_ITEMS_MAX)
		return too_many("topologySpreadConstraints", err);
	if (!spread)
		return no_memory(err);
	rules->spread = spread;
	while (rc == 0 && (constraint = json_next(&iter)))
		if (says(constraint, "whenUnsatisfiable", "ScheduleAnyway") == soft)
			rc = read_spread_rule(d, constraint, &spread[rules->spread_count++], err);
	return rc;
}

static int read_port(const struct json *port, struct host_port *ret, struct err *err)
{
	const char *said = json_str(port, "hostIP"), *ip = said ? said : "";
	int64_t number = 0;

	if (json_i64(port, &number, "hostPort") == -EINVAL || number < 0 || number > UINT16_MAX)
		return err_set(err, EINVAL, "a hostPort is no port number");
	if (strlen(ip) >= sizeof(ret->ip))
		return err_set(err, EINVAL, "hostIP %.60s is no address", ip);
	memcpy(ret->ip, ip, strlen(ip) + 1);
	ret->port = (uint16_t)number;
	ret->protocol = says(port, "protocol", "UDP")	 ? PORT_UDP
			: says(port, "protocol", "SCTP") ? PORT_SCTP
							 : PORT_TCP;
	return 0;
}

static int read_container_ports(const struct json *container, struct host_port *ports,
				uint32_t *count, struct err *err)
{
	struct json_iter iter = json_items(container, "ports");
	const struct json *port;

	while ((port = json_next(&iter))) {
		if (*count == RULES_ITEMS_MAX)
			return err_set(err, EINVAL, "the pod has more than %d host ports",
				       RULES_ITEMS_MAX);
		int rc = read_port(port, &ports[*count], err);

		if (rc < 0)
			return rc;
		*count += ports[*count].port != 0;
	}
	return 0;
}

/* Most pods have none, and then nothing is to be done. */
static bool has_ports(const struct json *spec, const char *list)
{
	struct json_iter iter = json_items(spec, list);
	const struct json *container;

	while ((container = json_next(&iter)))
		if (json_len(container, "ports"))
			return true;
	return false;
}

/* Of containers and of init containers that stay. */
static int read_ports(struct draft *d, const struct json *spec, struct rules_spec *rules,
		      struct err *err)
{
	struct json_iter containers = json_items(spec, "containers");
	struct json_iter inits = json_items(spec, "initContainers");
	const struct json *container;
	struct host_port *ports;
	int rc = 0;

	if (!has_ports(spec, "containers") && !has_ports(spec, "initContainers"))
		return 0;
	ports = arena_array(d->arena, RULES_ITEMS_MAX, sizeof(*ports));
	if (!ports)
		return no_memory(err);
	rules->ports = ports;
	while (rc == 0 && (container = json_next(&containers)))
		rc = read_container_ports(container, ports, &rules->ports_count, err);
	while (rc == 0 && (container = json_next(&inits)))
		if (says(container, "restartPolicy", "Always"))
			rc = read_container_ports(container, ports, &rules->ports_count, err);
	return rc;
}

static int take_subject(struct draft *d, struct err *err)
{
	const struct json *labels = json_get(d->source->object, "metadata", "labels");
	struct pod_label *list = arena_array(d->arena, json_len(labels) + 1, sizeof(*list));
	struct json_iter iter = json_members(labels);
	struct json_member m;
	uint32_t count = 0;
	int rc;

	if (!list)
		return no_memory(err);
	while (json_next_member(&iter, &m)) {
		const char *value = json_str(m.value);

		list[count++] = (struct pod_label){ m.key, value ? value : "" };
	}
	rc = subject_take(d->cluster, d->source->namespace, list, count, &d->request->subject);
	if (rc == -E2BIG)
		return err_set(err, EINVAL, "the pod's labels have more than %d bytes",
			       RULES_BYTES_MAX);
	return rc < 0 ? no_memory(err) : 0;
}

static int take_rules(struct draft *d, const struct rules_spec *rules, struct err *err)
{
	int rc = rules_take(d->cluster, rules, &d->request->rules);

	if (rc == -E2BIG)
		return err_set(err, EINVAL, "the pod's affinity rules have more than %d bytes",
			       RULES_BYTES_MAX);
	if (rc == -EINVAL)
		return err_set(err, EINVAL, "a list of the pod's affinity rules is too long");
	return rc < 0 ? no_memory(err) : 0;
}

/* Every rule; of a pod that is there the others count only for being the same as those of
 * its siblings. */
static int read_rules(struct draft *d, const struct json *spec, struct rules_spec *rules,
		      struct err *err)
{
	int rc = around_spread(d, spec, false, rules, err);

	if (rc == 0)
		rc = around_groups(d, spec, rules, err);
	if (rc == 0)
		rc = read_ports(d, spec, rules, err);
	if (rc == 0)
		rc = read_pod_terms(d, json_get(spec, "affinity", "podAffinity", AROUND_REQUIRED),
				    "podAffinity", &rules->near, &rules->near_count, err);
	if (rc == 0)
		rc = read_pod_terms(d,
				    json_get(spec, "affinity", "podAntiAffinity", AROUND_REQUIRED),
				    "podAntiAffinity", &rules->apart, &rules->apart_count, err);
	return rc < 0 ? rc : read_volumes(d, rules, err);
}

/* What a pod that is there means to others, as far as it can be read: its ports, its volumes,
 * and who it keeps away. */
static int read_presence(struct draft *d, const struct json *spec, struct rules_spec *rules,
			 struct err *err)
{
	struct rules_spec ports = { .namespace = rules->namespace }, all = ports;
	int rc = read_ports(d, spec, &ports, err);

	if (rc != -ENOMEM)
		rc = read_volumes(d, &ports, err);
	if (rc == -ENOMEM)
		return rc;
	all = ports;
	rc = read_pod_terms(d, json_get(spec, "affinity", "podAntiAffinity", AROUND_REQUIRED),
			    "podAntiAffinity", &all.apart, &all.apart_count, err);
	if (rc == 0)
		rc = take_rules(d, &all, err);
	if (rc == -EINVAL)
		rc = take_rules(d, &ports, err);
	if (rc == 0)
		rc = tell_volumes(d, err);
	return rc == -EINVAL ? 0 : rc;
}

/* What decides whether a node fits. */
static int read_required(struct draft *d, const struct json *spec, struct err *err)
{
	struct rules_spec rules = { .namespace = d->source->namespace,
				    .tolerations = d->request->tolerations,
				    .tolerations_count = d->request->tolerations_count };
	int rc = take_subject(d, err);

	if (rc == -EINVAL && d->resident)
		rc = 0;
	if (rc == 0)
		rc = read_rules(d, spec, &rules, err);
	if (rc == 0)
		rc = take_rules(d, &rules, err);
	if (rc == 0)
		rc = tell_volumes(d, err);
	if (rc == -EINVAL && d->resident)
		rc = read_presence(d, spec, &rules, err);
	return rc;
}

int read_around(struct draft *d, struct err *err)
{
	const struct json *spec = json_get(d->source->object, "spec");
	int rc = read_required(d, spec, err);

	if (rc == 0)
		rc = read_soft(d, spec, err);
	return rc == -EINVAL && d->resident ? 0 : rc;
}
