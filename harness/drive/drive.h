/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A drive as a function of time: which request, sent when, completes when, and where the time went.
 *
 * Integers only and no call into the kernel: the host compiles the same files and tests them (tests/model).
 * Times are nanoseconds of the guest's monotonic clock, addresses are sectors of 512 bytes. The model is
 * described in docs/design.md, "Drives and machines".
 */
#ifndef AGEDRIVE_DRIVE_H
#define AGEDRIVE_DRIVE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#endif

#define SECTOR_BYTES 512ULL
#define NS_PER_S 1000000000ULL
#define UNIT 8ULL			/* sectors: the grain of the write cache */
#define ZONES_MOST 64
#define SEEK_POINTS_MOST 128
#define SEGMENTS_MOST 32
#define EXTENTS_MOST 256
#define CHANNELS_MOST 64
#define WRITE_CACHE_MOST (16ULL << 20)	/* bytes: what a larger cache keeps for writes */
#define PIECE 256ULL			/* sectors written back in one movement of the arm */
#define NEAR 4				/* extents of a round on either side of the head among which the quickest is next */
#define BATCH 8			/* pieces of a filling cache that are written back before a waiting read gets the arm */

#define DIES_MOST 256
#define PLANES_MOST 4
#define PENDING_MOST 512		/* programs of a solid-state drive's write buffer */
#define BUFFER_MOST 16384	/* units in it */
#define MAP_PAGES_MOST 1024

enum kind { DISK, FLASH, SSD };

struct disk_zone {
	u64 first;		/* its first sector, the first of a track */
	u64 track;		/* the number of that track */
	u64 per_track;		/* sectors that pass in one revolution */
};

/* A seek over so many cylinders takes so long; between two points of the curve the time rises evenly. */
struct seek_point {
	u64 cylinders, ns;
};

/* What the drive is: one word of the module's settings each. */
struct settings {
	enum kind kind;
	u64 sectors, depth, max_request, interface;
	u64 overhead_ns;	/* the electronics' time for a command; */
	u64 hit_overhead_ns;	/* for a read from the cache, */
	u64 write_overhead_ns;	/* and for a write: as the first where 0 */
	/* a disk's */
	u64 revolution_ns, phase_ns, heads, cylinders;
	u64 seek_min_ns;
	s64 seek_sqrt_ns, seek_linear_ns;
	u64 seek_point_count;	/* without any the curve is that of the three figures above */
	struct seek_point seek_points[SEEK_POINTS_MOST];
	u64 write_settle_ns, head_switch_ns;
	u64 track_skew_ns, cylinder_skew_ns;	/* by which the next track, or the first of the next cylinder, begins later */
	u64 any_order;		/* a read within a track begins with whichever of its sectors comes first */
	u64 cache_bytes, segments, read_ahead_bytes, write_back;
	u64 write_segments;	/* for writes; all but one where 0 */
	u64 read_ahead_tracks;	/* the head reads on to the end 1: of its track at most, 2: of the next where it came from another */
	u64 bus_after_percent;	/* of a read are in the cache before the drive takes the bus */
	u64 write_after_percent;	/* of a write are in the cache before the head begins with it */
	u64 zone_count;
	struct disk_zone zones[ZONES_MOST];
	/* flash's */
	u64 read_ns, write_ns, channels, read_rate, write_rate;
	/* a solid-state drive's; a unit is 4 KiB, a line a block of every plane of every die */
	u64 base, units;	/* the sector at which the mapped units begin, and how many there are */
	u64 dies, planes, page_units, cell_bits, program_units, channel_rate;
	u64 program_ns, erase_ns, suspend_ns, discard_ns;
	u64 link_ns;		/* the link's time for a command, beside its data */
	u64 lines, line_units, reserve;
	u64 fast_lines, fast_program_ns;	/* of one bit a cell, for what the host writes */
	u64 buffer_units;
	u64 map_pages;		/* of the map that the drive has room for; all of it where 0 */
	u64 discard;		/* whether it takes discards */
};

/* Cumulative. What the arm does by itself is in the busy times, too. */
struct statistics {
	u64 requests, reads, writes, sectors_read, sectors_written;
	u64 sequential;		/* requests that start where the one before ended */
	u64 blocks;		/* pieces of 4096 bytes, a request's last one counted whole */
	u64 seeks;		/* movements of the arm to another cylinder */
	u64 seek_cylinders;	/* and how far in all */
	u64 busy_overhead_ns, busy_seek_ns, busy_rotation_ns, busy_transfer_ns;
	u64 cache_hits;		/* reads served from the drive's cache alone */
	u64 queue_sum;		/* requests in the drive, summed over the moments at which a read or write is taken up */
	u64 flushes;
	u64 flash_reads;	/* of pages */
	u64 units_programmed, units_moved, units_discarded, blocks_erased;
	u64 gc_wait_ns;		/* by which commands waited for what garbage collection did */
	u64 copy_late_ns;	/* by which copying data outlasted the service time: the model is that much too slow */
	u64 copy_stolen_ns;	/* that copying took of the guest's processor, where a real drive's DMA takes none */
};

struct extent {
	u64 first, end;
	u64 ready;		/* when its first data had come, or had its turn */
};

struct segment {
	u64 first, end;		/* sectors held; empty when equal */
	u64 used;		/* when it last served, for replacement */
};

/* What a solid-state drive keeps while its power is off; as zeros it is new. */
struct line {
	u32 valid, erased, state;
};

/* Of neighbouring lines the first of those that are free, and of those that are closed. */
struct group {
	u32 first[2];
};

/* A line out of which what is valid is being moved. */
struct emptied {
	u32 line, next, page, pace;
};

struct ftl_state {
	u64 began;
	struct emptied garbage, fast;
	u32 next[2], end[2];	/* places in the open lines: of the host's units, and of moved ones */
	u64 free;
};

/* What it forgets. */
struct die {
	u64 free;		/* when the last of its programs, erases and moves is done */
	u64 read;		/* when the last read for the host is, */
	u64 reads[PLANES_MOST];	/* and of each plane: they read side by side */
	u64 collecting;		/* ns of garbage collection since the host last programmed there */
};

struct pending {
	u64 done, collecting;
	u32 place, units;
};

struct map_page {
	u32 page;
	bool changed;
};

struct ftl {
	struct ftl_state *state;
	u32 *map;		/* of each unit its place + 1, or 0 */
	u32 *owner;		/* of each place the unit that was written there */
	struct line *lines;
	struct group *groups;

	struct die dies[DIES_MOST];
	u64 channel_reads[CHANNELS_MOST];
	struct pending pending[PENDING_MOST];	/* a ring of what is being programmed out of the write buffer */
	u32 oldest, pending_count, open_units;
	u32 buffer[BUFFER_MOST];	/* the units in it, a ring as well */
	u64 buffer_begins, buffered;
	u64 latest;		/* when the last of it is programmed */
	u64 busy_until, idle;
	struct map_page map_pages[MAP_PAGES_MOST];
};

struct drive {
	struct settings set;
	struct statistics stat;
	/* called when sectors of the write cache have reached the platters */
	void (*written)(struct drive *drive, u64 first, u64 end, u64 when);

	u64 arm_free;		/* when the arm's last movement ends */
	u64 data_begins;	/* when its first sector began to pass */
	u64 head;		/* the sector it ends at */
	u64 idle_since;		/* when the last command completed */
	u64 next_sector;	/* where the next sequential request would start */

	struct segment segments[SEGMENTS_MOST];
	struct segment *stream;	/* the one that the head is reading into, or none */
	u64 stream_time, stream_turn;	/* the head was at this point of the spiral at that time */
	u64 stream_limit;	/* it stops before this sector */

	struct extent dirty[EXTENTS_MOST];	/* sorted; what waits for the arm */
	u32 dirty_count;
	struct extent writing;	/* what the arm is writing back now; empty when equal */
	u64 dirty_sectors;	/* of both */
	bool draining;		/* the arm writes back one piece after the other, */
	u64 draining_since;	/* since then, */
	u64 round;		/* what had come by then is written back before what came later; */
	u64 in_a_row;		/* sectors that were written back one behind the other, half a cache of them at most */
	u32 batch;		/* and this many more before a read when the cache is filling */

	u64 channel_free[CHANNELS_MOST], media_free;
	struct ftl ftl;
};

/* drive.c: commands. Calls come in the order of time. */

/* NULL when the settings make a drive, else what is wrong with them. Fills in the zones' tracks. */
const char *drive_init(struct drive *drive);
/* When a request sent at `now` completes. A write goes `through` the cache when it asks for it (FUA). */
u64 drive_read(struct drive *drive, u64 first, u64 sectors, u64 now);
u64 drive_write(struct drive *drive, u64 first, u64 sectors, bool through, u64 now);
u64 drive_flush(struct drive *drive, u64 now);
u64 drive_discard(struct drive *drive, u64 first, u64 sectors, u64 now);
/* Let the drive do by itself what it has done by `now`. */
void drive_advance(struct drive *drive, u64 now);
/* All that waits is where it stays, as after an orderly power-off. */
void drive_settle(struct drive *drive);
/* Nanoseconds until the data of a request would begin to come at `now`: the shortest of a queue goes first. */
u64 drive_reach(const struct drive *drive, u64 first, u64 now);

/*
 * geometry.c: tracks follow one another like a spiral; a point of it is the time in ns from sector 0, skews between
 * tracks included, so that it is an angle, too.
 */

const char *geometry_init(struct settings *set);
u64 geometry_turn(const struct settings *set, u64 sector);
/* Where the sector before has passed: as geometry_turn, less the skew where a track begins. */
u64 geometry_behind(const struct settings *set, u64 end);
u64 geometry_sector(const struct settings *set, u64 turn);
u64 geometry_track(const struct settings *set, u64 sector);
u64 geometry_track_end(const struct settings *set, u64 sector);
u64 geometry_seek_ns(const struct settings *set, u64 cylinders);
u64 geometry_rotation_ns(const struct settings *set, u64 sector, u64 now);
u64 interface_ns(const struct settings *set, u64 sectors);

/* arm.c */

struct movement {
	u64 cylinders, seek_ns, rotation_ns;
};

struct movement arm_movement(const struct drive *drive, u64 first, bool write, u64 start, u64 ready);
/* Move and pass over the sectors, not before `ready`; returns when the head is behind the last of them. */
u64 arm_pass(struct drive *drive, u64 first, u64 end, bool write, u64 start, u64 ready);

/* read_cache.c: after a read the head reads on, until its segment is full or the arm must go. */

bool read_cache_has(struct drive *drive, u64 first, u64 end, u64 now);
void read_cache_forget(struct drive *drive, u64 first, u64 end, u64 now);
/* Whether the head, reading on, has come to a sector or soon does. */
bool read_cache_comes(const struct drive *drive, u64 first, u64 now);
/* When a read is done that the head, reading on, soon comes to or has come to; 0 when it does not come to it soon. */
u64 read_cache_stream(struct drive *drive, u64 first, u64 end, u64 start);
/* The head is behind `end` at that time and reads on. */
void read_cache_start(struct drive *drive, u64 first, u64 end, u64 behind);
/* The sector before which all must be in the cache when the drive takes the bus for a read. */
u64 read_wanted(const struct drive *drive, u64 first, u64 end);
/* When the interface has moved a read of which so much had come at `came`, and all at `behind`. */
u64 read_moved(const struct drive *drive, u64 sectors, u64 start, u64 came, u64 behind);
/* Nanoseconds until a sector has come that is in a segment or that the head soon comes to; or OUT_OF_REACH. */
#define OUT_OF_REACH (~0ULL)
u64 read_cache_reach(const struct drive *drive, u64 sector, u64 now);
u64 read_cache_head(const struct drive *drive, u64 now);
void read_cache_stop(struct drive *drive, u64 now);

/* write_cache.c */

/* Sectors it holds; 0 without write-back. */
u64 write_cache_size(const struct drive *drive);
bool write_cache_has(const struct drive *drive, u64 first, u64 end);
/* Whether a write stays in it: not one that goes `through`, nor one that is larger than the cache. */
bool write_cache_takes(const struct drive *drive, u64 first, u64 sectors, bool through);
void write_cache_add(struct drive *drive, u64 first, u64 end, u64 ready);
/* Let the drive write back by itself until `now`; when it will next have done so, or 0. */
void write_cache_advance(struct drive *drive, u64 now);
u64 write_cache_next(const struct drive *drive);
/* Write back until that many sectors more fit; until nothing is left; returns when. */
u64 write_cache_room(struct drive *drive, u64 sectors, u64 start);
u64 write_cache_flush(struct drive *drive, u64 start);
/* Let the arm finish what it is at; returns when another command may have it, and hands it back after that. */
u64 write_cache_yield(struct drive *drive, u64 start);
void write_cache_resume(struct drive *drive, u64 now);
void write_cache_settle(struct drive *drive);

/* use.c: before a guest sees it, a new solid-state drive is used, and then perhaps trimmed. */

void drive_use(struct drive *drive, u64 seed, bool trimmed);

/* flash.c */

const char *flash_init(const struct settings *set);
u64 flash_serve(struct drive *drive, u64 sectors, u64 latency_ns, u64 rate, u64 start);

/* ftl.c */

const char *ftl_init(const struct settings *set);
/* Bytes of memory for the map and what else outlives the power; aligned to 8, and zeros for a new drive. */
u64 ftl_bytes(const struct settings *set);
void ftl_attach(struct drive *drive, void *memory);
u64 ftl_read(struct drive *drive, u64 first, u64 sectors, u64 start);
u64 ftl_write(struct drive *drive, u64 first, u64 sectors, bool through, u64 start);
u64 ftl_flush(struct drive *drive, u64 start);
u64 ftl_discard(struct drive *drive, u64 first, u64 sectors, u64 start);
void ftl_advance(struct drive *drive, u64 now);

static inline u64 greater(u64 a, u64 b)
{
	return a > b ? a : b;
}

static inline u64 lesser(u64 a, u64 b)
{
	return a < b ? a : b;
}

#endif
