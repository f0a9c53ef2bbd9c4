/*
 * The modelled drive as the tests see it: its settings, statistics and state by name, and a record of what
 * reached the platters and of every movement of the arm (linked with --wrap=arm_pass).
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "drive.h"

#define WIDTH 5

struct record {
	u64 *rows;
	size_t count, room;
};

struct probe {
	struct drive drive;	/* first: a pointer to one is a pointer to the other */
	struct record written, passes;
};

static void note(struct record *record, const u64 row[WIDTH])
{
	if (record->count == record->room) {
		record->room = record->room ? 2 * record->room : 64;
		record->rows = realloc(record->rows, record->room * WIDTH * sizeof(u64));
		if (!record->rows)
			abort();
	}
	memcpy(record->rows + WIDTH * record->count++, row, WIDTH * sizeof(u64));
}

static void written(struct drive *drive, u64 first, u64 end)
{
	note(&((struct probe *)drive)->written, (u64[WIDTH]){ first, end });
}

u64 __real_arm_pass(struct drive *drive, u64 first, u64 end, bool write, u64 start, u64 ready);
u64 __wrap_arm_pass(struct drive *drive, u64 first, u64 end, bool write, u64 start, u64 ready);

u64 __wrap_arm_pass(struct drive *drive, u64 first, u64 end, bool write, u64 start, u64 ready)
{
	u64 done = __real_arm_pass(drive, first, end, write, start, ready);

	note(&((struct probe *)drive)->passes, (u64[WIDTH]){ start, done, first, end, write });
	return done;
}

struct probe *probe_new(void)
{
	struct probe *probe = calloc(1, sizeof(*probe));

	if (probe)
		probe->drive.written = written;
	return probe;
}

void probe_free(struct probe *probe)
{
	free(probe->written.rows);
	free(probe->passes.rows);
	free(probe);
}

struct word {
	const char *name;
	size_t at;
};

#define SET(field) { #field, offsetof(struct drive, set.field) }
#define STAT(field) { #field, offsetof(struct drive, stat.field) }
#define STATE(field) { #field, offsetof(struct drive, field) }

static const struct word words[] = {
	SET(sectors), SET(depth), SET(max_request), SET(interface), SET(overhead_ns), SET(hit_overhead_ns),
	SET(write_overhead_ns), SET(track_skew_ns), SET(cylinder_skew_ns), SET(any_order), SET(write_segments),
	SET(read_ahead_tracks), SET(bus_after_percent), SET(write_after_percent),
	SET(revolution_ns), SET(phase_ns), SET(heads), SET(cylinders), SET(seek_min_ns), SET(seek_sqrt_ns), SET(seek_linear_ns),
	SET(write_settle_ns), SET(head_switch_ns), SET(cache_bytes), SET(segments), SET(read_ahead_bytes),
	SET(write_back), SET(read_ns), SET(write_ns), SET(channels), SET(read_rate), SET(write_rate),
	STAT(requests), STAT(reads), STAT(writes), STAT(sectors_read), STAT(sectors_written), STAT(sequential),
	STAT(blocks), STAT(seeks), STAT(seek_cylinders), STAT(busy_overhead_ns), STAT(busy_seek_ns), STAT(busy_rotation_ns),
	STAT(busy_transfer_ns), STAT(cache_hits), STAT(flushes),
	STATE(arm_free), STATE(head), STATE(idle_since), STATE(dirty_sectors),
	STATE(stream_limit),
};

static u64 *find(struct probe *probe, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(words[i].name, name))
			return (u64 *)((char *)&probe->drive + words[i].at);
	return NULL;
}

/* Whether there is such a word. */
bool probe_set(struct probe *probe, const char *name, s64 value)
{
	u64 *word = find(probe, name);

	if (word)
		*word = value;
	return word;
}

u64 probe_get(struct probe *probe, const char *name)
{
	u64 *word = find(probe, name);

	return word ? *word : ~0ULL;
}

void probe_flash(struct probe *probe)
{
	probe->drive.set.kind = FLASH;
}

bool probe_zone(struct probe *probe, u64 first, u64 per_track)
{
	struct settings *set = &probe->drive.set;

	if (set->zone_count == ZONES_MOST)
		return false;
	set->zones[set->zone_count++] = (struct disk_zone){ .first = first, .per_track = per_track };
	return true;
}

bool probe_seek(struct probe *probe, u64 cylinders, u64 ns)
{
	struct settings *set = &probe->drive.set;

	if (set->seek_point_count == SEEK_POINTS_MOST)
		return false;
	set->seek_points[set->seek_point_count++] = (struct seek_point){ .cylinders = cylinders, .ns = ns };
	return true;
}

u64 probe_extents(const struct probe *probe)
{
	return probe->drive.dirty_count;
}

/* How many rows are recorded, and where; they stand until the next call. */
u64 probe_written(struct probe *probe, const u64 **rows)
{
	u64 count = probe->written.count;

	*rows = probe->written.rows;
	probe->written.count = 0;
	return count;
}

u64 probe_passes(struct probe *probe, const u64 **rows)
{
	u64 count = probe->passes.count;

	*rows = probe->passes.rows;
	probe->passes.count = 0;
	return count;
}
