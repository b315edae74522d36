/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel's definitions of messages take from linux/unaligned.h, for user space. */
#ifndef SHIM_UNALIGNED_H
#define SHIM_UNALIGNED_H

#include <string.h>

#define get_unaligned(pointer)                                        \
	({                                                            \
		typeof(*(pointer) + 0) _value;                        \
		memcpy(&_value, (pointer), sizeof(_value));           \
		_value;                                               \
	})

#define put_unaligned(value, pointer)                                 \
	({                                                            \
		typeof(*(pointer)) _value = (value);                  \
		memcpy((pointer), &_value, sizeof(_value));           \
	})

#endif
