// SPDX-License-Identifier: GPL-2.0
/* The commands of a drive. */
#include "drive.h"

const char *drive_init(struct drive *drive)
{
	struct settings *set = &drive->set;

	if (!set->hit_overhead_ns)
		set->hit_overhead_ns = set->overhead_ns;
	if (!set->write_overhead_ns)
		set->write_overhead_ns = set->overhead_ns;
	if (!set->sectors || !set->depth || !set->interface || set->max_request < 4096)
		return "sectors, depth, interface and max_request (4096 at least) must be given";
	if (set->kind == FLASH) {
		set->write_back = 0;	/* a cache of its own is in its latencies, and loses nothing */
		return flash_init(set);
	}
	if (set->kind == SSD)
		return ftl_init(set);
	if (!set->segments || set->segments > SEGMENTS_MOST)
		return "segments must be 1 to 32";
	if (set->cache_bytes / set->segments < set->read_ahead_bytes)
		return "a segment of the cache must hold the read-ahead";
	if (set->write_segments > set->segments)
		return "write_segments must be segments at most";
	if (set->write_back && !write_cache_size(drive))
		return "the write cache must hold something";
	if (set->bus_after_percent > 100 || set->write_after_percent > 100)
		return "bus_after_percent and write_after_percent must be 100 at most";
	return geometry_init(set);
}

static u64 begin(struct drive *drive, u64 now, u64 overhead_ns)
{
	drive->stat.busy_overhead_ns += overhead_ns;
	return now + overhead_ns;
}

static void count(struct drive *drive, u64 first, u64 sectors)
{
	drive->stat.requests++;
	drive->stat.sequential += first == drive->next_sector;
	drive->stat.blocks += (sectors + 7) / 8;
	drive->next_sector = first + sectors;
}

void drive_advance(struct drive *drive, u64 now)
{
	if (drive->set.kind == SSD)
		ftl_advance(drive, now);
	else
		write_cache_advance(drive, now);
}

static u64 complete(struct drive *drive, u64 when)
{
	drive->idle_since = when;
	return when;
}

/* Over the interface from the drive's cache or into it. */
static u64 moved(struct drive *drive, u64 sectors, u64 start)
{
	u64 ns = interface_ns(&drive->set, sectors);

	drive->stat.busy_transfer_ns += ns;
	return start + ns;
}

/* When the arm, in its last movement, had read all before a sector. */
static u64 read_before(const struct drive *drive, u64 first, u64 before)
{
	const struct settings *set = &drive->set;
	u64 begun = drive->head;	/* of a read that began in its midst */

	if (begun < before)
		return drive->arm_free;
	if (begun < drive->next_sector)
		return drive->arm_free - (geometry_turn(set, begun) - geometry_behind(set, before));
	return drive->data_begins + geometry_behind(set, before) - geometry_turn(set, first);
}

u64 drive_read(struct drive *drive, u64 first, u64 sectors, u64 now)
{
	const struct settings *set = &drive->set;
	u64 end = first + sectors, start, done, behind, came;
	bool hit;

	count(drive, first, sectors);
	drive_advance(drive, now);
	drive->stat.reads++;
	drive->stat.sectors_read += sectors;
	if (set->kind == SSD)
		return complete(drive, ftl_read(drive, first, sectors, begin(drive, now, set->overhead_ns)));
	if (set->kind == FLASH) {
		start = begin(drive, now, set->overhead_ns);
		return complete(drive, flash_serve(drive, sectors, set->read_ns, set->read_rate, start));
	}
	hit = write_cache_has(drive, first, end) || read_cache_has(drive, first, end, now);
	if (hit) {
		drive->stat.cache_hits++;
		return complete(drive, moved(drive, sectors, begin(drive, now, set->hit_overhead_ns)));
	}
	start = begin(drive, now, read_cache_comes(drive, first, now) ? set->hit_overhead_ns : set->overhead_ns);
	done = read_cache_stream(drive, first, end, start);
	if (done)
		return complete(drive, done);
	start = write_cache_yield(drive, start);
	behind = arm_pass(drive, first, end, false, start, 0);
	came = read_before(drive, first, read_wanted(drive, first, end));
	done = read_moved(drive, sectors, start, came, behind);
	read_cache_start(drive, first, end, behind);
	write_cache_resume(drive, behind);
	return complete(drive, done);
}

/*
 * On to the platters. The bus brings the data while the arm moves: the head begins when so much has come as the drive
 * wants, and not so early that it would overtake the bus.
 */
static u64 write_through(struct drive *drive, u64 first, u64 end, u64 start, u64 bus_begins)
{
	const struct settings *set = &drive->set;
	u64 bus = interface_ns(set, end - first), pass = geometry_behind(set, end) - geometry_turn(set, first), done;
	u64 ready = bus_begins + greater(bus * set->write_after_percent / 100, bus - lesser(bus, pass));

	start = write_cache_yield(drive, start);
	done = arm_pass(drive, first, end, true, start, ready);
	write_cache_resume(drive, done);
	return done;
}

u64 drive_write(struct drive *drive, u64 first, u64 sectors, bool through, u64 now)
{
	const struct settings *set = &drive->set;
	u64 end = first + sectors, start, done;
	u64 from = first / UNIT * UNIT, to = lesser((end + UNIT - 1) / UNIT * UNIT, set->sectors);

	count(drive, first, sectors);
	drive_advance(drive, now);
	drive->stat.writes++;
	drive->stat.sectors_written += sectors;
	start = begin(drive, now, set->write_overhead_ns);
	if (set->kind == SSD) {
		through = set->write_back && !write_cache_takes(drive, first, sectors, through);
		return complete(drive, ftl_write(drive, first, sectors, through, start));
	}
	if (set->kind == FLASH)
		return complete(drive, flash_serve(drive, sectors, set->write_ns, set->write_rate, start));
	read_cache_forget(drive, first, end, start);
	if (!write_cache_takes(drive, first, sectors, through)) {
		if (set->write_back && !through)	/* what the cache has of these sectors must not come after them */
			start = write_cache_flush(drive, start);
		now += lesser(set->hit_overhead_ns, set->write_overhead_ns);	/* no more than to take in a command */
		return complete(drive, write_through(drive, first, end, start, now));
	}
	done = moved(drive, sectors, write_cache_room(drive, to - from, start));
	write_cache_add(drive, from, to, done);
	return complete(drive, done);
}

u64 drive_flush(struct drive *drive, u64 now)
{
	u64 start;

	drive_advance(drive, now);
	start = begin(drive, now, drive->set.overhead_ns);
	drive->stat.flushes++;
	return complete(drive, drive->set.kind == SSD ? ftl_flush(drive, start) : write_cache_flush(drive, start));
}

u64 drive_discard(struct drive *drive, u64 first, u64 sectors, u64 now)
{
	u64 start;

	drive_advance(drive, now);
	start = begin(drive, now, drive->set.overhead_ns);
	return complete(drive, drive->set.kind == SSD ? ftl_discard(drive, first, sectors, start) : start);
}

void drive_settle(struct drive *drive)
{
	if (drive->set.kind == SSD)
		ftl_flush(drive, drive->ftl.busy_until);
	else
		write_cache_settle(drive);
}

u64 drive_reach(const struct drive *drive, u64 first, u64 now)
{
	struct movement move;
	u64 reach;

	if (drive->set.kind != DISK || write_cache_has(drive, first, first + 1))
		return 0;
	reach = read_cache_reach(drive, first, now);
	if (reach != OUT_OF_REACH)
		return reach;
	move = arm_movement(drive, first, false, greater(now, drive->arm_free), 0);
	return move.seek_ns + move.rotation_ns;
}
