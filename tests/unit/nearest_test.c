/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "base/nearest.h"
#include "test.h"

static const char *nearest(const char *word)
{
	static const char *const words[] = { "gpu-count", "resources", "containers", "image" };

	return nearest_word(word, words, ARRAY_SIZE(words));
}

TEST(a_slip_finds_its_word)
{
	CHECK_STR(nearest("gpu-cuont"), "gpu-count");
	CHECK_STR(nearest("resource"), "resources");
	CHECK_STR(nearest("contianers"), "containers");
	CHECK_STR(nearest("imagee"), "image");
}

TEST(another_word_finds_nothing)
{
	char word[2 * NEAREST_WORD_MAX];
	const char *const words[] = { word };

	CHECK(nearest("") == NULL);
	CHECK(nearest("zone") == NULL);
	memset(word, 'x', sizeof(word));
	word[NEAREST_WORD_MAX + 1] = 0;
	CHECK(nearest_word(word, words, 1) == NULL);
	CHECK(nearest_word("xx", words, 1) == NULL);
	word[NEAREST_WORD_MAX] = 0;
	CHECK(nearest_word(word, words, 1) == word);
}

TEST_MAIN()
