// SPDX-License-Identifier: GPL-2.0
/* The drive's cache for reads: segments, one of which the head may be reading into. */
#include "drive.h"

static u64 segment_size(const struct drive *drive)
{
	return drive->set.cache_bytes / drive->set.segments / SECTOR_BYTES;
}

u64 read_cache_head(const struct drive *drive, u64 now)
{
	u64 gone = now > drive->stream_time ? now - drive->stream_time : 0;

	if (!drive->stream)
		return drive->head;
	return lesser(geometry_sector(&drive->set, drive->stream_turn + gone), drive->stream_limit);
}

void read_cache_stop(struct drive *drive, u64 now)
{
	if (!drive->stream)
		return;
	drive->head = drive->stream->end = read_cache_head(drive, now);
	drive->stream = 0;
}

static void read_on(struct drive *drive, u64 sector, u64 now)
{
	drive->stream_turn = geometry_turn(&drive->set, sector);
	drive->stream_time = now;
}

/* The sector before which the tracks end a read-ahead behind `end`. */
static u64 last_track_end(const struct drive *drive, u64 end)
{
	const struct settings *set = &drive->set;
	u64 track_end;

	if (set->read_ahead_tracks < 2)
		return geometry_track_end(set, end - 1);
	track_end = geometry_track_end(set, end);
	if (geometry_track(set, drive->stream->first) < geometry_track(set, end))
		track_end = geometry_track_end(set, track_end);
	return track_end;
}

/* The host has had everything before `end`: the segment may hold so much more, and lets go of its oldest. */
static void move_limit(struct drive *drive, u64 end)
{
	u64 ahead = lesser(end + drive->set.read_ahead_bytes / SECTOR_BYTES, drive->set.sectors);

	if (drive->set.read_ahead_tracks)
		ahead = lesser(ahead, last_track_end(drive, end));
	drive->stream_limit = greater(drive->stream_limit, ahead);
	if (drive->stream_limit > drive->stream->first + segment_size(drive))
		drive->stream->first = drive->stream_limit - segment_size(drive);
}

void read_cache_start(struct drive *drive, u64 first, u64 end, u64 behind)
{
	const struct settings *set = &drive->set;
	struct segment *segment = drive->segments;
	u64 i, comes = behind + geometry_turn(set, end) - geometry_behind(set, drive->head);

	for (i = 1; i < drive->set.segments; i++)
		if (drive->segments[i].used < segment->used)
			segment = drive->segments + i;
	/* Of a read that is larger, the segment holds the end. */
	*segment = (struct segment){ greater(first, end - lesser(end, segment_size(drive))), end, behind };
	/* A read that began in its midst: its end comes round once more. */
	if (drive->head < end)
		comes = behind + geometry_turn(set, end) - geometry_turn(set, drive->head);
	drive->stream = segment;
	drive->stream_limit = 0;
	read_on(drive, end, comes);
	move_limit(drive, end);
}

bool read_cache_has(struct drive *drive, u64 first, u64 end, u64 now)
{
	u64 i;

	for (i = 0; i < drive->set.segments; i++) {
		struct segment *segment = drive->segments + i;

		if (segment != drive->stream && segment->first <= first && end <= segment->end) {
			segment->used = now;
			return true;
		}
	}
	return false;
}

void read_cache_forget(struct drive *drive, u64 first, u64 end, u64 now)
{
	u64 i;

	if (drive->stream && first < drive->stream_limit && drive->stream->first < end)
		read_cache_stop(drive, now);
	for (i = 0; i < drive->set.segments; i++)
		if (first < drive->segments[i].end && drive->segments[i].first < end)
			drive->segments[i].end = drive->segments[i].first;
}

/* The head, reading on and now `there`, has read that sector or comes to it within a revolution. */
static bool comes_to(const struct drive *drive, u64 sector, u64 there)
{
	const struct settings *set = &drive->set;

	if (!drive->stream || sector < drive->stream->first)
		return false;
	return sector <= there || geometry_turn(set, sector) - geometry_turn(set, there) <= set->revolution_ns;
}

bool read_cache_comes(const struct drive *drive, u64 first, u64 now)
{
	return comes_to(drive, first, read_cache_head(drive, now));
}

u64 read_cache_reach(const struct drive *drive, u64 sector, u64 now)
{
	u64 i, there = read_cache_head(drive, now), when;

	for (i = 0; i < drive->set.segments; i++) {
		const struct segment *segment = drive->segments + i;

		if (segment != drive->stream && segment->first <= sector && sector < segment->end)
			return 0;
	}
	if (!comes_to(drive, sector, there))
		return OUT_OF_REACH;
	if (sector < there)
		return 0;
	if (there == drive->stream_limit)
		return geometry_rotation_ns(&drive->set, there, now) + geometry_turn(&drive->set, sector) -
		       geometry_turn(&drive->set, there);
	when = drive->stream_time + geometry_turn(&drive->set, sector) - drive->stream_turn;
	return when > now ? when - now : 0;
}

u64 read_wanted(const struct drive *drive, u64 first, u64 end)
{
	return first + greater((end - first) * drive->set.bus_after_percent / 100, 1);
}

u64 read_moved(const struct drive *drive, u64 sectors, u64 start, u64 came, u64 behind)
{
	u64 bus = interface_ns(&drive->set, sectors);

	return greater(greater(start, came) + bus, behind + bus / sectors);
}

u64 read_cache_stream(struct drive *drive, u64 first, u64 end, u64 start)
{
	const struct settings *set = &drive->set;
	u64 there, wait = 0, done, begins_at, came;

	there = read_cache_head(drive, start);
	if (!comes_to(drive, first, there))
		return 0;
	drive->stream->used = start;
	if (there == drive->stream_limit) {
		/* The segment was full, the head waited on its track: it goes on when the sector comes round. */
		wait = geometry_rotation_ns(set, there, start);
		read_on(drive, there, start + wait);
	}
	move_limit(drive, end);
	if (end <= there) {
		drive->stat.cache_hits++;
		done = start + interface_ns(set, end - first);
		wait = 0;	/* the head's, not the read's */
	} else {
		begins_at = geometry_behind(set, read_wanted(drive, first, end));
		came = begins_at > drive->stream_turn ? drive->stream_time + begins_at - drive->stream_turn : 0;
		done = drive->stream_time + geometry_behind(set, end) - drive->stream_turn;
		done = read_moved(drive, end - first, start, came, done);
	}
	drive->stat.busy_rotation_ns += wait;
	drive->stat.busy_transfer_ns += done - start - wait;
	return done;
}
