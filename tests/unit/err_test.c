/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "test.h"

#include <errno.h>

TEST(an_error_has_a_code_and_a_sentence)
{
	struct err err = ERR_INIT;
	CHECK_INT(err_set(&err, ENOENT, "no node \"%s\"", "n1"), -ENOENT);
	CHECK_INT(err.code, ENOENT);
	CHECK_STR(err.text, "no node \"n1\"");
}

TEST(the_text_may_be_unwanted)
{
	CHECK_INT(err_set(NULL, EINVAL, "%d", 1), -EINVAL);
	CHECK_INT(err_prefix(NULL, "x"), 0);
}

TEST(context_goes_in_front)
{
	struct err err = ERR_INIT;
	err_set(&err, EINVAL, "no name");
	CHECK_INT(err_prefix(&err, "pod %d", 3), -EINVAL);
	CHECK_INT(err_prefix(&err, "pods.yaml"), -EINVAL);
	CHECK_STR(err.text, "pods.yaml: pod 3: no name");
}

TEST(text_that_does_not_fit_is_cut)
{
	struct err err = ERR_INIT;
	char large[2000];
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	err_set(&err, EIO, "%s", large);
	CHECK_INT(strlen(err.text), ERR_TEXT_MAX - 1);
	err_prefix(&err, "ab");
	CHECK_INT(strlen(err.text), ERR_TEXT_MAX - 1);
	CHECK(strncmp(err.text, "ab: xxx", 7) == 0);
	err_prefix(&err, "%s", large);
	CHECK_INT(strlen(err.text), ERR_TEXT_MAX - 1);
	CHECK_INT(err.code, EIO);
}

TEST_MAIN()
