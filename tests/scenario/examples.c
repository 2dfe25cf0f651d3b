/* SPDX-License-Identifier: Apache-2.0 */
/* examples.c - what the README tells people to try works. */
#include "base/err.h"
#include "base/strbuf.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/report.h"
#include "sim/world.h"
#include "test.h"
#include "wire/file.h"
#include "wire/json.h"
#include "wire/yaml.h"

static const struct example {
	const char *file;
	unsigned placed, pending;
} examples[] = {
	{ "claim.yaml", 1, 0 },
	{ "jobs.yaml", 10, 32 },
	{ "map.yaml", 4, 0 },
	{ "resources.yaml", 3, 0 },
};

static void count(const struct world *w, enum world_state state, unsigned expected,
		  const char *file)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < world_pods(w); i++)
		n += world_pod(w, i)->state == state;
	CHECKF(n == expected, "%s: %u, expected %u", file, n, expected);
}

static void run(const struct fleet *fleet, const struct example *e)
{
	struct manifests m = { 0 };
	struct world *w = NULL;
	struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", EXAMPLES_DIR, e->file);
	CHECKF(manifests_read(&m, path, &err) == 0, "%s", err.text);
	CHECKF(world_new(fleet, &(struct world_config){ .seed = 1 }, &w, &err) == 0, "%s",
	       err.text);
	CHECKF(world_submit(w, &m, 0, &err) == 0, "%s", err.text);
	CHECKF(world_settle(w, &err) == 0, "%s", err.text);
	count(w, WORLD_PLACED, e->placed, e->file);
	count(w, WORLD_PENDING, e->pending, e->file);
	report_table(w, &out);
	CHECK(out.len > 0 && !out.failed);
	strbuf_done(&out);
	world_free(w);
	manifests_done(&m);
}

TEST(every_example_does_what_it_says)
{
	struct strbuf text = STRBUF_INIT;
	struct yaml yaml = YAML_INIT;
	struct fleet *fleet = NULL;
	struct err err = ERR_INIT;

	CHECKF(file_read(EXAMPLES_DIR "/cluster.yaml", 1 << 20, &text, &err) == 0, "%s", err.text);
	CHECKF(yaml_parse("cluster.yaml", text.s, text.len, NULL, &yaml, &err) == 0, "%s",
	       err.text);
	CHECKF(fleet_new("cluster.yaml", json_root(yaml.items[0].doc), &fleet, &err) == 0, "%s",
	       err.text);
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		run(fleet, &examples[i]);
	fleet_free(fleet);
	yaml_done(&yaml);
	strbuf_done(&text);
}

TEST_MAIN()
