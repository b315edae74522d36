// SPDX-License-Identifier: GPL-2.0
/*
 * Test vectors from the kernel's own definition of the messages.
 *
 * src/lib.rs makes four files before it compiles this one: kernel.inc and functions.inc hold types
 * and functions from the kernel's source; fields.inc has a line NUMBER(name, struct) or
 * BYTES(name, struct, size) for every field that the kernel defines, without the CM_ of its name;
 * constants.inc lists constants.
 *
 *   vectors fields COUNT   COUNT random settings of every field, in binary
 *   vectors facts          what the kernel's functions say, a line of text each
 *
 * A field begins with its name and a zero byte, then the number of bytes of a value (16 bits) and
 * the number of vectors (32 bits). A vector is a random MAD, the value, the value that is read
 * back, and the MAD after the value was set. Numbers are big endian; values that are numbers have
 * 8 bytes.
 */
#include <stdio.h>

#include <linux/kernel.h>

#include "kernel.inc"
#include <rdma/ibta_vol1_c12.h>
#include "functions.inc"

#define MAD_SIZE 256

union mad {
	u64 words[MAD_SIZE / sizeof(u64)];
	u8 bytes[MAD_SIZE];
};

static u64 random_state = 0x9e3779b97f4a7c15;

static u64 random_word(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d;
}

static void random_mad(union mad *mad)
{
	for (size_t i = 0; i < ARRAY_SIZE(mad->words); i++)
		mad->words[i] = random_word();
}

static void put(const void *data, size_t size)
{
	if (fwrite(data, 1, size, stdout) != size)
		exit(1);
}

static void put_header(const char *name, u16 value_size, u32 count)
{
	u16 size = cpu_to_be16(value_size);

	count = cpu_to_be32(count);
	put(name, strlen(name) + 1);
	put(&size, sizeof(size));
	put(&count, sizeof(count));
}

static void put_vector(const union mad *before, const void *value, const void *read,
		       size_t value_size, const union mad *after)
{
	put(before, sizeof(*before));
	put(value, value_size);
	put(read, value_size);
	put(after, sizeof(*after));
}

/* Small, random and extreme values, most of them wider than the field. */
static u64 random_number(u32 n)
{
	switch (n % 4) {
	case 0:
		return random_word() >> (random_word() % 64);
	case 1:
		return ~0ULL >> (random_word() % 64);
	default:
		return random_word();
	}
}

#define NUMBER(field, type)                                                                 \
	static void field##_vectors(u32 count)                                              \
	{                                                                                   \
		put_header("CM_" #field, sizeof(u64), count);                               \
		for (u32 n = 0; n < count; n++) {                                           \
			union mad before, after;                                            \
			u64 value = random_number(n);                                       \
                                                                                            \
			random_mad(&before);                                                \
			after = before;                                                     \
			IBA_SET(CM_##field, (type *)&after, value);                         \
                                                                                            \
			u64 sent = cpu_to_be64(value);                                      \
			u64 read = cpu_to_be64((u64)IBA_GET(CM_##field, (type *)&after));   \
			put_vector(&before, &sent, &read, sizeof(u64), &after);             \
		}                                                                           \
	}

#define BYTES(field, type, size)                                                            \
	static void field##_vectors(u32 count)                                              \
	{                                                                                   \
		put_header("CM_" #field, size, count);                                      \
		for (u32 n = 0; n < count; n++) {                                           \
			union mad before, after, value, read;                               \
                                                                                            \
			random_mad(&before);                                                \
			random_mad(&value);                                                 \
			after = before;                                                     \
			IBA_SET_MEM(CM_##field, (type *)&after, (void *)&value, size);      \
			IBA_GET_MEM(CM_##field, (type *)&after, (void *)&read, size);       \
			put_vector(&before, &value, &read, size, &after);                   \
		}                                                                           \
	}

#include "fields.inc"
#undef NUMBER
#undef BYTES

static void put_fields(u32 count)
{
#define NUMBER(field, type) field##_vectors(count);
#define BYTES(field, type, size) field##_vectors(count);
#include "fields.inc"
}

static void put_transports(void)
{
	struct cm_req_msg req;

	for (int type = 0; type < 4; type++) {
		for (int extended = 0; extended < 8; extended++) {
			memset(&req, 0, sizeof(req));
			IBA_SET(CM_REQ_TRANSPORT_SERVICE_TYPE, &req, type);
			IBA_SET(CM_REQ_EXTENDED_TRANSPORT_TYPE, &req, extended);
			printf("transport %d %d %d\n", type, extended, cm_req_get_qp_type(&req));
		}
	}

	const int types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_XRC_INI };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		memset(&req, 0, sizeof(req));
		cm_req_set_qp_type(&req, types[i]);
		printf("set_transport %d %d %d\n", types[i],
		       IBA_GET(CM_REQ_TRANSPORT_SERVICE_TYPE, &req),
		       IBA_GET(CM_REQ_EXTENDED_TRANSPORT_TYPE, &req));
	}
	printf("qp_types %d %d %d %d\n", IB_QPT_RC, IB_QPT_UC, IB_QPT_XRC_INI, IB_QPT_XRC_TGT);
}

static void put_hex(const union mad *mad)
{
	for (size_t i = 0; i < sizeof(mad->bytes); i++)
		printf("%02x", mad->bytes[i]);
	printf("\n");
}

/* REQs and REPs that make the functions which look at them take each way. */
static void put_messages(void)
{
	union mad mad;

	for (int n = 0; n < 1000; n++) {
		random_mad(&mad);
		if (n % 2)
			IBA_SET(CM_REQ_ALTERNATE_LOCAL_PORT_LID, (struct cm_req_msg *)&mad, 0);
		union ib_gid *gid = IBA_GET_MEM_PTR(CM_REQ_ALTERNATE_LOCAL_PORT_GID,
						    (struct cm_req_msg *)&mad);
		if (n % 4 > 1)
			gid->global.interface_id = OPA_MAKE_ID((u32)random_word());
		printf("req %d %d %u ", cm_req_has_alt_path((struct cm_req_msg *)&mad),
		       ib_is_opa_gid(gid), opa_get_lid_from_gid(gid));
		put_hex(&mad);

		printf("rep %u %u ",
		       be32_to_cpu(cm_rep_get_qpn((struct cm_rep_msg *)&mad, IB_QPT_RC)),
		       be32_to_cpu(cm_rep_get_qpn((struct cm_rep_msg *)&mad, IB_QPT_XRC_INI)));
		put_hex(&mad);
	}
}

static void put_header_fact(void)
{
	union mad mad;

	for (int n = 0; n < 1000; n++) {
		struct ib_mad_hdr *header = (void *)&mad;

		random_mad(&mad);
		printf("header %u %u %u %u %u %u %llu %u %u ", header->base_version,
		       header->mgmt_class, header->class_version, header->method,
		       be16_to_cpu(header->status), be16_to_cpu(header->class_specific),
		       (unsigned long long)be64_to_cpu(header->tid),
		       be16_to_cpu(header->attr_id), be32_to_cpu(header->attr_mod));
		put_hex(&mad);
	}

	memset(&mad, 0, sizeof(mad));
	cm_format_mad_ece_hdr((void *)&mad, CM_REP_ATTR_ID, cpu_to_be64(0x123456789abcdef0),
			      0x87654321);
	printf("rep_header ");
	put_hex(&mad);
}

static void put_facts(void)
{
	for (int t = 0; t < 32; t++)
		printf("ms %d %d\n", t, cm_convert_to_ms(t));
	for (int delay = 0; delay < 256; delay++)
		for (int life = 0; life < 256; life++)
			printf("ack_timeout %d %d %d\n", delay, life, cm_ack_timeout(delay, life));
	for (int reason = 0; reason < 65536; reason++)
		printf("reason %d %s\n", reason, ibcm_reject_msg(reason));
	put_transports();
	put_messages();
	put_header_fact();

#define CONSTANT(name) printf("constant %s %llu\n", #name, (unsigned long long)(name));
#define BE16_CONSTANT(name) printf("constant %s %u\n", #name, be16_to_cpu(name));
#include "constants.inc"
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "fields"))
		put_fields(strtoul(argv[2], NULL, 10));
	else if (argc == 2 && !strcmp(argv[1], "facts"))
		put_facts();
	else
		return 1;
	return fflush(stdout) != 0;
}
