// SPDX-License-Identifier: GPL-2.0
/* The words of a drive's settings, as the host derived them (agelab/machine/drive/geometry.py). */
#include <linux/kernel.h>
#include <linux/string.h>
#include "block.h"
#include "words.h"

/* `a:b:c` into numbers; returns how many there were, or an error. */
static int numbers(char *text, u64 *values, int most)
{
	char *part;
	int count = 0;

	while ((part = strsep(&text, ":"))) {
		if (count == most || kstrtoull(part, 0, (unsigned long long *)values + count))
			return -EINVAL;
		count++;
	}
	return count;
}

static int kind(struct settings *set, const char *value)
{
	static const char *const kinds[] = { "disk", "flash", "ssd" };
	int found = match_string(kinds, ARRAY_SIZE(kinds), value);

	set->kind = found;
	return found < 0 ? found : 0;
}

static int zones(struct settings *set, char *list)
{
	char *entry;
	u64 two[2];

	while ((entry = strsep(&list, ","))) {
		if (set->zone_count == ZONES_MOST || numbers(entry, two, 2) != 2)
			return -EINVAL;
		set->zones[set->zone_count++] = (struct disk_zone){ .first = two[0], .per_track = two[1] };
	}
	return 0;
}

static int seek(struct settings *set, char *list)
{
	char *entry;
	u64 two[2];

	while ((entry = strsep(&list, ","))) {
		if (set->seek_point_count == SEEK_POINTS_MOST || numbers(entry, two, 2) != 2)
			return -EINVAL;
		set->seek_points[set->seek_point_count++] = (struct seek_point){ .cylinders = two[0], .ns = two[1] };
	}
	return 0;
}

static int memory(struct store *store, char *list)
{
	char *entry;
	u64 three[3];

	while ((entry = strsep(&list, ","))) {
		if (store->window_count == WINDOWS_MOST || numbers(entry, three, 3) != 3)
			return -EINVAL;
		store->windows[store->window_count++] = (struct window){
			.physical = three[0], .first = three[1], .sectors = three[2],
		};
	}
	return 0;
}

static int record(struct record *record, char *value)
{
	u64 two[2];

	if (numbers(value, two, 2) != 2)
		return -EINVAL;
	record->physical = two[0];
	record->bytes = two[1];
	return 0;
}

static int number(struct settings *set, const char *name, const char *value)
{
	u64 *word = word_of(set, name);

	return word ? kstrtoll(value, 0, (long long *)word) : -EINVAL;
}

int settings_parse(struct block *block, char *text)
{
	char *value;
	int error = 0;

	while (!error && (value = strsep(&text, " \n"))) {
		char *name = strsep(&value, "=");

		if (!*name)
			continue;
		if (!value)
			error = -EINVAL;
		else if (!strcmp(name, "name"))
			error = strscpy(block->name, value, sizeof(block->name)) < 0 ? -EINVAL : 0;
		else if (!strcmp(name, "kind"))
			error = kind(&block->drive.set, value);
		else if (!strcmp(name, "zones"))
			error = zones(&block->drive.set, value);
		else if (!strcmp(name, "seek"))
			error = seek(&block->drive.set, value);
		else if (!strcmp(name, "table"))
			error = kstrtoull(value, 0, (unsigned long long *)&block->table);
		else if (!strcmp(name, "memory"))
			error = memory(&block->store, value);
		else if (!strcmp(name, "record"))
			error = record(&block->record, value);
		else
			error = number(&block->drive.set, name, value);
		if (error)
			pr_err("agedrive: cannot read the setting '%s'\n", name);
	}
	return error;
}
