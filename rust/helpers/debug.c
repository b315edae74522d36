// SPDX-License-Identifier: GPL-2.0
/*
 * Tables in debugfs, as sequential files whose lines Rust writes. A table may have very many
 * lines: between two of them nothing is locked, and a reader gets a page at a time.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "ib_cm_helpers.h"

/* What an open file has; the file's lock protects it. */
struct ib_cm_open_table {
	const struct ib_cm_table *table;
	void *walk;
};

static void *table_seek(struct ib_cm_open_table *open, loff_t line)
{
	return open->table->seek(open->walk, line) ? open : NULL;
}

static void *table_start(struct seq_file *file, loff_t *line)
{
	return table_seek(file->private, *line);
}

static void *table_next(struct seq_file *file, void *open, loff_t *line)
{
	++*line;
	return table_seek(open, *line);
}

static void table_stop(struct seq_file *file, void *open)
{
}

static int table_show(struct seq_file *file, void *data)
{
	struct ib_cm_open_table *open = data;

	open->table->print(open->walk, file);
	return 0;
}

static const struct seq_operations table_lines = {
	.start = table_start,
	.next = table_next,
	.stop = table_stop,
	.show = table_show,
};

static int table_open(struct inode *inode, struct file *file)
{
	struct ib_cm_open_table *open;

	open = __seq_open_private(file, &table_lines, sizeof(*open));
	if (!open)
		return -ENOMEM;
	open->table = inode->i_private;
	open->walk = open->table->open();
	if (!open->walk) {
		seq_release_private(inode, file);
		return -ENOMEM;
	}
	return 0;
}

static int table_release(struct inode *inode, struct file *file)
{
	struct seq_file *lines = file->private_data;
	struct ib_cm_open_table *open = lines->private;

	open->table->release(open->walk);
	return seq_release_private(inode, file);
}

/* An open file keeps the module. */
static const struct file_operations table_fops = {
	.owner = THIS_MODULE,
	.open = table_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = table_release,
};

struct dentry *ib_cm_helper_debug_dir(const char *name)
{
	return debugfs_create_dir(name, NULL);
}

/* Readable and nothing else, so that a locked-down kernel shows it too. */
void ib_cm_helper_debug_table(struct dentry *dir, const char *name,
			      const struct ib_cm_table *table)
{
	debugfs_create_file(name, 0444, dir, (void *)table, &table_fops);
}

void ib_cm_helper_debug_remove(struct dentry *dir)
{
	debugfs_remove(dir);
}

/* The name may be changed this moment, but its place stays. */
void ib_cm_helper_copy_device_name(const struct ib_device *device, char name[IB_DEVICE_NAME_MAX])
{
	strscpy(name, device->name, IB_DEVICE_NAME_MAX);
}

void ib_cm_helper_copy_task_name(char name[TASK_COMM_LEN])
{
	strscpy(name, current->comm, TASK_COMM_LEN);
}

/* "function [module]" of any address. */
void ib_cm_helper_symbol(char *to, size_t size, unsigned long address)
{
	snprintf(to, size, "%ps", (void *)address);
}

void ib_cm_helper_cond_resched(void)
{
	cond_resched();
}
