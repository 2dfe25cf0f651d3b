/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include "test.h"

#include "base/attr.h"
#include "wire/json.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beside this test, in the same build. */
static void find_program(char *path, size_t size)
{
	char self[512];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	CHECK(len > 0);
	self[len] = '\0';
	snprintf(path, size, "%s/../proxy/fault-proxy", dirname(self));
	CHECKF(access(path, X_OK) == 0, "%s has not been built", path);
}

static void write_script(const struct faults *faults, const char *script, char *path, size_t size)
{
	snprintf(path, size, "%s/script", faults->folder);
	FILE *file = fopen(path, "w");
	CHECK(file);
	CHECK(fputs(script, file) >= 0);
	CHECK(fclose(file) == 0);
}

static _Noreturn void become_proxy(const char *program, const struct faults *faults,
				   const char *script, uint64_t seed, int out)
{
	char number[24];
	snprintf(number, sizeof(number), "%" PRIu64, seed);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	execl(program, program, "--kubeconfig", getenv("KUBECONFIG"), "--write-kubeconfig",
	      faults->kubeconfig, "--script", script, "--seed", number, NULL);
	_exit(127);
}

void faults_start_seeded(struct faults *faults, const char *script, uint64_t seed)
{
	char program[600], path[128], line[512];
	int ends[2];
	*faults = (struct faults){ .folder = "/tmp/faults.XXXXXX" };
	CHECK(mkdtemp(faults->folder));
	snprintf(faults->kubeconfig, sizeof(faults->kubeconfig), "%s/kubeconfig", faults->folder);
	find_program(program, sizeof(program));
	write_script(faults, script, path, sizeof(path));
	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	faults->pid = fork();
	CHECK(faults->pid >= 0);
	if (faults->pid == 0)
		become_proxy(program, faults, path, seed, ends[1]);
	close(ends[1]);
	faults->said = fdopen(ends[0], "r");
	CHECK(faults->said);
	CHECKF(fgets(line, sizeof(line), faults->said), "the proxy did not start: %s", script);
}

void faults_start(struct faults *faults, const char *script)
{
	faults_start_seeded(faults, script, 1);
}

void faults_toggle(struct faults *faults)
{
	CHECK(kill(faults->pid, SIGUSR1) == 0);
}

static unsigned count_faults(const char *line)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	unsigned count = 0;
	const char *json = strchr(line, '{');
	CHECKF(json && json_parse("proxy", json, strlen(json), NULL, &doc, NULL) == 0, "%s", line);
	struct json_iter members = json_members(json_root(doc), "faults");
	for (struct json_member member; json_next_member(&members, &member);) {
		int64_t n = 0;
		CHECK_INT(json_i64(member.value, &n), 0);
		count += (unsigned)n;
	}
	return count;
}

unsigned faults_end(struct faults *faults)
{
	char line[4096] = "", path[128];
	int status = 0;
	CHECK(kill(faults->pid, SIGTERM) == 0);
	while (fgets(line, sizeof(line), faults->said))
		;
	fclose(faults->said);
	CHECK(waitpid(faults->pid, &status, 0) == faults->pid);
	CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the proxy ended with %d", status);
	snprintf(path, sizeof(path), "%s/script", faults->folder);
	unlink(path);
	unlink(faults->kubeconfig);
	rmdir(faults->folder);
	return count_faults(line);
}
