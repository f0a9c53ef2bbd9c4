/* Random requests, for the compiler's sanitizers: the same code runs in the kernel. Settings are arguments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "drive.h"

struct probe;
struct probe *probe_new(void);
void probe_free(struct probe *probe);
bool probe_set(struct probe *probe, const char *name, s64 value);
void probe_kind(struct probe *probe, u64 kind);
void probe_attach(struct probe *probe);
void probe_use(struct probe *probe, u64 seed, bool trimmed);
const char *probe_law(const struct probe *probe);
bool probe_zone(struct probe *probe, u64 first, u64 per_track);
bool probe_seek(struct probe *probe, u64 cylinders, u64 ns);

static u64 state = 88172645463325252ULL, begins, seed;

static u64 below(u64 limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

static void word(struct probe *probe, char *text)
{
	char *value = strchr(text, '=') + 1, *zone;

	value[-1] = 0;
	if (!strcmp(text, "kind")) {
		probe_kind(probe, !strcmp(value, "flash") ? FLASH : !strcmp(value, "ssd") ? SSD : DISK);
	} else if (!strcmp(text, "zones")) {
		for (zone = strtok(value, ","); zone; zone = strtok(NULL, ","))
			probe_zone(probe, strtoull(zone, NULL, 10), strtoull(strchr(zone, ':') + 1, NULL, 10));
	} else if (!strcmp(text, "seek")) {
		for (zone = strtok(value, ","); zone; zone = strtok(NULL, ","))
			probe_seek(probe, strtoull(zone, NULL, 10), strtoull(strchr(zone, ':') + 1, NULL, 10));
	} else if (!strcmp(text, "begin")) {
		begins = strtoull(value, NULL, 10);
	} else if (!strcmp(text, "seed")) {
		seed = strtoull(value, NULL, 10);
	} else {
		probe_set(probe, text, strtoll(value, NULL, 10));
	}
}

static void require(bool law, const char *what)
{
	if (law)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void serve(struct drive *drive, u64 count)
{
	u64 sectors = drive->set.sectors, most = drive->set.max_request / SECTOR_BYTES, now = 0, at = 0, done;

	while (count--) {
		u64 size = below(3) ? below(lesser(most, 64)) + 1 : below(most) + 1;

		if (!below(4))
			at = below(3) ? below(sectors) : sectors - below(lesser(sectors, 2 * most));
		at = lesser(at, sectors - size);
		if (!below(50))
			done = drive_flush(drive, now);
		else if (drive->set.kind == SSD && !below(20))
			done = drive_discard(drive, at, size, now);
		else if (below(2))
			done = drive_read(drive, at, size, now);
		else
			done = drive_write(drive, at, size, !below(20), now);
		require(done >= now + lesser(drive->set.overhead_ns, lesser(drive->set.hit_overhead_ns,
				drive->set.write_overhead_ns)), "a request completes before the overhead");
		require(drive->dirty_count < EXTENTS_MOST, "too many extents");
		require(drive->set.kind != DISK || drive->dirty_sectors <= write_cache_size(drive), "too much in the cache");
		at += size;
		now = done + (below(3) ? 0 : below(20 * 1000 * 1000));
		drive_reach(drive, below(sectors), now);
		if (!below(8))
			drive_advance(drive, now);
	}
	drive_settle(drive);
	require(!drive->dirty_sectors && !drive->dirty_count, "settled, and something waits");
}

int main(int count, char **words)
{
	struct probe *probe = probe_new();
	const char *wrong;
	int i;

	for (i = 2; i < count; i++)
		word(probe, words[i]);
	wrong = drive_init((struct drive *)probe);
	require(!wrong, wrong);
	if (begins)
		probe_use(probe, seed, begins == 1);
	if (((struct drive *)probe)->set.kind == SSD)
		probe_attach(probe);
	serve((struct drive *)probe, strtoull(words[1], NULL, 10));
	if (((struct drive *)probe)->set.kind == SSD) {
		require(!probe_law(probe), probe_law(probe));
		probe_attach(probe);
		require(!probe_law(probe), probe_law(probe));
	}
	probe_free(probe);
	return 0;
}
