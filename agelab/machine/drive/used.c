/*
 * Write the map of a used solid-state drive, as the drive finds it behind its data (harness/drive/ftl.c).
 *
 *     used FILE SEED TRIMMED word=number ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "words.h"

static void written(struct drive *drive, u64 first, u64 end, u64 when)
{
	(void)drive, (void)first, (void)end, (void)when;
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "used: error: %s: %s\n", what, why);
	return 1;
}

int main(int count, char **words)
{
	static struct drive drive = { .set.kind = SSD, .written = written };
	const char *wrong;
	void *map;
	FILE *file;
	int i;

	if (count < 4)
		return fail("arguments", "FILE SEED TRIMMED word=number ...");
	for (i = 4; i < count; i++) {
		char *value = strchr(words[i], '=');
		u64 *word;

		if (value)
			*value++ = 0;
		word = word_of(&drive.set, words[i]);
		if (!word || !value)
			return fail(words[i], "no such word");
		*word = strtoull(value, NULL, 10);
	}
	wrong = drive_init(&drive);
	if (wrong)
		return fail("settings", wrong);
	map = calloc(1, ftl_bytes(&drive.set));
	file = fopen(words[1], "wb");
	if (!map || !file)
		return fail(words[1], map ? "cannot be written" : "no memory");
	ftl_attach(&drive, map);
	drive_use(&drive, strtoull(words[2], NULL, 10), atoi(words[3]));
	if (fwrite(map, ftl_bytes(&drive.set), 1, file) != 1 || fclose(file))
		return fail(words[1], "cannot be written");
	return 0;
}
