/* SPDX-License-Identifier: Apache-2.0 */
/* gang_reason.c - why a gang was not placed, in words for an administrator.
 *
 * Called for refusals only: it may visit every node.
 */
#include "engine/gang_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/explain.h"

#define WORDS_MAX      96
#define ROOM_WORDS_MAX 256
#define VERDICTS_SAID  3

static void say(struct gang_planner *g, const char *format, ...) PRINTF(2, 3);

static void say(struct gang_planner *g, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(g->result->reason, sizeof(g->result->reason), format, arguments);
	va_end(arguments);
}

/* What one member wants of a node: " with 8 free GPUs"; "" if no GPU. */
static void member_words(const struct gang_planner *g, char *words)
{
	const struct ask *ask = g->request->asks;

	if (g->whole_gpus)
		snprintf(words, WORDS_MAX, " with %u free GPU%s", g->whole_gpus,
			 g->whole_gpus == 1 ? "" : "s");
	else if (!g->request->asks_count)
		words[0] = '\0';
	else if (ask->kind == ASK_MIG)
		snprintf(words, WORDS_MAX, " with a free %.*s slice",
			 (int)sizeof(ask->mig_profile), ask->mig_profile);
	else if (ask->core_milli)
		snprintf(words, WORDS_MAX, " with %d%% of a GPU free", ask->core_milli / 10);
	else
		snprintf(words, WORDS_MAX, " with room on a shared GPU");
}

/* "8 nodes", or where several members share a node "room for 8 members"; "none". */
static void amount_words(const struct gang_planner *g, uint32_t members, char *words)
{
	if (!members)
		snprintf(words, WORDS_MAX, "none");
	else if (g->node_members == 1)
		snprintf(words, WORDS_MAX, "%u node%s", members, members == 1 ? "" : "s");
	else
		snprintf(words, WORDS_MAX, "room for %u member%s", members,
			 members == 1 ? "" : "s");
}

/* The verdict most nodes would give if nothing ran there, of those not named yet. */
static enum verdict most_frequent(const uint32_t by_verdict[VERDICT_COUNT])
{
	enum verdict most = FITS;

	for (int v = FITS + 1; v < VERDICT_COUNT; v++)
		if (by_verdict[v] > by_verdict[most])
			most = (enum verdict)v;
	return most;
}

/* "13 node(s) had too few GPUs (asked for 9, ...)", "Insufficient cpu on 13 nodes". */
static size_t verdict_words(const struct gang_planner *g, enum verdict v, uint32_t nodes,
			    int64_t most, char *words, size_t size)
{
	struct strbuf figures CLEANUP(strbuf_done) = STRBUF_INIT;
	char text[GANG_REASON_MAX];
	int len;

	verdict_text(v, g->request, text, sizeof(text));
	explain_figures(g->cluster, g->request, v, most, &figures);
	if (strncmp(text, "node(s)", strlen("node(s)")) == 0)
		len = snprintf(words, size, "%u %s%s", nodes, text, figures.s);
	else
		len = snprintf(words, size, "%s on %u node%s%s", text, nodes,
			       nodes == 1 ? "" : "s", figures.s);
	return MIN((size_t)MAX(len, 0), size - 1);
}

/* What each node would say if nothing ran there, and the most that one has of what it lacks. */
static void count_empty(struct gang_planner *g, uint32_t by_verdict[VERDICT_COUNT],
			int64_t most[VERDICT_COUNT])
{
	for (int v = 0; v < VERDICT_COUNT; v++)
		most[v] = EXPLAIN_UNKNOWN;
	for (uint32_t node = 0; node < cluster_nodes_end(g->cluster); node++) {
		enum verdict v;

		if (!cluster_node(g->cluster, node)->name)
			continue;
		v = gang_empty_verdict(g, node);
		by_verdict[v]++;
		/* Of the others it is what is free now. */
		if (v == NO_GPU || v == WRONG_MODEL)
			most[v] = MAX(most[v], explain_has(g->cluster, g->request, node, v));
	}
}

/* No node could ever hold a member: what is in the way, the most frequent first. */
static void say_no_node(struct gang_planner *g)
{
	uint32_t by_verdict[VERDICT_COUNT] = { 0 };
	int64_t most[VERDICT_COUNT];
	char *reason = g->result->reason;
	size_t size = sizeof(g->result->reason), len;

	count_empty(g, by_verdict, most);
	if (!cluster_nodes_count(g->cluster)) {
		say(g, "gang of %u: there are no nodes", g->all_members);
		return;
	}
	by_verdict[FITS] = 0;
	say(g, "gang of %u: no node could hold a member even if nothing ran there",
	    g->all_members);
	len = strlen(reason);
	for (uint32_t i = 0; i < VERDICTS_SAID; i++) {
		enum verdict v = most_frequent(by_verdict);

		if (v == FITS || len + 2 >= size)
			break;
		len += (size_t)snprintf(reason + len, size - len, "%s", i ? ", " : ": ");
		len += verdict_words(g, v, by_verdict[v], most[v], reason + len, size - len);
		by_verdict[v] = 0;
	}
}

/* Nodes are counted, room for members is not. */
static const char *is_or_are(const struct gang_planner *g, uint32_t members)
{
	return g->node_members == 1 && members != 1 ? "are" : "is";
}

/* What there is, and by how much the limits make it less. */
static void room_words(const struct gang_planner *g, const struct gang_room *room, char *words)
{
	char have[WORDS_MAX], free[WORDS_MAX];

	amount_words(g, room->members, have);
	amount_words(g, room->free_members, free);
	if (!room->free_members)
		snprintf(words, ROOM_WORDS_MAX, "there %s none",
			 g->node_members == 1 ? "are" : "is");
	else if (room->free_members >= g->members)
		snprintf(words, ROOM_WORDS_MAX, "the limits per leaf allow %s", have);
	else if (room->members < room->free_members)
		snprintf(words, ROOM_WORDS_MAX,
			 "there %s only %s, of which the limits per leaf allow %s",
			 is_or_are(g, room->free_members), free, have);
	else
		snprintf(words, ROOM_WORDS_MAX, "there %s only %s", is_or_are(g, room->members),
			 have);
}

/* Whether it has to wait for others to end, or for another cluster. */
static void never_words(struct gang_planner *g, const struct gang_room *room, char *words)
{
	uint32_t empty = gang_room_empty(g, g->scope);
	char most[WORDS_MAX];

	words[0] = '\0';
	if (empty >= g->members)
		return;
	amount_words(g, empty, most);
	if (empty == room->members)
		snprintf(words, ROOM_WORDS_MAX, "; it would not fit even if nothing else ran");
	else
		snprintf(words, ROOM_WORDS_MAX,
			 "; even if nothing else ran there would be only %s", most);
}

static void say_no_room(struct gang_planner *g, const struct gang_room *room)
{
	const char *scope = cluster_domain(g->cluster, g->scope)->name;
	char member[WORDS_MAX], need[WORDS_MAX], have[ROOM_WORDS_MAX], never[ROOM_WORDS_MAX];

	member_words(g, member);
	amount_words(g, g->members, need);
	room_words(g, room, have);
	never_words(g, room, never);
	say(g, "gang of %u needs %s%s%s%s%s; %s%s", g->all_members, need, member,
	    *member ? " each" : "", g->scope ? " in " : "", g->scope ? scope : "", have, never);
}

/* The domain of the required level, or a deeper one, that has the most room. */
static uint32_t best_of_level(struct gang_planner *g)
{
	uint32_t best = DOMAIN_NONE;

	for (uint32_t d = g->scope; d != DOMAIN_NONE;
	     d = gang_domain_next(g->cluster, d, g->scope, true))
		if (cluster_domain(g->cluster, d)->level == g->level &&
		    (best == DOMAIN_NONE ||
		     gang_room_exact(g, d)->members > gang_room_exact(g, best)->members))
			best = d;
	return best;
}

static bool level_could_hold(struct gang_planner *g)
{
	for (uint32_t d = g->scope; d != DOMAIN_NONE;
	     d = gang_domain_next(g->cluster, d, g->scope, true))
		if (cluster_domain(g->cluster, d)->level == g->level &&
		    gang_room_empty(g, d) >= g->members)
			return true;
	return false;
}

static void say_level(struct gang_planner *g, uint32_t best)
{
	char level[WORDS_MAX], member[WORDS_MAX], need[WORDS_MAX], have[WORDS_MAX];

	if (g->spec->level_name)
		snprintf(level, sizeof(level), "%s", g->spec->level_name);
	else
		snprintf(level, sizeof(level), "domain of level %u", g->level);
	member_words(g, member);
	amount_words(g, g->members, need);
	if (best == DOMAIN_NONE) {
		say(g, "gang of %u must stay in one %s; the fabric has none", g->all_members,
		    level);
		return;
	}
	amount_words(g, gang_room_exact(g, best)->members, have);
	say(g, "gang of %u needs %s%s%s in one %s; the best, %s, has %s%s", g->all_members, need,
	    member, *member ? " each" : "", level, cluster_domain(g->cluster, best)->name, have,
	    level_could_hold(g) ? "" : "; none could hold it even if nothing else ran");
}

struct nearest {
	uint32_t domain, members, length;
};

/* The most room in `length` adjacent children. */
static uint32_t widest(struct gang_planner *g, uint32_t domain, uint32_t length)
{
	uint64_t sum = 0, best = 0;

	if (gang_units(g, domain) < 0)
		return 0;
	for (size_t end = 0; end < g->units.len; end++) {
		sum += gang_room_exact(g, g->units.items[end].place)->members;
		if (end >= length)
			sum -= gang_room_exact(g, g->units.items[end - length].place)->members;
		best = MAX(best, sum);
	}
	return (uint32_t)MIN(best, UINT32_MAX);
}

/* The domain of the level that comes nearest to what the rules ask for. */
static struct nearest nearest_of_level(struct gang_planner *g, uint32_t level)
{
	struct nearest best = { DOMAIN_NONE, 0, 0 };

	for (uint32_t d = g->scope; d != DOMAIN_NONE;
	     d = gang_domain_next(g->cluster, d, g->scope, true)) {
		uint32_t length, members;

		if (gang_is_place(g, d) || cluster_domain(g->cluster, d)->level != level)
			continue;
		length = gang_ideal(g, d);
		members = length ? widest(g, d, length) : 0;
		if (length && (best.domain == DOMAIN_NONE || members > best.members))
			best = (struct nearest){ d, members, length };
	}
	return best;
}

/* `where` is where, " in one leaf"; "" if anywhere. */
static void say_kinds(struct gang_planner *g, const char *where)
{
	say(g,
	    "gang of %u: its largest members would fit%s, but not all its kinds of members "
	    "together",
	    g->all_members, where);
}

static void say_nearest(struct gang_planner *g, const struct nearest *best, bool leaves,
			const char *where)
{
	char member[WORDS_MAX], need[WORDS_MAX], have[WORDS_MAX];

	member_words(g, member);
	amount_words(g, g->members, need);
	amount_words(g, best->members, have);
	say(g, "gang of %u needs %s%s; the best%s%s%s has %s%s in %s", g->all_members, need, where,
	    best->domain ? (leaves ? " spine, " : " domain, ") : " of the fabric",
	    best->domain ? cluster_domain(g->cluster, best->domain)->name : "",
	    best->domain ? "," : "", have, member,
	    best->length == 1 ? "one leaf"
	    : leaves	      ? "adjacent leaves"
			      : "adjacent spines");
}

static void say_rules(struct gang_planner *g, uint32_t level)
{
	struct nearest best = nearest_of_level(g, level);
	bool leaves = level == gang_deepest(g);
	char need[WORDS_MAX], where[WORDS_MAX];

	if (best.domain == DOMAIN_NONE) {
		amount_words(g, g->members, need);
		say(g, "gang of %u needs %s in adjacent %s; no run of them is long enough",
		    g->all_members, need, leaves ? "leaves" : "spines");
		return;
	}
	if (best.length == 1)
		snprintf(where, sizeof(where), " in one leaf");
	else
		snprintf(where, sizeof(where), " in %u adjacent %s", best.length,
			 leaves ? "leaves" : "spines");
	if (best.members >= g->members)
		say_kinds(g, where);
	else
		say_nearest(g, &best, leaves, where);
}

/* The level at which the leaf rules apply: the innermost that could hold the gang. */
static bool rule_level(struct gang_planner *g, uint32_t *ret)
{
	for (uint32_t level = gang_deepest(g) + 1; level-- > 0;)
		if (gang_level_holds(g, level)) {
			*ret = level;
			return true;
		}
	return false;
}

static void count_verdicts(struct gang_planner *g)
{
	g->result->refused_class = g->main_class;
	for (uint32_t node = 0; node < cluster_nodes_end(g->cluster); node++)
		if (cluster_node(g->cluster, node)->name)
			g->result->by_verdict[gang_node_verdict(g, node)]++;
}

void gang_say_why(struct gang_planner *g)
{
	const struct gang_room *room = gang_room_exact(g, g->scope);
	uint32_t best = DOMAIN_NONE, level = 0;

	g->node_members = gang_empty_node_room(g);
	count_verdicts(g);
	if (!g->node_members) {
		say_no_node(g);
		return;
	}
	if (room->members < g->members) {
		say_no_room(g, room);
		return;
	}
	if (g->level)
		best = best_of_level(g);
	if (g->level && (best == DOMAIN_NONE || gang_room_exact(g, best)->members < g->members)) {
		say_level(g, best);
		return;
	}
	if (g->rules_required && g->spec->strategy != STRATEGY_DISTRIBUTED &&
	    rule_level(g, &level))
		say_rules(g, level);
	else
		say_kinds(g, "");
}
