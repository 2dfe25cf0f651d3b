/* SPDX-License-Identifier: Apache-2.0 */
/* exec_plugin.h - one run of a credential plugin, as a child process on the loop.
 *
 * The plugin has our environment, that of the kubeconfig and KUBERNETES_EXEC_INFO, no
 * standard input, and a session of its own.  It is killed with all of its group after the
 * timeout, when it says more than EXEC_REPLY_MAX_BYTES, and when it is stopped.
 */
#ifndef GS_KUBE_EXEC_PLUGIN_H
#define GS_KUBE_EXEC_PLUGIN_H

#include <uv.h>

struct err;
struct exec_credential;
struct exec_plugin;
struct kube_config;

/* The end of a run: what it gave, which the callee takes over (and leaves empty) or not;
 * or NULL and why there is nothing. */
typedef void (*exec_plugin_done)(void *context, struct exec_credential *reply,
				 const struct err *err);

/* Starts config->exec.  `ca` is the cluster's CA as PEM, or NULL.  done() is called once,
 * from the loop, when the process is gone and nothing of it is left, also if it could not
 * be started at all.  0 or -ENOMEM.  The config outlives the run. */
int exec_plugin_start(uv_loop_t *loop, const struct kube_config *config, const char *ca,
		      exec_plugin_done done, void *context, struct exec_plugin **ret,
		      struct err *err);

/* Kills it; done() will say ECANCELED. */
void exec_plugin_stop(struct exec_plugin *plugin);

#endif
