// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the symbols of ib_cm, as a module that consumes them.
 *
 * Writing the name of a suite to debugfs ib_cm_api_test/run runs it in the writing process;
 * ib_cm_api_test/results then has a line per case: "ok NAME", "not ok NAME", or "# REMARK".
 */

#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/vmalloc.h>

#include "api.h"

MODULE_DESCRIPTION("Tests of the symbols of ib_cm");
MODULE_LICENSE("GPL");

#define RESULTS_SIZE	(512 * 1024)
/* A case that takes longer is worth a remark. */
#define SLOW_MS		5000

static char *netdev = "v0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the RoCE device that connects to itself");

static char *under_test = "rust";
module_param(under_test, charp, 0444);
MODULE_PARM_DESC(under_test, "which ib_cm is loaded: rust or c");

unsigned int api_slow = 1;
module_param_named(slow, api_slow, uint, 0444);
MODULE_PARM_DESC(slow, "how much slower this kernel is: messages wait that much longer for answers");

static const struct api_suite * const suites[] = {
	&api_suite_errno_state,
	&api_suite_errno_param,
	&api_suite_listen,
	&api_suite_qp_attr,
	&api_suite_order,
	&api_suite_handlers,
	&api_suite_refused,
	&api_suite_data,
	&api_suite_destroy,
	&api_suite_junk,
	&api_suite_duplicates,
	&api_suite_stale,
	&api_suite_parity_listen,
	&api_suite_parity,
	&api_suite_parity_passive,
	&api_suite_device_hold,
	&api_suite_device_gone,
	&api_suite_many,
	&api_suite_many_gone,
	&api_suite_optional_as_c,
	&api_suite_first_retry,
	&api_suite_mra_once,
	&api_suite_sidr_replay,
	&api_suite_slow_handler,
};

static DEFINE_MUTEX(run_lock);
static struct dentry *folder;
static char *results;
static size_t results_len;

bool api_on_c(void)
{
	return !strcmp(under_test, "c");
}

static __printf(2, 0) void append(const char *prefix, const char *fmt, va_list args)
{
	size_t room = RESULTS_SIZE - results_len;

	if (room < 512)
		return;
	results_len += scnprintf(results + results_len, room, "%s", prefix);
	room = RESULTS_SIZE - results_len;
	results_len += vscnprintf(results + results_len, room - 1, fmt, args);
	results[results_len++] = '\n';
}

static __printf(2, 3) void print_result(const char *prefix, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append(prefix, fmt, args);
	va_end(args);
}

void api_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append("# ", fmt, args);
	va_end(args);
}

void api_expected_difference(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	append("# expected difference of the C module, not run on it: ", fmt, args);
	va_end(args);
}

bool api_check(struct api_test *t, bool good, const char *fmt, ...)
{
	va_list args;

	t->checks++;
	if (good)
		return true;
	t->failures++;
	if (t->quiet)
		return false;
	va_start(args, fmt);
	append("# failed: ", fmt, args);
	va_end(args);
	return false;
}

static void report(const char *suite, const char *name, const struct api_test *t, s64 ms)
{
	if (ms >= SLOW_MS)
		api_note("the next case took %lld ms", ms);
	if (t->failures)
		print_result("not ok ", "%s %s: %u of %u checks failed", suite, name, t->failures,
			     t->checks);
	else
		print_result("ok ", "%s %s: %u checks", suite, name, t->checks);
}

static void run_suite(const struct api_suite *suite)
{
	struct api_test last = {};
	unsigned int i;

	for (i = 0; i < suite->count; i++) {
		ktime_t start = ktime_get();
		struct api_test t = {};

		suite->cases[i].run(&t);
		if (!suite->keep)
			api_end_case(&t);
		report(suite->name, suite->cases[i].name, &t, ktime_ms_delta(ktime_get(), start));
		cond_resched();
	}
	api_end_suite(&last);
	report(suite->name, "handlers", &last, 0);
}

static ssize_t run_write(struct file *file, const char __user *user, size_t len, loff_t *pos)
{
	char name[32] = {};
	unsigned int i;
	int ret;

	if (len >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, user, len))
		return -EFAULT;
	for (i = 0; i < ARRAY_SIZE(suites); i++)
		if (sysfs_streq(name, suites[i]->name))
			break;
	if (i == ARRAY_SIZE(suites))
		return -ENOENT;
	if (suites[i]->beside) {
		suites[i]->cases->run(NULL);
		return len;
	}

	mutex_lock(&run_lock);
	results_len = 0;
	api_free_all();
	ret = suites[i]->no_device ? 0 : roce_open(&api_device, netdev);
	if (!ret)
		run_suite(suites[i]);
	if (!ret && !suites[i]->no_device)
		roce_close(&api_device);
	mutex_unlock(&run_lock);
	return ret ? ret : len;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.write = run_write,
};

static ssize_t results_read(struct file *file, char __user *user, size_t len, loff_t *pos)
{
	ssize_t ret;

	mutex_lock(&run_lock);
	ret = simple_read_from_buffer(user, len, pos, results, results_len);
	mutex_unlock(&run_lock);
	return ret;
}

static const struct file_operations results_fops = {
	.owner = THIS_MODULE,
	.read = results_read,
};

static int __init api_init(void)
{
	if (!api_slow)
		return -EINVAL;
	results = vmalloc(RESULTS_SIZE);
	if (!results)
		return -ENOMEM;
	folder = debugfs_create_dir("ib_cm_api_test", NULL);
	debugfs_create_file("run", 0200, folder, NULL, &run_fops);
	debugfs_create_file("results", 0400, folder, NULL, &results_fops);
	return 0;
}

static void __exit api_exit(void)
{
	debugfs_remove(folder);
	/* What a suite kept. */
	api_end_case(NULL);
	api_many_free();
	api_free_all();
	vfree(results);
}

module_init(api_init);
module_exit(api_exit);
