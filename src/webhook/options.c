/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "dialect/keys.h"
#include "webhook/review.h"

static const char *const default_schedulers[] = { SCHEDULER_DEFAULT, SCHEDULER_TOPOLOGY };

const struct webhook_options webhook_options_default = {
	.schedulers = default_schedulers,
	.schedulers_count = ARRAY_SIZE(default_schedulers),
	.injection = INJECTION_UNKNOWN,
	.mps_directory = "/tmp/nvidia-mps",
	.gdr_level = "PHB",
	.cufile_path = "/etc/cufile.json",
};

/* What comes after "<name>=", NULL if it is another word. */
static const char *value_of(const char *word, const char *name)
{
	size_t n = strlen(name);

	return strncmp(word, name, n) == 0 && word[n] == '=' && word[n + 1] ? word + n + 1 : NULL;
}

int webhook_inject_add(struct webhook_options *options, const char *word, struct err *err)
{
	const char *value;

	if (strcmp(word, "nvidia") == 0) {
		options->inject |= INJECT_NVIDIA;
	} else if (strcmp(word, "mps") == 0) {
		options->inject |= INJECT_MPS;
	} else if ((value = value_of(word, "mps"))) {
		options->inject |= INJECT_MPS;
		options->mps_directory = value;
	} else if ((value = value_of(word, "runtimeclass"))) {
		options->runtime_class = value;
	} else {
		return err_set(err, EINVAL,
			       "--inject=%s: there are nvidia, mps, mps=FOLDER and "
			       "runtimeclass=NAME",
			       word);
	}
	return 0;
}

int webhook_injection_parse(const char *word, enum injection_mode *ret, struct err *err)
{
	static const char *const words[] = { [INJECTION_CDI] = "cdi",
					     [INJECTION_ENV] = "env",
					     [INJECTION_EXTERNAL] = "external",
					     [INJECTION_ALL] = "all" };

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i] && strcmp(words[i], word) == 0) {
			*ret = (enum injection_mode)i;
			return 0;
		}
	}
	return err_set(err, EINVAL, "--injection=%s: there are cdi, env, external and all", word);
}

bool webhook_is_ours(const struct webhook_options *options, const char *scheduler)
{
	for (size_t i = 0; i < options->schedulers_count; i++)
		if (strcmp(options->schedulers[i], scheduler) == 0)
			return true;
	return false;
}

int webhook_options_check(const struct webhook_options *options, struct err *err)
{
	bool cdi = options->injection == INJECTION_CDI, env = options->injection == INJECTION_ENV;

	if ((options->inject & INJECT_NVIDIA) && !cdi && !env)
		return err_set(err, EINVAL,
			       "--inject=nvidia goes with --injection=cdi and env: elsewhere "
			       "another program sets NVIDIA_VISIBLE_DEVICES");
	if ((options->inject & INJECT_MPS) && cdi)
		return err_set(err, EINVAL,
			       "--inject=mps does not go with --injection=cdi: there the agent "
			       "sets the limits of MPS");
	if (options->set_scheduler && !options->other_schedulers &&
	    !webhook_is_ours(options, options->set_scheduler))
		return err_set(err, EINVAL,
			       "--set-scheduler=%s is none of the names of --scheduler-name: its "
			       "containers would get no variable, and see every GPU",
			       options->set_scheduler);
	if (options->copy_owner_annotations && !options->lookup)
		return err_set(
			err, EINVAL,
			"annotations of owners can be copied only where owners can be read");
	return 0;
}
