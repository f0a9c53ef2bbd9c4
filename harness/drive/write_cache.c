// SPDX-License-Identifier: GPL-2.0
/* The drive's cache for writes: extents that wait for the arm, and when the drive writes them back. */
#include "drive.h"

u64 write_cache_size(const struct drive *drive)
{
	const struct settings *set = &drive->set;
	u64 segment = set->kind == DISK ? set->cache_bytes / set->segments : 0;
	u64 bytes = set->segments > 1 ? set->cache_bytes - segment : segment;

	if (set->kind == SSD)
		return set->write_back ? set->buffer_units * UNIT : 0;
	if (set->write_segments)
		bytes = segment * set->write_segments;

	return set->write_back ? lesser(bytes, WRITE_CACHE_MOST) / SECTOR_BYTES / UNIT * UNIT : 0;
}

static bool is_writing(const struct drive *drive)
{
	return drive->writing.end > drive->writing.first;
}

/* Half full: writing back can no longer wait for the drive to be idle. */
static bool filling(const struct drive *drive)
{
	return drive->dirty_sectors > write_cache_size(drive) / 2 || drive->dirty_count > EXTENTS_MOST / 2;
}

/* A quarter full: what was begun because the cache was filling is enough. */
static bool eased(const struct drive *drive)
{
	return drive->dirty_sectors <= write_cache_size(drive) / 4 && drive->dirty_count <= EXTENTS_MOST / 4;
}

bool write_cache_takes(const struct drive *drive, u64 first, u64 sectors, bool through)
{
	u64 units = (first + sectors + UNIT - 1) / UNIT - first / UNIT;

	/* What a die programs at once may have begun with another write, and then leaves the cache before this one ends. */
	units += drive->set.program_units;
	return drive->set.write_back && !through && units * UNIT <= write_cache_size(drive);
}

bool write_cache_has(const struct drive *drive, u64 first, u64 end)
{
	u32 i;

	if (drive->writing.first <= first && end <= drive->writing.end)
		return true;
	for (i = 0; i < drive->dirty_count; i++)
		if (drive->dirty[i].first <= first && end <= drive->dirty[i].end)
			return true;
	return false;
}

static void remove_extents(struct drive *drive, u32 at, u32 count)
{
	drive->dirty_count -= count;
	for (; count && at < drive->dirty_count; at++)
		drive->dirty[at] = drive->dirty[at + count];
}

static void drain(struct drive *drive, u64 since)
{
	if (!drive->draining)
		drive->draining_since = since;
	drive->draining = true;
	drive->batch = BATCH;
}

/* Joined with what it overlaps or touches. */
void write_cache_add(struct drive *drive, u64 first, u64 end, u64 ready)
{
	struct extent *dirty = drive->dirty, new = { first, end, ready };
	u32 at = 0, last, i;

	while (at < drive->dirty_count && dirty[at].end < first)
		at++;
	for (last = at; last < drive->dirty_count && dirty[last].first <= end; last++) {
		drive->dirty_sectors -= dirty[last].end - dirty[last].first;
		new.first = lesser(new.first, dirty[last].first);
		new.end = greater(new.end, dirty[last].end);
		new.ready = lesser(new.ready, dirty[last].ready);
	}
	if (last > at) {
		remove_extents(drive, at, last - at - 1);
	} else {
		for (i = drive->dirty_count++; i > at; i--)
			dirty[i] = dirty[i - 1];
	}
	dirty[at] = new;
	drive->dirty_sectors += new.end - new.first;
	if (!drive->draining && filling(drive))
		drain(drive, ready);
}

/* The first extent from the head on, in the direction of travel; the number of extents when there is none. */
static u32 first_ahead(const struct drive *drive, u64 from)
{
	u32 low = 0, high = drive->dirty_count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (drive->dirty[middle].first >= from)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static u32 oldest_extent(const struct drive *drive)
{
	u32 oldest = 0, i;

	for (i = 1; i < drive->dirty_count; i++)
		if (drive->dirty[i].ready < drive->dirty[oldest].ready)
			oldest = i;
	return oldest;
}

/*
 * The extent that the arm reaches soonest at `when`, of those near the head on both sides: an arm that knows where the
 * platters are loses less rotation than one that goes by distance alone. What has come since the round began waits
 * for the next round, or a stream would starve the others (FSCAN: Coffman, Klimko and Ryan, SIAM Journal on
 * Computing 1, 1972). When the data of none has come, the one whose data comes first.
 */
static u32 next_extent(const struct drive *drive, u64 when)
{
	u32 ahead = first_ahead(drive, read_cache_head(drive, when)), oldest = oldest_extent(drive);
	u32 best = oldest, low, high, near, i;
	u64 least = ~0ULL, round = drive->dirty[oldest].ready > drive->round ? when : drive->round;

	for (low = ahead, near = 0; low > 0 && near < NEAR; low--)
		near += drive->dirty[low - 1].ready <= round;
	for (high = ahead, near = 0; high < drive->dirty_count && near < NEAR; high++)
		near += drive->dirty[high].ready <= round;
	for (i = low; i < high; i++) {
		struct movement move;

		if (drive->dirty[i].ready > round || drive->dirty[i].ready > when)
			continue;
		move = arm_movement(drive, drive->dirty[i].first, true, when, 0);
		if (move.seek_ns + move.rotation_ns < least) {
			least = move.seek_ns + move.rotation_ns;
			best = i;
		}
	}
	return best;
}

static void write_piece(struct drive *drive, u64 start)
{
	u32 at = next_extent(drive, start);
	struct extent *extent = drive->dirty + at;
	u64 end = lesser(extent->end, extent->first + PIECE);

	if (extent->ready > drive->round)
		drive->round = start;
	drive->in_a_row = (extent->first == drive->head ? drive->in_a_row : 0) + end - extent->first;
	drive->writing = (struct extent){ extent->first, end, extent->ready };
	extent->first = end;
	if (drive->in_a_row > write_cache_size(drive) / 2) {
		extent->ready = start + 1; /* a stream that goes on waits for the next round */
		drive->in_a_row = 0;
	}
	if (extent->first == extent->end)
		remove_extents(drive, at, 1);
	if (drive->batch)
		drive->batch--;
	arm_pass(drive, drive->writing.first, drive->writing.end, true, start, 0);
}

static void finish_piece(struct drive *drive)
{
	u64 first = drive->writing.first, end = drive->writing.end;

	drive->dirty_sectors -= end - first;
	drive->writing.end = first;
	if (!drive->dirty_count)
		drive->draining = false;
	drive->written(drive, first, end, drive->arm_free);
}

/* When the next piece begins by itself: one after the other once it drains, else after a revolution of rest. */
static u64 piece_begins(const struct drive *drive)
{
	u64 when = greater(drive->arm_free, drive->draining_since);

	if (!drive->draining)
		return greater(drive->arm_free, drive->idle_since + drive->set.revolution_ns);
	return greater(when, drive->dirty[next_extent(drive, when)].ready);
}

void write_cache_advance(struct drive *drive, u64 now)
{
	u64 start;

	for (;;) {
		if (is_writing(drive)) {
			if (drive->arm_free > now)
				return;
			finish_piece(drive);
		}
		if (!drive->dirty_count)
			return;
		start = piece_begins(drive);
		if (start > now)
			return;
		if (!drive->draining)
			drain(drive, start);
		write_piece(drive, start);
	}
}

u64 write_cache_next(const struct drive *drive)
{
	if (is_writing(drive))
		return drive->arm_free;
	return drive->dirty_count ? piece_begins(drive) : 0;
}

/* Finish the piece that the arm is at, or begin and finish another: one that drains goes on where it is. */
static u64 one_piece(struct drive *drive, u64 start)
{
	if (!is_writing(drive))
		write_piece(drive, drive->draining ? piece_begins(drive) : greater(start, drive->arm_free));
	start = greater(start, drive->arm_free);
	finish_piece(drive);
	return start;
}

u64 write_cache_room(struct drive *drive, u64 sectors, u64 start)
{
	while (drive->dirty_sectors + sectors > write_cache_size(drive) || drive->dirty_count >= EXTENTS_MOST - 1)
		start = one_piece(drive, start);
	return start;
}

u64 write_cache_flush(struct drive *drive, u64 start)
{
	while (drive->dirty_count || is_writing(drive))
		start = one_piece(drive, start);
	return start;
}

u64 write_cache_yield(struct drive *drive, u64 start)
{
	if (is_writing(drive))
		start = one_piece(drive, start);
	while (drive->draining && drive->batch && !eased(drive))
		start = one_piece(drive, start);
	drive->draining = false;
	return greater(start, drive->arm_free);
}

void write_cache_resume(struct drive *drive, u64 now)
{
	if (filling(drive))
		drain(drive, now);
}

void write_cache_settle(struct drive *drive)
{
	if (is_writing(drive))
		finish_piece(drive);
	while (drive->dirty_count) {
		drive->writing = drive->dirty[0];
		remove_extents(drive, 0, 1);
		finish_piece(drive);
	}
}
