// SPDX-License-Identifier: GPL-2.0
/*
 * CPU time of each kernel module while a command runs:
 *
 *	cpu_share PERIOD-US CMD...
 *
 * Every CPU is sampled with the stack of the kernel. A sample belongs to the module whose
 * function is the innermost on the stack: so a module pays for the kernel's own functions that
 * it calls (locks, allocation, wake-ups), and not for other modules that it calls or that call
 * it. That needs no symbol to be traceable, and is the same for C and Rust.
 *
 * Prints "share MODULE NANOSECONDS" for each module, "share (kernel) ..." for stacks without
 * one and "share (user) ..."; then "function MODULE NAME NANOSECONDS" by the innermost function
 * of a module, and "leaf MODULE NAME NANOSECONDS" by where the CPU itself was.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES		128	/* of each CPU's buffer, a power of two */
#define MOST_CPUS	64
#define MOST_MODULES	256
#define NAME_SIZE	128
#define POLL_US		20000

struct symbol {
	uint64_t address;
	unsigned int module;
	unsigned int inside, leaf;	/* samples */
	char name[NAME_SIZE];
};

struct ring {
	struct perf_event_mmap_page *head;
	unsigned char *data;
	size_t size;
};

static struct symbol *symbols;
static size_t symbol_count;
static char modules[MOST_MODULES][NAME_SIZE] = { "(user)", "(kernel)" };
static unsigned int module_count = 2;
static unsigned int samples[MOST_MODULES];
static unsigned long lost;

static void copy_name(char *to, const char *from)
{
	size_t size = strlen(from);

	if (size > NAME_SIZE - 1)
		size = NAME_SIZE - 1;
	memcpy(to, from, size);
	to[size] = '\0';
}

static void die(const char *what)
{
	fprintf(stderr, "cpu_share: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- symbols --- */

static unsigned int module_number(const char *name)
{
	unsigned int i;

	for (i = 2; i < module_count; i++)
		if (!strcmp(modules[i], name))
			return i;
	if (module_count == MOST_MODULES)
		return 1;
	copy_name(modules[module_count], name);
	return module_count++;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *left = a, *right = b;

	return left->address < right->address ? -1 : left->address > right->address;
}

static void read_symbols(void)
{
	char line[1024], name[512], module[512], type;
	FILE *file = fopen("/proc/kallsyms", "r");
	unsigned long long address;
	size_t room = 0;
	int fields;

	if (!file)
		die("/proc/kallsyms");
	while (fgets(line, sizeof(line), file)) {
		fields = sscanf(line, "%llx %c %511s [%511[^]]", &address, &type, name, module);
		if (fields < 3 || !strchr("tTwW", type))
			continue;
		if (symbol_count == room) {
			room = room ? 2 * room : 1 << 16;
			symbols = realloc(symbols, room * sizeof(*symbols));
			if (!symbols)
				die("memory");
		}
		symbols[symbol_count] = (struct symbol){
			.address = address,
			.module = fields == 4 ? module_number(module) : 1,
		};
		copy_name(symbols[symbol_count++].name, name);
	}
	fclose(file);
	if (!symbol_count || !symbols[symbol_count - 1].address)
		die("no addresses in /proc/kallsyms");
	qsort(symbols, symbol_count, sizeof(*symbols), by_address);
}

static struct symbol *find(uint64_t address)
{
	size_t low = 0, high = symbol_count, middle;

	while (high - low > 1) {
		middle = (low + high) / 2;
		if (symbols[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return &symbols[low];
}

/* --- samples --- */

static void count_stack(const uint64_t *stack, uint64_t depth)
{
	struct symbol *leaf = NULL, *symbol;
	uint64_t i;

	for (i = 0; i < depth; i++) {
		/* Marks between the parts of a stack. */
		if (stack[i] >= (uint64_t)PERF_CONTEXT_MAX)
			continue;
		/* A return address may be the first byte of the next function. */
		symbol = find(leaf ? stack[i] - 1 : stack[i]);
		if (!leaf)
			leaf = symbol;
		if (symbol->module == 1)
			continue;
		samples[symbol->module]++;
		symbol->inside++;
		if (symbol->module == leaf->module)
			leaf->leaf++;
		return;
	}
	samples[leaf ? 1 : 0]++;
}

/* A record may go over the end of the buffer. */
static void copy_out(const struct ring *ring, uint64_t from, void *to, size_t size)
{
	size_t start = from % ring->size;
	size_t first = size < ring->size - start ? size : ring->size - start;

	memcpy(to, ring->data + start, first);
	memcpy((char *)to + first, ring->data, size - first);
}

static void drain(struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->head->data_tail;
	static uint64_t record[8192];
	struct perf_event_header header;

	while (tail < head) {
		copy_out(ring, tail, &header, sizeof(header));
		copy_out(ring, tail, record, header.size);
		/* After the header: the depth of the stack, and the stack. */
		if (header.type == PERF_RECORD_SAMPLE)
			count_stack(record + 2, record[1]);
		else if (header.type == PERF_RECORD_LOST)
			lost += record[2];
		tail += header.size;
	}
	__atomic_store_n(&ring->head->data_tail, tail, __ATOMIC_RELEASE);
}

static int open_cpu(struct ring *ring, int cpu, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.exclude_idle = 1,
		.exclude_callchain_user = 1,
	};
	size_t page = sysconf(_SC_PAGESIZE);
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0);

	if (fd < 0)
		die("perf_event_open");
	ring->size = PAGES * page;
	ring->head = mmap(NULL, ring->size + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring->head == MAP_FAILED)
		die("mmap");
	ring->data = (unsigned char *)ring->head + page;
	return fd;
}

static int sample(struct ring *rings, int cpus, char **command)
{
	int i, status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		execvp(*command, command);
		die(*command);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		for (i = 0; i < cpus; i++)
			drain(&rings[i]);
		usleep(POLL_US);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void print(uint64_t period)
{
	unsigned int i;
	size_t s;

	for (i = 0; i < module_count; i++)
		if (samples[i])
			printf("share %s %llu\n", modules[i],
			       (unsigned long long)(samples[i] * period));
	for (s = 0; s < symbol_count; s++) {
		if (symbols[s].inside)
			printf("function %s %s %llu\n", modules[symbols[s].module],
			       symbols[s].name, (unsigned long long)(symbols[s].inside * period));
		if (symbols[s].leaf)
			printf("leaf %s %s %llu\n", modules[symbols[s].module], symbols[s].name,
			       (unsigned long long)(symbols[s].leaf * period));
	}
	if (lost)
		printf("lost %lu\n", lost);
}

int main(int argc, char **argv)
{
	struct ring rings[MOST_CPUS];
	int fds[MOST_CPUS];
	uint64_t period;
	int cpus, i, status;

	if (argc < 3) {
		fprintf(stderr, "usage: cpu_share PERIOD-US CMD...\n");
		return 2;
	}
	period = strtoull(argv[1], NULL, 10) * 1000;
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (!period || cpus > MOST_CPUS) {
		fprintf(stderr, "cpu_share: the period must be above 0, and CPUs at most %d\n",
			MOST_CPUS);
		return 2;
	}
	read_symbols();
	for (i = 0; i < cpus; i++)
		fds[i] = open_cpu(&rings[i], i, period);
	for (i = 0; i < cpus; i++)
		ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
	status = sample(rings, cpus, argv + 2);
	for (i = 0; i < cpus; i++)
		ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
	for (i = 0; i < cpus; i++)
		drain(&rings[i]);
	print(period);
	return status;
}
