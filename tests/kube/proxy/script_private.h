/* SPDX-License-Identifier: Apache-2.0 */
/* script_private.h - the words of the language, between script.c and script_words.c. */
#ifndef GS_TESTS_KUBE_PROXY_SCRIPT_PRIVATE_H
#define GS_TESTS_KUBE_PROXY_SCRIPT_PRIVATE_H

#include "script.h"

struct word;

struct keyword {
	const char *name;
	int (*read)(const struct word *word); /* 0 or -EINVAL, -ENOMEM */
	int number;			      /* which match, kind or point */
	const char *form;		      /* how it is written, for errors */
	bool limit;			      /* also on a line that begins with "limit" */
};

/* A word of a line, "name" or "name=value", and where it goes. */
struct word {
	const struct keyword *keyword;
	const char *value;	  /* NULL: none */
	struct script_rule *rule; /* NULL on a line of limits */
	struct script_limits *limits;
	struct err *err;
};

extern const struct keyword script_keywords[];
extern const size_t script_keywords_count;

#endif
