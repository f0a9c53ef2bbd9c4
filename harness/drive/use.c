// SPDX-License-Identifier: GPL-2.0
/*
 * How a solid-state drive is used before anybody measures it, as SNIA's test specification prepares one: all of it
 * written twice in order, then units at random until its write amplification is what it stays. Compiled for the host
 * alone (agelab/machine/drive/used.py).
 */
#include "drive.h"

#define CYCLES 6	/* how often all lines were erased by then: tests/model/test_ftl.py */

static void write_unit(struct drive *drive, u64 unit)
{
	ftl_write(drive, drive->set.base + unit * UNIT, UNIT, false, 0);
}

void drive_use(struct drive *drive, u64 seed, bool trimmed)
{
	const struct settings *set = &drive->set;
	u64 random = seed | 1, erased = CYCLES * set->lines * set->dies * set->planes, written;

	for (written = 1; written <= 2 * set->units; written++)
		write_unit(drive, written % set->units);
	while (drive->stat.blocks_erased < erased) {
		random ^= random << 13;	/* Marsaglia's xorshift */
		random ^= random >> 7;
		random ^= random << 17;
		write_unit(drive, (random >> 32) * set->units >> 32);
	}
	ftl_flush(drive, 0);
	if (trimmed)
		ftl_discard(drive, set->base, set->units * UNIT, 0);
}
