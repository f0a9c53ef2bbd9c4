/*
 * The modelled drive as the tests see it: its settings, statistics and state by name, and a record of what
 * reached the platters and of every movement of the arm (linked with --wrap=arm_pass).
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "words.h"

#define WIDTH 5

struct record {
	u64 *rows;
	size_t count, room;
};

struct probe {
	struct drive drive;	/* first: a pointer to one is a pointer to the other */
	struct record written, passes;
	void *memory;
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

static void written(struct drive *drive, u64 first, u64 end, u64 when)
{
	note(&((struct probe *)drive)->written, (u64[WIDTH]){ first, end, when });
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
	free(probe->memory);
	free(probe);
}

#define STAT(field) { #field, offsetof(struct drive, stat.field) }
#define STATE(field) { #field, offsetof(struct drive, field) }

static const struct {
	const char *name;
	size_t at;
} counted[] = {
	STAT(requests), STAT(reads), STAT(writes), STAT(sectors_read), STAT(sectors_written), STAT(sequential),
	STAT(blocks), STAT(seeks), STAT(seek_cylinders), STAT(busy_overhead_ns), STAT(busy_seek_ns), STAT(busy_rotation_ns),
	STAT(busy_transfer_ns), STAT(cache_hits), STAT(flushes), STAT(flash_reads), STAT(units_programmed),
	STAT(units_moved), STAT(units_discarded), STAT(blocks_erased), STAT(gc_wait_ns),
	STATE(arm_free), STATE(head), STATE(idle_since), STATE(dirty_sectors),
	STATE(stream_limit),
};

static u64 *find(struct probe *probe, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(counted) / sizeof(*counted); i++)
		if (!strcmp(counted[i].name, name))
			return (u64 *)((char *)&probe->drive + counted[i].at);
	return word_of(&probe->drive.set, name);
}

/* Whether there is such a word. */
bool probe_set(struct probe *probe, const char *name, s64 value)
{
	u64 *word = word_of(&probe->drive.set, name);

	if (word)
		*word = value;
	return word;
}

u64 probe_get(struct probe *probe, const char *name)
{
	u64 *word = find(probe, name);

	return word ? *word : ~0ULL;
}

void probe_kind(struct probe *probe, u64 kind)
{
	probe->drive.set.kind = kind;
}

/* What a solid-state drive keeps while its power is off; zeros at first. */
void *probe_map(struct probe *probe)
{
	if (!probe->memory)
		probe->memory = calloc(1, ftl_bytes(&probe->drive.set));
	if (!probe->memory)
		abort();
	return probe->memory;
}

void probe_attach(struct probe *probe)
{
	ftl_attach(&probe->drive, probe_map(probe));
	probe->written.count = 0;
}

/* Use it as the host does before the first boot: by another drive with the same map. */
void probe_use(struct probe *probe, u64 seed, bool trimmed)
{
	struct probe *before = probe_new();

	if (!before)
		abort();
	before->drive.set = probe->drive.set;
	ftl_attach(&before->drive, probe_map(probe));
	drive_use(&before->drive, seed, trimmed);
	probe_free(before);
}

u64 probe_wear(const struct probe *probe, u64 line)
{
	return probe->drive.ftl.lines[line].erased;
}

/* What a law of the translation says is wrong, or nothing. */
const char *probe_law(const struct probe *probe)
{
	const struct settings *set = &probe->drive.set;
	const struct ftl *ftl = &probe->drive.ftl;
	u32 *valid = calloc(set->lines, sizeof(u32)), left = 0, unit, line;
	const char *wrong = NULL;

	if (!valid)
		abort();
	for (unit = 0; unit < set->units; unit++) {
		u32 place = ftl->map[unit] - 1;

		if (!ftl->map[unit])
			continue;
		if (place >= set->lines * set->line_units || ftl->owner[place] != unit)
			wrong = "two units are in one place";
		else
			valid[place / set->line_units]++;
	}
	for (line = 0; line < set->lines; line++) {
		if (valid[line] != ftl->lines[line].valid)
			wrong = "a line holds another number of units than it says";
		if (!ftl->lines[line].state && valid[line])
			wrong = "a line that is free holds something";
		left += line >= set->fast_lines && !ftl->lines[line].state;
	}
	if (left != ftl->state->free)
		wrong = "the free lines are not as many as it says";
	if (!left)
		wrong = "no line is left for what is moved";
	if (ftl->buffered > set->buffer_units)
		wrong = "more is in the write buffer than it holds";
	free(valid);
	return wrong;
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
