/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel's definitions of messages take from linux/kernel.h, for user space. */
#ifndef SHIM_KERNEL_H
#define SHIM_KERNEL_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint64_t __be64;

#define cpu_to_be16(x) htobe16(x)
#define cpu_to_be32(x) htobe32(x)
#define cpu_to_be64(x) htobe64(x)
#define be16_to_cpu(x) be16toh(x)
#define be32_to_cpu(x) be32toh(x)
#define be64_to_cpu(x) be64toh(x)

#define GENMASK_ULL(high, low) ((~0ULL >> (63 - (high))) & (~0ULL << (low)))
#define GENMASK(high, low) ((unsigned long)GENMASK_ULL(high, low))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define BUILD_BUG_ON_ZERO(condition) ((int)sizeof(char[1 - 2 * !!(condition)]) - 1)
#define EXPORT_SYMBOL(symbol) _Static_assert(1, #symbol)
#define WARN_ON(condition) ((condition) ? abort() : (void)0)
#define __attribute_const__

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

#endif
