/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel's definitions of messages take from linux/bitfield.h, for user space. */
#ifndef SHIM_BITFIELD_H
#define SHIM_BITFIELD_H

#define FIELD_SHIFT(mask) __builtin_ctzll(mask)
#define FIELD_PREP(mask, value) (((typeof(mask))(value) << FIELD_SHIFT(mask)) & (mask))
#define FIELD_GET(mask, word) (((word) & (mask)) >> FIELD_SHIFT(mask))

#endif
