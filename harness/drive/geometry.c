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

/* The point of the spiral at which a sector begins. */
u64 geometry_turn(const struct settings *set, u64 sector)
{
	const struct disk_zone *zone = zone_of(set, sector);
	u64 inside = sector - zone->first;

	return (zone->track + inside / zone->per_track) * set->revolution_ns +
	       inside % zone->per_track * set->revolution_ns / zone->per_track;
}

/* The sector that the head is in or just at: all before it have passed. */
u64 geometry_sector(const struct settings *set, u64 turn)
{
	u64 track = turn / set->revolution_ns, angle = turn % set->revolution_ns;
	const struct disk_zone *zone = set->zones + set->zone_count - 1;

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

/* Through the data sheet's minimum, average and full stroke: Lee and Katz, SIGMETRICS 1993. */
u64 geometry_seek_ns(const struct settings *set, u64 cylinders)
{
	u64 share, root;

	if (!cylinders)
		return 0;
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
