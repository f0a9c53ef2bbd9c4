// SPDX-License-Identifier: GPL-2.0
/* The one actuator: everything that touches the platters goes through here, one after the other. */
#include "drive.h"

struct movement arm_movement(const struct drive *drive, u64 first, bool write, u64 start, u64 ready)
{
	const struct settings *set = &drive->set;
	u64 from = read_cache_head(drive, start), settled;
	u64 here = geometry_track(set, from), there = geometry_track(set, first);
	u64 at = here / set->heads, to = there / set->heads;
	struct movement move = { .cylinders = at < to ? to - at : at - to };

	/* The head that has just come there goes on along the spiral: the gap passes, there is nothing to settle from. */
	if (!drive->stream && start == drive->arm_free && start >= ready && first >= from) {
		move.rotation_ns = geometry_turn(set, first) - geometry_behind(set, from);
		if (move.rotation_ns < set->revolution_ns)
			return move;
	}
	if (move.cylinders)
		move.seek_ns = geometry_seek_ns(set, move.cylinders);
	else if (here != there)
		move.seek_ns = set->head_switch_ns;
	if (write && here != there)
		move.seek_ns += set->write_settle_ns;
	settled = start + move.seek_ns;
	ready = greater(ready, settled);
	move.rotation_ns = ready - settled + geometry_rotation_ns(set, first, ready);
	return move;
}

/*
 * A head that comes into the midst of what is to be read begins there, and has all of it a revolution later. Returns
 * the sector with which it begins.
 */
static u64 enter(const struct settings *set, u64 first, u64 end, struct movement *move, u64 *transfer)
{
	u64 turn = geometry_turn(set, first) + set->revolution_ns - move->rotation_ns, sector;

	if (!move->rotation_ns || turn >= geometry_turn(set, end - 1))
		return first;
	sector = geometry_sector(set, turn);
	sector += geometry_turn(set, sector) < turn;
	move->rotation_ns = geometry_turn(set, sector) - turn;
	*transfer = set->revolution_ns;
	return sector;
}

u64 arm_pass(struct drive *drive, u64 first, u64 end, bool write, u64 start, u64 ready)
{
	const struct settings *set = &drive->set;
	struct movement move = arm_movement(drive, first, write, start, ready);
	u64 transfer = geometry_behind(set, end) - geometry_turn(set, first), begun = first;

	if (set->any_order && !write && geometry_track(set, first) == geometry_track(set, end - 1))
		begun = enter(set, first, end, &move, &transfer);
	read_cache_stop(drive, start);
	drive->stat.seeks += move.cylinders != 0;
	drive->stat.seek_cylinders += move.cylinders;
	drive->stat.busy_seek_ns += move.seek_ns;
	drive->stat.busy_rotation_ns += move.rotation_ns;
	drive->stat.busy_transfer_ns += transfer;
	drive->head = begun == first ? end : begun;
	drive->data_begins = start + move.seek_ns + move.rotation_ns;
	drive->arm_free = drive->data_begins + transfer;
	return drive->arm_free;
}
