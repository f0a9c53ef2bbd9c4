// SPDX-License-Identifier: GPL-2.0
/* The one actuator: everything that touches the platters goes through here, one after the other. */
#include "drive.h"

struct movement arm_movement(const struct drive *drive, u64 first, bool write, u64 start)
{
	const struct settings *set = &drive->set;
	u64 from = read_cache_head(drive, start);
	u64 here = geometry_track(set, from), there = geometry_track(set, first);
	u64 at = here / set->heads, to = there / set->heads;
	struct movement move = { .cylinders = at < to ? to - at : at - to };

	/* The head that has just come there goes on along the spiral: the gap passes, there is nothing to settle from. */
	if (!drive->stream && start == drive->arm_free && first >= from) {
		move.rotation_ns = geometry_turn(set, first) - geometry_turn(set, from);
		if (move.rotation_ns < set->revolution_ns)
			return move;
	}
	if (move.cylinders)
		move.seek_ns = geometry_seek_ns(set, move.cylinders);
	else if (here != there)
		move.seek_ns = set->head_switch_ns;
	if (write && here != there)
		move.seek_ns += set->write_settle_ns;
	move.rotation_ns = geometry_rotation_ns(set, first, start + move.seek_ns);
	return move;
}

u64 arm_pass(struct drive *drive, u64 first, u64 end, bool write, u64 start)
{
	struct movement move = arm_movement(drive, first, write, start);
	u64 transfer = geometry_turn(&drive->set, end) - geometry_turn(&drive->set, first);

	read_cache_stop(drive, start);
	drive->stat.seeks += move.cylinders != 0;
	drive->stat.seek_cylinders += move.cylinders;
	drive->stat.busy_seek_ns += move.seek_ns;
	drive->stat.busy_rotation_ns += move.rotation_ns;
	drive->stat.busy_transfer_ns += transfer;
	drive->head = end;
	drive->arm_free = start + move.seek_ns + move.rotation_ns + transfer;
	return drive->arm_free;
}
