/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/strbuf.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/picture.h"
#include "sim/world.h"
#include "test.h"
#include "wire/json.h"
#include "wire/yaml.h"

struct gallery {
	struct yaml yaml;
	struct fleet *fleet;
	struct world *world;
	struct manifests manifests;
};

static void open_gallery(struct gallery *g, const char *cluster, const char *objects)
{
	struct err err = ERR_INIT;

	memset(g, 0, sizeof(*g));
	CHECK(yaml_parse("c", cluster, strlen(cluster), NULL, &g->yaml, NULL) == 0);
	CHECKF(fleet_new("c", json_root(g->yaml.items[0].doc), &g->fleet, &err) == 0, "%s",
	       err.text);
	CHECK(world_new(g->fleet, &(struct world_config){ .seed = 1 }, &g->world, NULL) == 0);
	CHECKF(manifests_parse(&g->manifests, "m", objects, strlen(objects), &err) == 0, "%s",
	       err.text);
	CHECK(world_submit(g->world, &g->manifests, 0, NULL) == 0);
	CHECK(world_settle(g->world, NULL) == 0);
}

static void close_gallery(struct gallery *g)
{
	world_free(g->world);
	fleet_free(g->fleet);
	manifests_done(&g->manifests);
	yaml_done(&g->yaml);
}

static const char cluster[] = "nodes:\n"
			      "- {machine: hgx-h100-4, name: a, unhealthy: [3]}\n"
			      "- {machine: hgx-h100-4, name: b, mig: [0]}\n";
static const char objects[] =
	"{kind: Pod, metadata: {name: w}, spec: {nodeSelector: {kubernetes.io/hostname: a},"
	" containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}}\n---\n"
	"{kind: Pod, metadata: {name: s}, spec: {nodeSelector: {kubernetes.io/hostname: a},"
	" containers: [{name: c, resources: {limits: {elasticgpu.io/gpu-core: 50}}}]}}\n---\n"
	"{kind: Pod, metadata: {name: m}, spec: {containers: [{name: c, resources: {limits:"
	" {nvidia.com/mig-1g.10gb: 1}}}]}}\n";

TEST(every_gpu_is_one_character)
{
	struct gallery g;
	struct strbuf out = STRBUF_INIT;

	open_gallery(&g, cluster, objects);
	struct picture *p = picture_new(&(struct picture_style){ .width = 80 });
	picture_draw(p, world_cluster(g.world), &out);
	CHECK_STR(out.s, "spine-0\n"
			 "  leaf-0  a AA4x\n"
			 "spine-1\n"
			 "  leaf-1  b m...\n"
			 "A w  B s (part of a:2)  C m (part of b:0)  \n");
	picture_free(p);
	strbuf_done(&out);
	close_gallery(&g);
}

TEST(empty_cards_in_mig_mode_and_failed_nodes_show)
{
	struct gallery g;
	struct strbuf out = STRBUF_INIT;

	open_gallery(&g,
		     "nodes: [{machine: hgx-h100-4, count: 3, name: n-%d, mig: [1, 3],"
		     " domain: [s, l]}]",
		     "");
	struct picture *p = picture_new(&(struct picture_style){ .width = 80 });
	CHECK(world_fail_node(g.world, "n-1", NULL) == 0);
	CHECK(picture_add_failed(p, "n-1", "l", 4) == 0);
	picture_draw(p, world_cluster(g.world), &out);
	CHECK_STR(out.s, "s\n  l  n-0 .o.o  n-1 xxxx  n-2 .o.o\n");
	picture_drop_failed(p, "n-1");
	strbuf_reset(&out);
	picture_draw(p, world_cluster(g.world), &out);
	CHECK_STR(out.s, "s\n  l  n-0 .o.o  n-2 .o.o\n");
	picture_free(p);
	strbuf_done(&out);
	close_gallery(&g);
}

TEST(blocks_and_colours_where_the_terminal_has_them)
{
	struct gallery g;
	struct strbuf out = STRBUF_INIT;

	open_gallery(&g, cluster, objects);
	struct picture *p = picture_new(&(struct picture_style){ .unicode = true, .color = true });
	picture_draw(p, world_cluster(g.world), &out);
	CHECK(strstr(out.s, "\033[38;5;39m█\033[0m") != NULL);
	CHECK(strstr(out.s, "▄") != NULL);
	CHECK(strstr(out.s, "▤") != NULL);
	CHECK(strstr(out.s, "✗") != NULL);
	picture_free(p);
	strbuf_done(&out);
	close_gallery(&g);
}

TEST(no_line_is_wider_than_the_terminal)
{
	static const uint32_t widths[] = { 1, 40, 61, 80, 200 };
	struct gallery g;

	open_gallery(&g, "nodes: [{machine: dgx-h100, count: 24, perLeaf: 12, name: node-%02d}]",
		     "");
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		struct strbuf out = STRBUF_INIT;
		struct picture *p = picture_new(&(struct picture_style){ .width = widths[i] });
		size_t limit = MAX(widths[i], (uint32_t)PICTURE_WIDTH_MIN);

		picture_draw(p, world_cluster(g.world), &out);
		for (const char *line = out.s, *end; *line; line = end + 1) {
			end = strchr(line, '\n');
			CHECKF((size_t)(end - line) <= limit, "width %u", widths[i]);
		}
		picture_free(p);
		strbuf_done(&out);
	}
	close_gallery(&g);
}

TEST(a_workload_keeps_its_letter)
{
	struct gallery g;
	struct strbuf out = STRBUF_INIT;

	open_gallery(&g, cluster, objects);
	struct picture *p = picture_new(&(struct picture_style){ .width = 80 });
	picture_draw(p, world_cluster(g.world), &out);
	CHECK(world_delete(g.world, "w", NULL) == 0);
	strbuf_reset(&out);
	picture_draw(p, world_cluster(g.world), &out);
	CHECKF(strstr(out.s, "\nB s (part of a:2)  C m (part of b:0)  \n") != NULL, "%s", out.s);
	picture_free(p);
	strbuf_done(&out);
	close_gallery(&g);
}

TEST_MAIN()
