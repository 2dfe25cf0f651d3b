/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "base/suggest.h"
#include "test.h"

static const char *const names[] = { "simulate", "demo", "explain", "top", "topo", "help" };

static const char *suggested(const char *word)
{
	return suggest(word, names, ARRAY_SIZE(names));
}

TEST(a_slip_of_the_fingers_finds_its_name)
{
	CHECK_STR(suggested("simulat"), "simulate");
	CHECK_STR(suggested("simualte"), "simulate");
	CHECK_STR(suggested("ssimulate"), "simulate");
	CHECK_STR(suggested("dmeo"), "demo");
	CHECK_STR(suggested("exlpain"), "explain");
}

TEST(the_beginning_of_a_name_finds_it)
{
	CHECK_STR(suggested("sim"), "simulate");
	CHECK_STR(suggested("expl"), "explain");
}

TEST(an_exact_name_is_the_nearest)
{
	CHECK_STR(suggested("topo"), "topo");
	CHECK_STR(suggested("top"), "top");
}

TEST(a_word_that_resembles_nothing_gets_no_suggestion)
{
	CHECK_STR(suggested("kubernetes"), NULL);
	CHECK_STR(suggested("xyz"), NULL);
	CHECK_STR(suggested("x"), NULL);
	CHECK_STR(suggested(""), NULL);
}

TEST(words_of_any_length_are_fine)
{
	char word[4 * SUGGEST_NAME_MAX];
	memset(word, 's', sizeof(word) - 1);
	word[sizeof(word) - 1] = 0;
	CHECK_STR(suggested(word), NULL);
	word[SUGGEST_NAME_MAX] = 0;
	CHECK_STR(suggested(word), NULL);
	const char *longest[] = { word };
	CHECK(suggest(word, longest, 1) == word);
}

TEST_MAIN()
