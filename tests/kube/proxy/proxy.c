/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy.h"

#include "decide.h"
#include "server.h"
#include "wire/json_write.h"

uint64_t proxy_ms(const struct proxy *proxy)
{
	return uv_now(proxy->loop) - proxy->start_ms;
}

void proxy_stats(const struct proxy *proxy, struct strbuf *out)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	json_open_object(&w);
	json_add_key(&w, "on");
	json_add_bool(&w, decider_is_on(proxy->decider));
	json_add_key(&w, "requests");
	json_add_u64(&w, decider_requests(proxy->decider));
	json_add_key(&w, "connections");
	json_add_u64(&w, server_connections(proxy->server));
	json_add_key(&w, "faults");
	json_open_object(&w);
	for (enum fault_kind kind = FAULT_NONE + 1; kind < FAULT_KINDS; kind++) {
		uint64_t count = decider_faults(proxy->decider, kind);
		if (count == 0)
			continue;
		json_add_key(&w, fault_kind_name(kind));
		json_add_u64(&w, count);
	}
	json_close_object(&w);
	json_close_object(&w);
}
