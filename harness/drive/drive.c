// SPDX-License-Identifier: GPL-2.0
/* The commands of a drive. */
#include "drive.h"

const char *drive_init(struct drive *drive)
{
	struct settings *set = &drive->set;

	if (!set->sectors || !set->depth || !set->interface || set->max_request < 4096)
		return "sectors, depth, interface and max_request (4096 at least) must be given";
	if (set->kind == FLASH) {
		set->write_back = 0;	/* a cache of its own is in its latencies, and loses nothing */
		return flash_init(set);
	}
	if (!set->segments || set->segments > SEGMENTS_MOST)
		return "segments must be 1 to 32";
	if (set->cache_bytes / set->segments < set->read_ahead_bytes)
		return "a segment of the cache must hold the read-ahead";
	if (set->write_back && write_cache_size(drive) < 2 * set->max_request / SECTOR_BYTES)
		return "the write cache must hold two of the largest requests";
	return geometry_init(set);
}

static u64 begin(struct drive *drive, u64 now)
{
	write_cache_advance(drive, now);
	drive->stat.busy_overhead_ns += drive->set.overhead_ns;
	return now + drive->set.overhead_ns;
}

static void count(struct drive *drive, u64 first, u64 sectors)
{
	drive->stat.requests++;
	drive->stat.sequential += first == drive->next_sector;
	drive->stat.blocks += (sectors + 7) / 8;
	drive->next_sector = first + sectors;
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

u64 drive_read(struct drive *drive, u64 first, u64 sectors, u64 now)
{
	u64 end = first + sectors, start = begin(drive, now), ready, done;

	count(drive, first, sectors);
	drive->stat.reads++;
	drive->stat.sectors_read += sectors;
	if (drive->set.kind == FLASH)
		return complete(drive, flash_serve(drive, sectors, drive->set.read_ns, drive->set.read_rate, start));
	if (write_cache_has(drive, first, end) || read_cache_has(drive, first, end, start)) {
		drive->stat.cache_hits++;
		return complete(drive, moved(drive, sectors, start));
	}
	ready = start + interface_ns(&drive->set, sectors);
	done = read_cache_stream(drive, first, end, start, ready);
	if (done)
		return complete(drive, done);
	start = write_cache_yield(drive, start);
	done = arm_pass(drive, first, end, false, start);
	read_cache_start(drive, first, end, done);
	write_cache_resume(drive, done);
	return complete(drive, greater(done, ready));
}

u64 drive_write(struct drive *drive, u64 first, u64 sectors, bool through, u64 now)
{
	u64 end = first + sectors, start = begin(drive, now), done;
	u64 from = first / UNIT * UNIT, to = lesser((end + UNIT - 1) / UNIT * UNIT, drive->set.sectors);

	count(drive, first, sectors);
	drive->stat.writes++;
	drive->stat.sectors_written += sectors;
	if (drive->set.kind == FLASH)
		return complete(drive, flash_serve(drive, sectors, drive->set.write_ns, drive->set.write_rate, start));
	read_cache_forget(drive, first, end, start);
	if (through || !drive->set.write_back) {
		done = start + interface_ns(&drive->set, sectors);
		start = write_cache_yield(drive, start);
		done = greater(done, arm_pass(drive, first, end, true, start));
		write_cache_resume(drive, done);
		return complete(drive, done);
	}
	done = moved(drive, sectors, write_cache_room(drive, to - from, start));
	write_cache_add(drive, from, to, done);
	return complete(drive, done);
}

u64 drive_flush(struct drive *drive, u64 now)
{
	u64 start = begin(drive, now);

	drive->stat.flushes++;
	return complete(drive, write_cache_flush(drive, start));
}

u64 drive_reach(const struct drive *drive, u64 first, u64 now)
{
	struct movement move;
	u64 reach;

	if (drive->set.kind == FLASH || write_cache_has(drive, first, first + 1))
		return 0;
	reach = read_cache_reach(drive, first, now);
	if (reach != OUT_OF_REACH)
		return reach;
	move = arm_movement(drive, first, false, greater(now, drive->arm_free));
	return move.seek_ns + move.rotation_ns;
}
