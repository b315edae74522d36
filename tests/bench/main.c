// SPDX-License-Identifier: GPL-2.0
/*
 * Speed of ib_cm as its consumers in the kernel see it.
 *
 * Writing "COMMAND NAME=NUMBER..." to debugfs ib_cm_bench/run runs a command in the writing
 * process; ib_cm_bench/results then has a line "NAME NUMBER" for each figure, times in
 * nanoseconds, and remarks that begin with "#". The write fails when a connection failed.
 *
 *	cycle		connections are made and ended as soon as they are made
 *	keep		connections are made and kept
 *	disconnect	the kept ones are disconnected, then destroyed in TimeWait
 *	drop		the kept ones are destroyed as they are
 *	flood		the REQ of one connection is sent count times
 */

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "bench.h"

MODULE_DESCRIPTION("Load generator for ib_cm");
MODULE_LICENSE("GPL");

#define RESULTS_SIZE	SZ_16K

char *bench_netdev = "v0";
module_param_named(netdev, bench_netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the RoCE device that connects to itself");

static const struct {
	const char *name;
	size_t offset;
	unsigned int least, most;
} known_args[] = {
	{ "count", offsetof(struct bench_args, count), 1, 10000000 },
	{ "in_flight", offsetof(struct bench_args, in_flight), 1, 1000000 },
	{ "life", offsetof(struct bench_args, life), 0, 31 },
	{ "timeout", offsetof(struct bench_args, timeout), 0, 31 },
	{ "sleepers", offsetof(struct bench_args, sleepers), 0, 100000 },
	{ "sleep_ms", offsetof(struct bench_args, sleep_ms), 0, 10000 },
	{ "listeners", offsetof(struct bench_args, listeners), 1, 1000000 },
};

static const struct bench_args defaults = {
	.count = 1000,
	.in_flight = 1,
	/* TimeWait takes some milliseconds: ended connections do not pile up. */
	.life = 9,
	/* 4.3 s: nothing is sent twice because it waited */
	.timeout = 20,
	.sleep_ms = 100,
	.listeners = 1,
};

static const struct {
	const char *name;
	int (*run)(const struct bench_args *args);
} commands[] = {
	{ "cycle", bench_cycle },
	{ "keep", bench_keep },
	{ "disconnect", bench_disconnect },
	{ "drop", bench_drop },
	{ "flood", bench_flood },
};

static DEFINE_MUTEX(run_lock);
static struct dentry *folder;

/* Handlers write remarks. */
static DEFINE_SPINLOCK(results_lock);
static char *results;
static size_t results_len;

void bench_print(const char *fmt, ...)
{
	unsigned long flags;
	va_list args;

	va_start(args, fmt);
	spin_lock_irqsave(&results_lock, flags);
	if (results_len < RESULTS_SIZE - 256) {
		results_len += vscnprintf(results + results_len, 255, fmt, args);
		results[results_len++] = '\n';
	}
	spin_unlock_irqrestore(&results_lock, flags);
	va_end(args);
}

static int parse_arg(struct bench_args *args, char *word)
{
	char *value = strchr(word, '=');
	unsigned int number, i;
	int ret;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	ret = kstrtouint(value, 0, &number);
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(known_args); i++) {
		if (strcmp(word, known_args[i].name))
			continue;
		if (number < known_args[i].least || number > known_args[i].most)
			return -ERANGE;
		*(unsigned int *)((char *)args + known_args[i].offset) = number;
		return 0;
	}
	return -EINVAL;
}

static int run_command(char *text)
{
	struct bench_args args = defaults;
	char *name = strsep(&text, " ");
	char *word;
	unsigned int i;
	int ret;

	while ((word = strsep(&text, " "))) {
		ret = parse_arg(&args, word);
		if (ret)
			return ret;
	}
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].run(&args);
	return -ENOENT;
}

static ssize_t run_write(struct file *file, const char __user *user, size_t len, loff_t *pos)
{
	char text[256] = {};
	int ret;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, len))
		return -EFAULT;
	mutex_lock(&run_lock);
	results_len = 0;
	ret = run_command(strim(text));
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

static int __init bench_init(void)
{
	results = kmalloc(RESULTS_SIZE, GFP_KERNEL);
	if (!results)
		return -ENOMEM;
	folder = debugfs_create_dir("ib_cm_bench", NULL);
	debugfs_create_file("run", 0200, folder, NULL, &run_fops);
	debugfs_create_file("results", 0400, folder, NULL, &results_fops);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove(folder);
	bench_drop(NULL);
	kfree(results);
}

module_init(bench_init);
module_exit(bench_exit);
