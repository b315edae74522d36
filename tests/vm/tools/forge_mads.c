// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of the connection manager that no connection manager sends, by the thousand.
 *
 *	forge_mads SELF PEER GID-INDEX GUIDE-PORT SAFE-PORT BAIT-PORT HONEST-PORT COUNT SEED
 *		sends COUNT MADs to PEER through ib_umad, where forge_guide tells who lives there;
 *		GID-INDEX is that of SELF
 *
 * What is sent is right for an identifier that lives at PEER, and then changed here and there; or
 * it begins something; or it is noise. Connections of the service SAFE-PORT get what may not
 * disturb them: repetitions, and what names them wrongly in one point. Those of BAIT-PORT get
 * anything. Who listens to SAFE-PORT or HONEST-PORT is asked for nothing: it would accept, and its
 * program ends when nobody is there. Nothing asks for more than a second of patience or TimeWait,
 * which would be granted.
 * The same seed draws the same; what it is applied to depends on who lives there.
 *
 * Prints "sent NAME NUMBER" for each kind of message, of those that a MAD layer lets through, and
 * "astray NUMBER": so many REQs name another path than the one to here, and with it the answers.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/ib_user_mad.h>

#define UMAD		"/dev/infiniband/umad0"
#define GUID		"/sys/class/infiniband/rxe0/node_guid"
#define GSI_QKEY	0x80010000
#define MAD_SIZE	256
#define BODY		24
#define BODY_SIZE	(MAD_SIZE - BODY)
/* The primary path of a REQ, but for its last byte. */
#define PATH		52
#define PATH_SIZE	43
#define BURST		32
#define BURSTS_PER_LOOK	8
#define PATIENCE_MS	5000
#define ROWS		2048
#define SERVICE_TCP	0x1060000
#define SERVICE_UDP	0x1110000
/* The devices' own QPNs are smaller, the invented ones greater. */
#define INVENTED_QPN	0x100000
/* As exponent of the IBA's time format: 268 ms. */
#define LONGEST		16

enum { REQ = 0x10, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR, END };

static const char * const names[] = {
	"req", "mra", "rej", "rep", "rtu", "dreq", "drep", "sidr_req", "sidr_rep", "lap", "apr",
};

enum kind { OTHER, SAFE, BAIT };

struct row {
	enum kind kind;
	uint32_t local_id, remote_id, local_qpn, remote_qpn;
	uint64_t guid;
};

static struct row rows[ROWS];
static unsigned int row_count;
static struct in_addr self, peer;
static uint16_t bait_port, safe_port, honest_port;
static uint64_t own_guid;
static uint64_t chance;
static uint8_t mad[MAD_SIZE];
static uint8_t own_path[PATH_SIZE];
static uint8_t * const body = mad + BODY;

static void die(const char *what)
{
	fprintf(stderr, "forge_mads: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t draw(uint64_t limit)
{
	chance ^= chance >> 12;
	chance ^= chance << 25;
	chance ^= chance >> 27;
	return (chance * 0x2545f4914f6cdd1dULL >> 16) % limit;
}

static void put(unsigned int at, uint64_t value, unsigned int bytes)
{
	while (bytes--) {
		body[at + bytes] = value;
		value >>= 8;
	}
}

static uint64_t get(unsigned int at, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | body[at++];
	return value;
}

/* --- who lives there ------------------------------------------------------------------------- */

static FILE *guide_in, *guide_out;

static void find_guide(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = peer };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
		die("the guide");
	guide_in = fdopen(fd, "r");
	guide_out = fdopen(dup(fd), "w");
}

static enum kind kind_of(uint64_t service, const char *state)
{
	if (service == (uint64_t)SERVICE_TCP + bait_port)
		return BAIT;
	if (service == (uint64_t)SERVICE_TCP + safe_port && !strcmp(state, "ESTABLISHED"))
		return SAFE;
	return OTHER;
}

static void ask(const char *question, int is_rows)
{
	unsigned long long guid, service;
	char line[512], state[32];
	struct row *row;

	fputs(question, guide_out);
	fflush(guide_out);
	if (is_rows)
		row_count = 0;
	for (;;) {
		if (!fgets(line, sizeof(line), guide_in))
			die("the guide has gone");
		if (!strcmp(line, "end\n"))
			return;
		row = &rows[row_count];
		if (row_count == ROWS || sscanf(line, "%u %u %*s %*s %*s %31s %*s %u %u %*s %llx %llx",
						&row->local_id, &row->remote_id, state,
						&row->local_qpn, &row->remote_qpn, &guid,
						&service) != 7)
			continue;
		row->guid = guid;
		row->kind = kind_of(service, state);
		row_count++;
	}
}

/* One of the rows of a kind, if there are any. */
static const struct row *choose(enum kind kind)
{
	unsigned int at, from = row_count ? draw(row_count) : 0;

	for (at = 0; at < row_count; at++)
		if (rows[(from + at) % row_count].kind == kind)
			return &rows[(from + at) % row_count];
	return NULL;
}

/* --- messages as they should be -------------------------------------------------------------- */

static void noise(unsigned int at)
{
	while (at < BODY_SIZE)
		body[at++] = draw(256);
}

static void begin(unsigned int attribute)
{
	static uint32_t tid;

	memset(mad, 0, sizeof(mad));
	mad[0] = 1;
	mad[1] = 7;
	mad[2] = 2;
	mad[3] = 3;
	tid = htonl(ntohl(tid) + 1);
	memcpy(mad + 12, &tid, sizeof(tid));
	mad[17] = attribute;
}

static void gid(unsigned int at, struct in_addr address)
{
	body[at + 10] = body[at + 11] = 0xff;
	memcpy(body + at + 12, &address, sizeof(address));
}

/* What rdma_cm wants to know at the start of the private data. */
static void cma_header(unsigned int at)
{
	body[at + 1] = 4 << 4;
	put(at + 2, 1024 + draw(60000), 2);
	memcpy(body + at + 16, &self, sizeof(self));
	memcpy(body + at + 32, &peer, sizeof(peer));
}

static void req(uint64_t service, uint32_t id, uint32_t qpn, uint64_t guid)
{
	begin(REQ);
	put(0, id, 4);
	put(8, service, 8);
	put(16, guid, 8);
	put(32, qpn, 3);
	body[35] = body[39] = 1;
	body[43] = draw(LONGEST + 1) << 3;
	body[47] = draw(LONGEST + 1) << 3 | 7;
	put(48, 0xffff, 2);
	body[50] = 3 << 4 | 7;
	body[51] = draw(3) << 4;
	put(PATH, 0xffffffff, 4);
	gid(56, self);
	gid(72, peer);
	body[91] = 3;
	body[93] = 64;
	memcpy(own_path, body + PATH, sizeof(own_path));
	body[95] = (8 + draw(LONGEST - 7)) << 3;
	cma_header(140);
}

static int names_own_path(void)
{
	return !memcmp(own_path, body + PATH, sizeof(own_path));
}

static void fresh_req(void)
{
	uint64_t service = draw(8) ? (uint64_t)SERVICE_TCP + bait_port : draw(UINT64_MAX);

	req(service, 1 + draw(UINT32_MAX), INVENTED_QPN | draw(INVENTED_QPN), own_guid);
}

static void sidr_req(void)
{
	begin(SIDR_REQ);
	put(0, draw(4) ? draw(UINT32_MAX) : draw(16), 4);
	put(4, 0xffff, 2);
	put(8, draw(4) ? (uint64_t)SERVICE_UDP + bait_port : draw(UINT64_MAX), 8);
	cma_header(16);
}

/* What the peer of an identifier could say. */
static void say(unsigned int attribute, const struct row *row)
{
	if (attribute == REQ) {
		req((uint64_t)SERVICE_TCP + bait_port, row->remote_id, row->remote_qpn, row->guid);
		return;
	}
	if (attribute == SIDR_REQ) {
		sidr_req();
		return;
	}
	begin(attribute);
	put(0, row->remote_id, 4);
	put(4, row->local_id, 4);
	switch (attribute) {
	case MRA:
		body[8] = draw(3) << 6;
		body[9] = draw(LONGEST + 1) << 3;
		break;
	case REJ:
		body[8] = draw(4) << 6;
		put(10, draw(2) ? 1 + draw(35) : 28, 2);
		if (draw(2)) {
			body[9] = 8 << 1;
			put(12, row->guid, 8);
		}
		break;
	case REP:
		put(12, row->remote_qpn, 3);
		body[24] = body[25] = 1;
		body[27] = 7 << 5;
		put(28, row->guid, 8);
		break;
	case DREQ:
		put(8, row->local_qpn, 3);
		break;
	case SIDR_REP:
		put(0, row->local_id, 4);
		put(4, draw(6), 4);
		put(8, INVENTED_QPN, 3);
		break;
	case LAP:
		put(12, row->local_qpn, 3);
		put(20, 0xffffffff, 4);
		gid(24, self);
		gid(40, peer);
		body[60] = 64;
		body[63] = 14 << 3;
		break;
	case APR:
		body[9] = draw(12);
		break;
	}
}

/* --- and as they should not be --------------------------------------------------------------- */

static void change(void)
{
	const struct row *other = choose(BAIT);
	unsigned int times = 1 + draw(3);

	switch (draw(6)) {
	case 0:
		put(draw(2) * 4, draw(2) ? 0 : draw(UINT32_MAX), 4);
		break;
	case 1:
		if (other)
			put(draw(2) * 4, draw(2) ? other->local_id : other->remote_id, 4);
		break;
	case 2:
		noise(draw(BODY_SIZE));
		break;
	case 3:
		memset(body + draw(64), 0xff, draw(64));
		break;
	default:
		while (times--)
			body[draw(draw(2) ? 64 : BODY_SIZE)] = draw(256);
	}
}

static void change_header(void)
{
	/* Attribute, class version, method; or status, the class's two bytes, modifier. */
	static const unsigned char often[] = { 17, 16, 2, 3 }, rarely[] = { 4, 5, 6, 7, 20, 23 };
	unsigned int which = draw(5);

	mad[which < 4 ? often[which] : rarely[draw(sizeof(rarely))]] = draw(256);
}

static unsigned int attribute(void)
{
	return mad[16] << 8 | mad[17];
}

static void shorten(unsigned int at, unsigned int longest)
{
	if (body[at] >> 3 > longest)
		body[at] = longest << 3 | (body[at] & 7);
}

/* What a peer asks for it gets: not hours. */
static void tame(void)
{
	switch (attribute()) {
	case REQ:
		shorten(43, LONGEST);
		shorten(47, LONGEST);
		body[51] &= 0x3f;
		shorten(95, LONGEST);
		shorten(139, LONGEST);
		break;
	case MRA:
		shorten(9, LONGEST);
		break;
	case REP:
		shorten(26, LONGEST);
		break;
	case LAP:
		shorten(15, LONGEST);
		shorten(63, LONGEST);
		break;
	}
}

/* A queue pair of somebody else cannot be the sender's, or that somebody is stale. */
static int claims(const struct row *row, unsigned int qpn_at, unsigned int guid_at)
{
	return get(qpn_at, 3) == row->remote_qpn && get(guid_at, 8) == row->guid &&
	       get(0, 4) != row->remote_id;
}

/* Whether a connection would rightly end that is not there to be hit. */
static int harms(const struct row *row)
{
	int ours = get(4, 4) == row->local_id, theirs = get(0, 4) == row->remote_id;

	switch (attribute()) {
	case REQ:
		return claims(row, 32, 16);
	case REP:
		return claims(row, 12, 28) || (ours && row->kind == OTHER);
	case DREQ:
		return ours && theirs && get(8, 3) == row->local_qpn;
	case REJ:
		return (ours && (theirs || !(body[8] >> 6))) ||
		       (theirs && get(12, 8) == row->guid);
	default:
		return 0;
	}
}

/* A REQ whose service was changed by chance, or drawn. */
static int is_for_others(void)
{
	uint64_t service = get(8, 8);

	return service == (uint64_t)SERVICE_TCP + safe_port ||
	       service == (uint64_t)SERVICE_TCP + honest_port;
}

static int is_harmful(void)
{
	unsigned int at, number = attribute(), known = 0, near = 0;
	uint64_t qpn = number == REQ ? get(32, 3) : get(12, 3);

	if (number == REQ && is_for_others())
		return 1;
	for (at = 0; at < row_count; at++) {
		if (rows[at].kind != BAIT && harms(&rows[at]))
			return 1;
		/* IDs that are given out one after the other begin alike. */
		known |= get(4, 4) == rows[at].local_id;
		near |= get(4, 2) == rows[at].local_id >> 16;
	}
	/* One that has come since could have this ID, or this QPN. */
	if ((number == REP || number == REJ) && near && !known)
		return 1;
	if ((number != REQ && number != REP) || qpn >= INVENTED_QPN)
		return 0;
	for (at = 0; at < row_count; at++)
		if (rows[at].kind == SAFE && rows[at].remote_qpn == qpn)
			return 0;
	return 1;
}

static void to_bait(const struct row *row)
{
	say(REQ + draw(END - REQ), row);
	/* Where a LAP is welcome the kernel writes a line about it. */
	if (attribute() == LAP && draw(8))
		say(DREQ, row);
	if (draw(5) > 1)
		change();
}

static void to_safe(const struct row *row)
{
	static const unsigned char repeated[] = { REQ, MRA, REP, RTU, DREP, APR };
	static const unsigned char wrong[] = { MRA, REJ, REP, RTU, DREQ, DREP, LAP, APR };

	if (draw(2)) {
		say(repeated[draw(sizeof(repeated))], row);
		return;
	}
	say(wrong[draw(sizeof(wrong))], row);
	if (attribute() == REJ)
		body[8] = (1 + draw(3)) << 6;
	if (attribute() == DREQ && draw(2))
		put(8, draw(1 << 24), 3);
	else
		put(0, draw(UINT32_MAX), 4);
}

static void forge(void)
{
	const struct row *bait = choose(BAIT), *safe = choose(SAFE);
	unsigned int what = draw(100);

	/* Again what was said last, or something that nobody is hurt by. */
	if (what < 8 && mad[0])
		return;
	do {
		what = draw(100);
		if (what < 45 && bait) {
			to_bait(bait);
		} else if (what < 65 && safe) {
			to_safe(safe);
		} else if (what < 80) {
			fresh_req();
			if (!draw(3))
				change();
		} else if (what < 87) {
			sidr_req();
			if (!draw(3))
				change();
		} else if (what < 95) {
			begin(REQ + draw(END - REQ));
			noise(0);
		} else {
			begin(REQ + draw(END - REQ));
			noise(draw(BODY_SIZE));
			change_header();
		}
		tame();
	} while (is_harmful());
}

/* --- sending --------------------------------------------------------------------------------- */

static int open_umad(void)
{
	struct ib_user_mad_reg_req agent = { .qpn = 1 };
	int fd = open(UMAD, O_RDWR);

	if (fd < 0 || ioctl(fd, IB_USER_MAD_ENABLE_PKEY))
		die(UMAD);
	/* No class: it sends what it likes, and the kernel's own agent receives. */
	if (ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &agent))
		die("the agent");
	return fd;
}

static uint64_t read_guid(void)
{
	unsigned int part[4];
	FILE *file = fopen(GUID, "r");

	if (!file || fscanf(file, "%x:%x:%x:%x", &part[0], &part[1], &part[2], &part[3]) != 4)
		die(GUID);
	fclose(file);
	return (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 | part[2] << 16 | part[3];
}

static int is_for_cm(void)
{
	return mad[0] == 1 && mad[1] == 7 && mad[2] == 2 && mad[3] == 3 && attribute() >= REQ &&
	       attribute() < END;
}

/* The kernel sends no MAD twice at a time: a repetition waits until the first one is out. */
static void submit(int fd, const void *umad, size_t size)
{
	unsigned int patience = PATIENCE_MS;

	while (write(fd, umad, size) != (ssize_t)size) {
		if (errno != EINVAL || !patience--)
			die("write " UMAD);
		usleep(1000);
	}
}

static int send_many(unsigned long count, int gid_index)
{
	union {
		struct ib_user_mad umad;
		uint8_t bytes[sizeof(struct ib_user_mad) + MAD_SIZE];
	} out = {
		.umad.hdr = {
			.qpn = htonl(1), .qkey = htonl(GSI_QKEY), .grh_present = 1, .hop_limit = 64,
			.length = MAD_SIZE,
		},
	};
	unsigned long sent[END - REQ] = {}, astray = 0, number;
	int fd = open_umad(), at;

	out.umad.hdr.gid_index = gid_index;
	out.umad.hdr.gid[10] = out.umad.hdr.gid[11] = 0xff;
	memcpy(out.umad.hdr.gid + 12, &peer, sizeof(peer));
	for (number = 0; number < count; number++) {
		if (number % (BURST * BURSTS_PER_LOOK) == 0)
			ask("rows\n", 1);
		else if (number % BURST == 0)
			ask("wait\n", 0);
		forge();
		memcpy(out.umad.data, mad, sizeof(mad));
		submit(fd, &out, sizeof(out));
		if (is_for_cm())
			sent[attribute() - REQ]++;
		if (attribute() == REQ && !names_own_path())
			astray++;
	}
	ask("wait\n", 0);
	for (at = 0; at < END - REQ; at++)
		printf("sent %s %lu\n", names[at], sent[at]);
	printf("astray %lu\n", astray);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 10) {
		fprintf(stderr, "usage: forge_mads SELF PEER GID GUIDE SAFE BAIT HONEST COUNT SEED\n");
		return 2;
	}
	if (inet_pton(AF_INET, argv[1], &self) != 1 || inet_pton(AF_INET, argv[2], &peer) != 1)
		die("an address");
	safe_port = atoi(argv[5]);
	bait_port = atoi(argv[6]);
	honest_port = atoi(argv[7]);
	own_guid = read_guid();
	chance = strtoull(argv[9], NULL, 0) * 2 + 1;
	find_guide(atoi(argv[4]));
	return send_many(strtoul(argv[8], NULL, 0), atoi(argv[3]));
}
