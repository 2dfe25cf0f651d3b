/* SPDX-License-Identifier: Apache-2.0
 *
 * test.h - cmocka, with tests that register themselves.
 *
 *	#include "test.h"
 *
 *	TEST(an_empty_heap_has_no_top)
 *	{
 *		struct heap heap CLEANUP(heap_done) = HEAP_INIT;
 *		CHECK(heap_top(&heap) == NULL);
 *	}
 *
 *	TEST_MAIN()
 *
 * One executable per file; tests run in the order in which they are written.
 * A failed check ends its test (by longjmp: cleanups of that scope do not run)
 * and the next test starts.  The executable takes one optional argument, a
 * pattern with * and ? that picks tests by name.  It prints TAP when
 * CMOCKA_MESSAGE_OUTPUT=TAP, which meson sets.
 */
#ifndef GS_TESTS_TEST_H
#define GS_TESTS_TEST_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct test_entry {
	const char *name;
	void (*run)(void **state);
	struct test_entry *next;
};

static struct test_entry *test_first;
static struct test_entry **test_last = &test_first;
static size_t test_count;

static inline void test_register(struct test_entry *entry)
{
	*test_last = entry;
	test_last = &entry->next;
	test_count++;
}

/* The running test, and the way back out of it when it is skipped. */
static struct CMUnitTest *test_running;
static jmp_buf test_skipped;

static inline void test_run_one(void **state, void (*run)(void))
{
	test_running = *state;
	if (setjmp(test_skipped) == 0)
		run();
}

#define TEST(test_name)                                                                 \
	static void test_name(void);                                                    \
	static void test_name##_run(void **state)                                       \
	{                                                                               \
		test_run_one(state, test_name);                                         \
	}                                                                               \
	__attribute__((constructor)) static void test_name##_register(void)             \
	{                                                                               \
		static struct test_entry entry = { #test_name, test_name##_run, NULL }; \
		test_register(&entry);                                                  \
	}                                                                               \
	static void test_name(void)

/* Ends the running test as failed, with a reason in the manner of printf. */
__attribute__((noreturn, format(printf, 3, 4))) static inline void test_fail(const char *file,
									     int line,
									     const char *format,
									     ...)
{
	char reason[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	print_error("%s:%d: %s\n", file, line, reason);
	_fail(file, line);
	abort(); /* not reached: _fail() jumps back into the runner */
}

/* The test fails unless the expression holds. */
#define CHECK(expression)       \
	((expression) ? (void)0 \
		      : test_fail(__FILE__, __LINE__, "CHECK(%s) does not hold", #expression))

/* The same with a note in the manner of printf: the seed, the row of a table. */
#define CHECKF(expression, ...) \
	((expression) ? (void)0 : test_fail_note(__FILE__, __LINE__, #expression, __VA_ARGS__))

__attribute__((noreturn, format(printf, 4, 5))) static inline void test_fail_note(
	const char *file, int line, const char *expression, const char *format, ...)
{
	char note[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(note, sizeof(note), format, arguments);
	va_end(arguments);
	test_fail(file, line, "CHECK(%s) does not hold: %s", expression, note);
}

/* Equal integers, or the test fails and shows both. */
#define CHECK_INT(actual, expected) \
	test_check_int(__FILE__, __LINE__, #actual, (intmax_t)(actual), (intmax_t)(expected))

static inline void test_check_int(const char *file, int line, const char *expression,
				  intmax_t actual, intmax_t expected)
{
	if (actual != expected)
		test_fail(file, line, "%s is %" PRIdMAX ", expected %" PRIdMAX, expression, actual,
			  expected);
}

/* Equal strings, or the test fails and shows both.  NULL equals NULL alone. */
#define CHECK_STR(actual, expected) \
	test_check_str(__FILE__, __LINE__, #actual, (actual), (expected))

static inline void test_check_str(const char *file, int line, const char *expression,
				  const char *actual, const char *expected)
{
	if (actual && expected ? strcmp(actual, expected) == 0 : actual == expected)
		return;
	test_fail(file, line, "%s is \"%s\", expected \"%s\"", expression,
		  actual ? actual : "(null)", expected ? expected : "(null)");
}

/* Ends the running test, which then counts neither as passed nor as failed, with the
 * reason in the manner of printf: what it needs is not here.  cmocka's own skip()
 * prints "not ok", so this one has the name say it, as TAP wants it. */
#define SKIP(...) test_skip(__VA_ARGS__)
#undef skip
#define skip() test_skip("not possible here")

__attribute__((noreturn, format(printf, 1, 2))) static inline void test_skip(const char *format,
									     ...)
{
	static char name[512];
	char reason[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	snprintf(name, sizeof(name), "%.200s # SKIP %s", test_running->name, reason);
	test_running->name = name;
	longjmp(test_skipped, 1);
}

static inline int test_run_all(const char *group, const char *pattern)
{
	struct CMUnitTest *tests = calloc(test_count + 1, sizeof(*tests));
	if (!tests)
		return 1;
	size_t count = 0;
	for (const struct test_entry *entry = test_first; entry; entry = entry->next, count++)
		tests[count] = (struct CMUnitTest){ .name = entry->name,
						    .test_func = entry->run,
						    .initial_state = &tests[count] };
	if (pattern)
		cmocka_set_test_filter(pattern);
	/* The macro around this function wants an array of known size. */
	int failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
	free(tests);
	return failed == 0 ? 0 : 1;
}

#define TEST_MAIN()                                                       \
	int main(int argc, char **argv)                                   \
	{                                                                 \
		return test_run_all(__FILE__, argc > 1 ? argv[1] : NULL); \
	}

#endif
