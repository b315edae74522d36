// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU's emulator that counts what the guest executes. Instructions say what a module
 * costs where time does not: an emulated processor's time is the host's.
 *
 * It counts how often each block of code runs and, for spinlocks, how many instructions pass while
 * one is held and while one keeps interrupts off, by where they were taken. To wait for a lock does
 * not count: the processor that holds it may be one that the host does not run. The guest's program
 * "mark" gives it commands:
 *
 *	role ROLE ADDRESS	a function of the kernel is what ROLE says: lock, lock_irq (which turns
 *				interrupts off) or unlock
 *	wait START END		code that waits for a lock
 *	begin			counts from zero
 *	dump TAG		writes what was counted since then:
 *				dump TAG
 *				block ADDRESS INSTRUCTIONS TIMES	(user space as one address, 0)
 *				hold CALLER TIMES LONGEST SUM
 *				off CALLER TIMES LONGEST SUM
 *				end
 *
 * Arguments: out=FILE
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu.h"

#define MOST_CPUS	16
#define MOST_BLOCKS	(1u << 20)	/* a power of two, as all sizes of tables here */
#define MOST_CALLERS	(1u << 14)
#define MOST_HELD	32
#define MOST_LENGTH	1024		/* instructions of a block */
#define USER_END	(1ull << 47)

#define INTERRUPTS_ON	(1u << 9)	/* in EFLAGS */

enum role { NOTHING, LOCK, LOCK_IRQ, UNLOCK };

static const char *const role_names[] = { "nothing", "lock", "lock_irq", "unlock" };

struct block {
	uint64_t address;
	uint32_t length;
	_Atomic uint32_t role;
	_Atomic uint64_t times;
};

/* Where locks are taken: the address to which the lock function returns. */
struct caller {
	uint64_t address;
	uint64_t times, longest, sum;
};

struct held {
	uint64_t lock, caller, since;
	bool off;	/* it turned interrupts off */
	bool waits;
};

/* Only its own thread uses it. */
struct cpu {
	uint64_t executed;
	struct held held[MOST_HELD];
	unsigned int depth;
	struct qemu_plugin_register *rsp, *rdi, *eflags;
	GByteArray *bytes;
};

static struct cpu cpus[MOST_CPUS];
static struct block *blocks;
static struct block user_blocks[MOST_LENGTH + 1];
static _Atomic uint64_t wait_start, wait_end;
static struct caller holds[MOST_CALLERS], offs[MOST_CALLERS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;	/* of all tables */
static FILE *out;

static void fail(const char *why)
{
	fprintf(stderr, "count: %s\n", why);
	abort();
}

static size_t place(uint64_t address, size_t size)
{
	return (address * 0x9e3779b97f4a7c15ull >> 32) & (size - 1);
}

/* The block of an address, which is made if there is none. The mutex is held. */
static struct block *find_block(uint64_t address, uint32_t length)
{
	size_t at = place(address, MOST_BLOCKS);
	size_t tries;

	for (tries = 0; tries < MOST_BLOCKS; tries++) {
		struct block *block = &blocks[at];

		if (!block->address) {
			block->address = address;
			block->length = length;
		}
		if (block->address == address && block->length == length)
			return block;
		at = (at + 1) & (MOST_BLOCKS - 1);
	}
	fail("the table of blocks is full");
	return NULL;
}

static void add(struct caller *table, uint64_t address, uint64_t instructions)
{
	size_t at = place(address, MOST_CALLERS);
	size_t tries;

	pthread_mutex_lock(&mutex);
	for (tries = 0; tries < MOST_CALLERS; tries++) {
		struct caller *caller = &table[at];

		if (!caller->address)
			caller->address = address;
		if (caller->address == address) {
			caller->times++;
			caller->sum += instructions;
			if (caller->longest < instructions)
				caller->longest = instructions;
			pthread_mutex_unlock(&mutex);
			return;
		}
		at = (at + 1) & (MOST_CALLERS - 1);
	}
	fail("the table of callers is full");
}

static uint64_t read_register(struct cpu *cpu, struct qemu_plugin_register *reg)
{
	uint64_t value = 0;
	int size;

	g_byte_array_set_size(cpu->bytes, 0);
	size = qemu_plugin_read_register(reg, cpu->bytes);
	if (size < 4 || size > (int)sizeof(value))
		fail("a register cannot be read");
	memcpy(&value, cpu->bytes->data, size);
	return value;
}

/* Returns whether the guest has that memory. */
static bool read_memory(struct cpu *cpu, uint64_t address, void *to, size_t size)
{
	g_byte_array_set_size(cpu->bytes, 0);
	if (!qemu_plugin_read_memory_vaddr(address, cpu->bytes, size))
		return false;
	memcpy(to, cpu->bytes->data, size);
	return true;
}

static void lock(struct cpu *cpu, bool irq)
{
	struct held held = { .waits = true };

	held.off = irq && (read_register(cpu, cpu->eflags) & INTERRUPTS_ON);
	held.lock = read_register(cpu, cpu->rdi);
	if (!read_memory(cpu, read_register(cpu, cpu->rsp), &held.caller, sizeof(held.caller)))
		return;
	/* Locks whose release was not seen would fill the table: the oldest goes. */
	if (cpu->depth == MOST_HELD)
		memmove(cpu->held, cpu->held + 1, sizeof(held) * --cpu->depth);
	cpu->held[cpu->depth++] = held;
}

static void unlock(struct cpu *cpu)
{
	uint64_t lock = read_register(cpu, cpu->rdi);
	unsigned int at = cpu->depth;
	struct held held;

	while (at && cpu->held[at - 1].lock != lock)
		at--;
	if (!at)
		return;
	held = cpu->held[at - 1];
	memmove(cpu->held + at - 1, cpu->held + at, sizeof(held) * (cpu->depth - at));
	cpu->depth--;
	if (held.waits)
		return;
	add(holds, held.caller, cpu->executed - held.since);
	if (held.off)
		add(offs, held.caller, cpu->executed - held.since);
}

static void on_block(unsigned int index, void *data)
{
	struct block *block = data;
	struct cpu *cpu = &cpus[index];
	struct held *last = cpu->depth ? &cpu->held[cpu->depth - 1] : NULL;

	/* The function that takes a lock has returned: it is held from here on. */
	if (last && last->waits && last->caller == block->address) {
		last->waits = false;
		last->since = cpu->executed;
	}
	atomic_fetch_add_explicit(&block->times, 1, memory_order_relaxed);
	switch (atomic_load_explicit(&block->role, memory_order_relaxed)) {
	case LOCK:
	case LOCK_IRQ:
		lock(cpu, block->role == LOCK_IRQ);
		break;
	case UNLOCK:
		unlock(cpu);
		break;
	default:
		break;
	}
	if (block->address < wait_start || block->address >= wait_end)
		cpu->executed += block->length;
}

static void begin(void)
{
	size_t at;

	for (at = 0; at < MOST_BLOCKS; at++)
		blocks[at].times = 0;
	for (at = 0; at <= MOST_LENGTH; at++)
		user_blocks[at].times = 0;
	memset(holds, 0, sizeof(holds));
	memset(offs, 0, sizeof(offs));
}

static void dump_block(const struct block *block, uint64_t address)
{
	if (block->times)
		fprintf(out, "block %" PRIx64 " %u %" PRIu64 "\n", address, block->length,
			block->times);
}

static void dump_callers(const char *what, const struct caller *table)
{
	size_t at;

	for (at = 0; at < MOST_CALLERS; at++)
		if (table[at].times)
			fprintf(out, "%s %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", what,
				table[at].address, table[at].times, table[at].longest,
				table[at].sum);
}

static void dump(const char *tag)
{
	size_t at;

	fprintf(out, "dump %s\n", tag);
	for (at = 0; at < MOST_BLOCKS; at++)
		dump_block(&blocks[at], blocks[at].address);
	for (at = 0; at <= MOST_LENGTH; at++)
		dump_block(&user_blocks[at], 0);
	dump_callers("hold", holds);
	dump_callers("off", offs);
	fprintf(out, "end\n");
	fflush(out);
}

static void set_role(const char *name, uint64_t address)
{
	uint32_t role, length;

	for (role = LOCK; role <= UNLOCK; role++)
		if (!strcmp(name, role_names[role]))
			break;
	if (role > UNLOCK)
		fail("no such role");
	/* Blocks that begin there, those that are translated already and those to come. */
	for (length = 1; length <= 64; length++)
		find_block(address, length)->role = role;
}

static void set_wait(uint64_t start, uint64_t end)
{
	wait_start = start;
	wait_end = end;
}

static void on_mark(unsigned int index, void *data)
{
	struct cpu *cpu = &cpus[index];
	char text[128] = "";
	char name[32];
	uint64_t address, end;

	(void)data;
	if (!read_memory(cpu, read_register(cpu, cpu->rdi), text, sizeof(text) - 1))
		fail("a mark's text cannot be read");
	pthread_mutex_lock(&mutex);
	if (sscanf(text, "role %31s %" SCNx64, name, &address) == 2)
		set_role(name, address);
	else if (sscanf(text, "wait %" SCNx64 " %" SCNx64, &address, &end) == 2)
		set_wait(address, end);
	else if (!strcmp(text, "begin"))
		begin();
	else if (!strncmp(text, "dump ", 5))
		dump(text + 5);
	else
		fail("unknown mark");
	pthread_mutex_unlock(&mutex);
}

/* The instruction of "mark": it does nothing, and no compiler makes it. */
static bool is_mark(const struct qemu_plugin_insn *insn)
{
	static const unsigned char mark[] = { 0x0f, 0x1f, 0x80, 'k', 'r', 'a', 'm' };
	unsigned char bytes[sizeof(mark)];

	return qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       !memcmp(bytes, mark, sizeof(mark));
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	size_t length = qemu_plugin_tb_n_insns(tb);
	struct block *block;
	size_t at;

	(void)id;
	if (length > MOST_LENGTH)
		fail("a block is too long");
	if (address < USER_END) {
		block = &user_blocks[length];
		block->length = length;
		for (at = 0; at < length; at++) {
			struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, at);

			if (is_mark(insn))
				qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
								       QEMU_PLUGIN_CB_R_REGS, NULL);
		}
	} else {
		pthread_mutex_lock(&mutex);
		block = find_block(address, length);
		pthread_mutex_unlock(&mutex);
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_R_REGS, block);
}

static void on_cpu(qemu_plugin_id_t id, unsigned int index)
{
	const GArray *registers = qemu_plugin_get_registers();
	struct cpu *cpu = &cpus[index];
	unsigned int at;

	(void)id;
	if (index >= MOST_CPUS)
		fail("too many processors");
	for (at = 0; at < registers->len; at++) {
		const qemu_plugin_reg_descriptor *reg =
			&((const qemu_plugin_reg_descriptor *)registers->data)[at];

		if (!strcmp(reg->name, "rsp"))
			cpu->rsp = reg->handle;
		if (!strcmp(reg->name, "rdi"))
			cpu->rdi = reg->handle;
		if (!strcmp(reg->name, "eflags"))
			cpu->eflags = reg->handle;
	}
	if (!cpu->rsp || !cpu->rdi || !cpu->eflags)
		fail("this processor lacks a register");
	cpu->bytes = g_byte_array_new();
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4) || !info->system_emulation) {
		fprintf(stderr, "count: give it out=FILE, and a whole machine\n");
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	blocks = calloc(MOST_BLOCKS, sizeof(*blocks));
	if (!out || !blocks) {
		perror("count");
		return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
