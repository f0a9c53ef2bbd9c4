// SPDX-License-Identifier: GPL-2.0
/* Where sectors are and how long it takes to get there. */
#include "drive.h"

const char *geometry_init(struct settings *set)
{
	u64 i;

	if (!set->revolution_ns || !set->heads || set->cylinders < 3)
		return "revolution_ns, heads and cylinders (3 at least) must be given";
	if (!set->zone_count)
		return "zones must be given";
	for (i = 0; i < set->zone_count; i++) {
		struct disk_zone *zone = set->zones + i, *before = zone - 1;

		if (!zone->per_track || (i ? zone->first <= before->first : zone->first))
			return "zones must start at sector 0 and rise";
		if (i && (zone->first - before->first) % before->per_track)
			return "a zone must have whole tracks";
		zone->track = i ? before->track + (zone->first - before->first) / before->per_track : 0;
	}
	for (i = 0; i < set->seek_point_count; i++) {
		struct seek_point *point = set->seek_points + i, *before = point - 1;

		if (i ? point->cylinders <= before->cylinders || point->ns < before->ns : point->cylinders != 1)
			return "a seek curve must begin at 1 cylinder and rise";
	}
	return 0;
}

static const struct disk_zone *zone_of(const struct settings *set, u64 sector)
{
	u64 low = 0, high = set->zone_count - 1;

	while (low < high) {
		u64 middle = (low + high + 1) / 2;

		if (set->zones[middle].first <= sector)
			low = middle;
		else
			high = middle - 1;
	}
	return &set->zones[low];
}

u64 geometry_track(const struct settings *set, u64 sector)
{
	const struct disk_zone *zone = zone_of(set, sector);

	return zone->track + (sector - zone->first) / zone->per_track;
}

/* The sector behind the last one of its track. */
u64 geometry_track_end(const struct settings *set, u64 sector)
{
	const struct disk_zone *zone = zone_of(set, sector);

	return sector - (sector - zone->first) % zone->per_track + zone->per_track;
}

static u64 track_begins(const struct settings *set, u64 track)
{
	u64 cylinder = track / set->heads;

	return track * set->revolution_ns + (track - cylinder) * set->track_skew_ns + cylinder * set->cylinder_skew_ns;
}

/* The point of the spiral at which a sector begins. */
u64 geometry_turn(const struct settings *set, u64 sector)
{
	const struct disk_zone *zone = zone_of(set, sector);
	u64 inside = sector - zone->first;

	return track_begins(set, zone->track + inside / zone->per_track) +
	       inside % zone->per_track * set->revolution_ns / zone->per_track;
}

u64 geometry_behind(const struct settings *set, u64 end)
{
	const struct disk_zone *zone = zone_of(set, end - (end != 0));
	u64 inside = end - zone->first - (end != 0);

	if (!end)
		return 0;
	return track_begins(set, zone->track + inside / zone->per_track) +
	       (inside % zone->per_track + 1) * set->revolution_ns / zone->per_track;
}

/* The sector that the head is in or just at: all before it have passed. */
u64 geometry_sector(const struct settings *set, u64 turn)
{
	u64 track_ns = set->revolution_ns + set->track_skew_ns;
	u64 cylinder_ns = track_ns * (set->heads - 1) + set->revolution_ns + set->cylinder_skew_ns;
	u64 surface = lesser(turn % cylinder_ns / track_ns, set->heads - 1);
	u64 track = turn / cylinder_ns * set->heads + surface, angle = turn % cylinder_ns - surface * track_ns;
	const struct disk_zone *zone = set->zones + set->zone_count - 1;

	if (angle >= set->revolution_ns) {	/* between two tracks */
		track++;
		angle = 0;
	}
	while (zone->track > track)
		zone--;
	/* A sector's beginning was rounded down by less than a nanosecond. */
	return zone->first + (track - zone->track) * zone->per_track +
	       ((angle + 1) * zone->per_track - 1) / set->revolution_ns;
}

static u64 square_root(u64 value)
{
	u64 root = 0, bit = 1ULL << 62;

	while (bit > value)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (value >= root + bit) {
			value -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

static u64 measured_ns(const struct settings *set, u64 cylinders)
{
	const struct seek_point *points = set->seek_points, *from, *to;
	u64 low = 0, high = set->seek_point_count - 1;

	if (cylinders >= points[high].cylinders)
		return points[high].ns;
	while (high - low > 1) {
		u64 middle = (low + high) / 2;

		if (points[middle].cylinders <= cylinders)
			low = middle;
		else
			high = middle;
	}
	from = points + low;
	to = points + high;
	return from->ns + (to->ns - from->ns) * (cylinders - from->cylinders) / (to->cylinders - from->cylinders);
}

/* Through the data sheet's minimum, average and full stroke: Lee and Katz, SIGMETRICS 1993. */
u64 geometry_seek_ns(const struct settings *set, u64 cylinders)
{
	u64 share, root;

	if (!cylinders)
		return 0;
	if (set->seek_point_count)
		return measured_ns(set, cylinders);
	share = ((cylinders - 1) << 32) / (set->cylinders - 2);
	root = square_root(share);	/* of a fraction of 32 bits: one of 16 */
	return set->seek_min_ns + ((set->seek_sqrt_ns * (s64)root) >> 16) +
	       ((set->seek_linear_ns * (s64)(share >> 8)) >> 24);
}

u64 geometry_rotation_ns(const struct settings *set, u64 sector, u64 now)
{
	u64 angle = (now + set->phase_ns) % set->revolution_ns;

	return (geometry_turn(set, sector) % set->revolution_ns + set->revolution_ns - angle) % set->revolution_ns;
}

u64 interface_ns(const struct settings *set, u64 sectors)
{
	return sectors * SECTOR_BYTES * NS_PER_S / set->interface;
}
