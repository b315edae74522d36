// SPDX-License-Identifier: GPL-2.0
/*
 * What tests do to the adapter, in debugfs ib_loop/:
 *
 *	faults	"drop|repeat|delay MESSAGE PORT COUNT [MS]": the next COUNT messages of connection
 *		managers with that attribute ID (hexadecimal, 0 for all of them) which leave that
 *		port (0 for both) are lost, delivered twice, or delivered MS milliseconds later.
 *		"clear" ends all. Read: the rules and what is left of their counts.
 *	link	"up" or "down": the cable.
 *	next_qpn	the number that the next QP gets, if it is free.
 *	stats	what was delivered to each port, and dropped.
 */

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "ib_loop.h"

#define RULES	8

struct rule {
	enum loop_fault fault;
	u32 attr_id;
	int port_num;
	int left;
	unsigned int ms;
};

static DEFINE_SPINLOCK(rules_lock);
static struct rule rules[RULES];
static struct dentry *folder;

static bool rnr_gives_up;
module_param(rnr_gives_up, bool, 0644);
MODULE_PARM_DESC(rnr_gives_up, "obey the RNR retry count of a QP; else a sender waits for ever");

bool loop_rnr_gives_up(void)
{
	return READ_ONCE(rnr_gives_up);
}

enum loop_fault loop_fault_of(int port_num, u16 attr_id, unsigned int *delay_ms)
{
	enum loop_fault fault = LOOP_PASS;
	int i;

	spin_lock(&rules_lock);
	for (i = 0; i < RULES; i++) {
		struct rule *rule = &rules[i];

		if (rule->fault == LOOP_PASS || !rule->left ||
		    (rule->attr_id && rule->attr_id != attr_id) ||
		    (rule->port_num && rule->port_num != port_num))
			continue;
		rule->left--;
		*delay_ms = rule->ms;
		fault = rule->fault;
		break;
	}
	spin_unlock(&rules_lock);
	return fault;
}

static int broken_port;

/* loop_break_port - what connections send by the port is lost, until 0 is given */
void loop_break_port(int port_num)
{
	WRITE_ONCE(broken_port, port_num);
}
EXPORT_SYMBOL_GPL(loop_break_port);

bool loop_port_is_broken(int port_num)
{
	return READ_ONCE(broken_port) == port_num;
}

static const char * const fault_names[] = {
	[LOOP_PASS] = "",
	[LOOP_DROP] = "drop",
	[LOOP_REPEAT] = "repeat",
	[LOOP_DELAY] = "delay",
};

static int add_rule(const char *text)
{
	struct rule rule = {};
	char name[16];
	int i, given = sscanf(text, "%15s %x %d %d %u", name, &rule.attr_id, &rule.port_num,
			      &rule.left, &rule.ms);

	if (given < 4)
		return -EINVAL;
	rule.fault = match_string(fault_names, ARRAY_SIZE(fault_names), name);
	if ((int)rule.fault <= LOOP_PASS || (rule.fault == LOOP_DELAY && given < 5))
		return -EINVAL;
	for (i = 0; i < RULES; i++) {
		if (rules[i].fault == LOOP_PASS) {
			rules[i] = rule;
			return 0;
		}
	}
	return -ENOSPC;
}

static int read_word(const char __user *from, size_t count, char *text, size_t size)
{
	if (count >= size)
		return -EINVAL;
	if (copy_from_user(text, from, count))
		return -EFAULT;
	text[count] = 0;
	strim(text);
	return 0;
}

static ssize_t faults_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	char text[64];
	int ret = read_word(from, count, text, sizeof(text));

	if (ret)
		return ret;
	spin_lock(&rules_lock);
	if (!strcmp(text, "clear"))
		memset(rules, 0, sizeof(rules));
	else
		ret = add_rule(text);
	spin_unlock(&rules_lock);
	return ret ?: count;
}

static int faults_show(struct seq_file *seq, void *unused)
{
	int i;

	spin_lock(&rules_lock);
	for (i = 0; i < RULES; i++)
		if (rules[i].fault != LOOP_PASS)
			seq_printf(seq, "%s %#x port %d left %d ms %u\n",
				   fault_names[rules[i].fault], rules[i].attr_id,
				   rules[i].port_num, rules[i].left, rules[i].ms);
	spin_unlock(&rules_lock);
	return 0;
}

static int faults_open(struct inode *inode, struct file *file)
{
	return single_open(file, faults_show, NULL);
}

static const struct file_operations faults_fops = {
	.owner = THIS_MODULE,
	.open = faults_open,
	.read = seq_read,
	.write = faults_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static ssize_t link_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	struct loop_dev *dev = file->private_data;
	char text[8];
	int ret = read_word(from, count, text, sizeof(text));

	if (ret)
		return ret;
	if (!strcmp(text, "up"))
		loop_set_link(dev, true);
	else if (!strcmp(text, "down"))
		loop_set_link(dev, false);
	else
		return -EINVAL;
	return count;
}

static const struct file_operations link_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = link_write,
};

/* Real adapters start their QPNs again when they are reset, so that a host has them twice. */
static ssize_t next_qpn_write(struct file *file, const char __user *from, size_t count,
			      loff_t *pos)
{
	struct loop_dev *dev = file->private_data;
	struct rvt_qpn_table *table = &dev->rdi.qp_dev->qpn_table;
	unsigned int qpn;
	int ret = kstrtouint_from_user(from, count, 0, &qpn);

	if (ret)
		return ret;
	if (qpn < 2 || qpn >= RVT_BITS_PER_PAGE)
		return -ERANGE;
	spin_lock(&table->lock);
	table->last = qpn - 1;
	spin_unlock(&table->lock);
	return count;
}

static const struct file_operations next_qpn_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = next_qpn_write,
};

static int stats_show(struct seq_file *seq, void *unused)
{
	struct loop_dev *dev = seq->private;
	int port_num;

	for (port_num = 1; port_num <= LOOP_PORTS; port_num++) {
		struct loop_port *port = loop_port(dev, port_num);

		seq_printf(seq, "port %d lid %u state %u delivered %llu dropped %llu\n", port_num,
			   port->lid, port->state, port->rvp.n_loop_pkts, port->rvp.n_pkt_drops);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

void loop_control_init(struct loop_dev *dev)
{
	folder = debugfs_create_dir("ib_loop", NULL);
	debugfs_create_file("faults", 0600, folder, dev, &faults_fops);
	debugfs_create_file("link", 0200, folder, dev, &link_fops);
	debugfs_create_file("next_qpn", 0200, folder, dev, &next_qpn_fops);
	debugfs_create_file("stats", 0400, folder, dev, &stats_fops);
}

void loop_control_exit(void)
{
	debugfs_remove(folder);
	spin_lock(&rules_lock);
	memset(rules, 0, sizeof(rules));
	spin_unlock(&rules_lock);
}
