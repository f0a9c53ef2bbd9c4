// SPDX-License-Identifier: GPL-2.0
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/vmalloc.h>
#include "store.h"

#define UNIT_BYTES (UNIT * SECTOR_BYTES)
#define NONE 0xffffffffU

static __always_inline void copy_words(u64 *to, const u64 *from)
{
	u64 a = from[0], b = from[1], c = from[2], d = from[3], e = from[4], f = from[5], g = from[6], h = from[7];

	barrier();	/* or the compiler makes a call of memcpy of it */
	to[0] = a;
	to[1] = b;
	to[2] = c;
	to[3] = d;
	to[4] = e;
	to[5] = f;
	to[6] = g;
	to[7] = h;
}

/* Whole sectors. Emulators run this loop three times as fast as the processor's own string moves. */
static void copy(char *to_byte, const char *from_byte, u64 bytes)
{
	u64 *to = (u64 *)to_byte;
	const u64 *from = (const u64 *)from_byte, *end = from + bytes / sizeof(u64);

	for (; from < end; from += 32, to += 32) {
		copy_words(to, from);
		copy_words(to + 8, from + 8);
		copy_words(to + 16, from + 16);
		copy_words(to + 24, from + 24);
	}
}

int store_init(struct store *store, u64 cache_sectors)
{
	u32 i, buckets;

	for (i = 0; i < store->window_count; i++) {
		struct window *window = store->windows + i;

		window->memory = memremap(window->physical, window->sectors * SECTOR_BYTES, MEMREMAP_WB);
		if (!window->memory)
			return -ENXIO;
	}
	store->slot_count = cache_sectors / UNIT;
	if (!store->slot_count)
		return 0;
	buckets = roundup_pow_of_two(store->slot_count);
	store->bucket_mask = buckets - 1;
	store->slots = vzalloc(store->slot_count * UNIT_BYTES);
	store->unit = vzalloc(store->slot_count * sizeof(u64));
	store->next = vzalloc(store->slot_count * sizeof(u32));
	store->valid = vzalloc(store->slot_count);
	store->bucket = vmalloc(buckets * sizeof(u32));
	if (!store->slots || !store->unit || !store->next || !store->valid || !store->bucket)
		return -ENOMEM;
	memset(store->bucket, 0xff, buckets * sizeof(u32));
	for (i = 0; i < store->slot_count; i++)
		store->next[i] = i + 1 < store->slot_count ? i + 1 : NONE;
	return 0;
}

/* ---- the platters ---- */

/* The memory behind a sector, or NULL; `end` is moved to where there is other memory, or some, or none. */
static char *platter(const struct store *store, u64 sector, u64 *end)
{
	char *memory = NULL;
	u32 i;

	for (i = 0; i < store->window_count; i++) {
		const struct window *window = store->windows + i;
		u64 behind = window->first + window->sectors;

		if (sector < window->first) {
			*end = lesser(*end, window->first);
		} else if (sector < behind) {
			*end = lesser(*end, behind);
			memory = window->memory + (sector - window->first) * SECTOR_BYTES;
		}
	}
	return memory;
}

/* ---- the cache ---- */

static u32 *bucket_of(struct store *store, u64 unit)
{
	/* Neighbours fall into neighbouring buckets. */
	return store->bucket + ((unit ^ unit >> 16) & store->bucket_mask);
}

static u32 find(struct store *store, u64 unit)
{
	u32 slot = *bucket_of(store, unit);

	while (slot != NONE && store->unit[slot] != unit)
		slot = store->next[slot];
	return slot;
}

static u32 take(struct store *store, u64 unit)
{
	u32 *bucket = bucket_of(store, unit), slot = find(store, unit);

	if (slot != NONE)
		return slot;
	slot = store->free;
	if (WARN_ON_ONCE(slot == NONE))
		return NONE;
	store->free = store->next[slot];
	store->next[slot] = *bucket;
	*bucket = slot;
	store->unit[slot] = unit;
	store->valid[slot] = 0;
	store->used++;
	return slot;
}

static void release(struct store *store, u64 unit)
{
	u32 *link = bucket_of(store, unit), slot;

	while (*link != NONE && store->unit[*link] != unit)
		link = store->next + *link;
	slot = *link;
	if (slot == NONE)
		return;
	*link = store->next[slot];
	store->next[slot] = store->free;
	store->free = slot;
	store->used--;
}

static char *slot_memory(struct store *store, u32 slot)
{
	return store->slots + slot * UNIT_BYTES;
}

/* The sectors of a unit from one of them on, as a mask. */
static u8 mask(u32 from, u32 count)
{
	return ((1U << count) - 1) << from;
}

static void copy_valid(struct store *store, u32 slot, u32 from, u32 count, char *to)
{
	u32 i;

	for (i = from; i < from + count; i++)
		if (store->valid[slot] & 1U << i)
			copy(to + (i - from) * SECTOR_BYTES, slot_memory(store, slot) + i * SECTOR_BYTES, SECTOR_BYTES);
}

/* Of a slot that becomes free, what is valid. */
static void write_slot(struct store *store, u32 slot)
{
	u64 sector = store->unit[slot] * UNIT, behind = sector + UNIT;
	u32 from = 0;

	while (from < UNIT) {
		u64 end = behind;
		char *to = platter(store, sector + from, &end);
		u32 count = end - sector - from;

		if (to && store->valid[slot] == 0xff)
			copy(to, slot_memory(store, slot) + from * SECTOR_BYTES, count * SECTOR_BYTES);
		else if (to)
			copy_valid(store, slot, from, count, to);
		from += count;
	}
}

void store_written(struct store *store, u64 first, u64 end)
{
	u64 unit;

	for (unit = first / UNIT; unit < (end + UNIT - 1) / UNIT; unit++) {
		u32 slot = find(store, unit);

		if (slot == NONE)
			continue;
		write_slot(store, slot);
		release(store, unit);
	}
}

/* ---- requests ---- */

/* One unit's share of a request: `count` sectors from `sector` on. */
static void copy_unit(struct store *store, u64 sector, u32 count, char *host, char *disk, bool write, bool back)
{
	u32 from = sector % UNIT, slot;
	u64 bytes = count * SECTOR_BYTES;

	if (write && back) {
		slot = take(store, sector / UNIT);
		if (slot != NONE) {
			copy(slot_memory(store, slot) + from * SECTOR_BYTES, host, bytes);
			store->valid[slot] |= mask(from, count);
			return;
		}
	}
	slot = store->used ? find(store, sector / UNIT) : NONE;
	if (write) {
		copy(disk, host, bytes);
		if (slot != NONE)
			store->valid[slot] &= ~mask(from, count);
	} else if (slot != NONE && (store->valid[slot] & mask(from, count)) == mask(from, count)) {
		copy(host, slot_memory(store, slot) + from * SECTOR_BYTES, bytes);
	} else {
		copy(host, disk, bytes);
		if (slot != NONE)
			copy_valid(store, slot, from, count, host);
	}
}

/* Sectors behind which the memory is in one piece. */
static void copy_piece(struct store *store, u64 sector, u64 bytes, char *host, char *disk, bool write, bool back)
{
	if (!store->used && !back) {
		copy(write ? disk : host, write ? host : disk, bytes);
		return;
	}
	while (bytes) {
		u32 count = min_t(u64, UNIT - sector % UNIT, bytes / SECTOR_BYTES);

		copy_unit(store, sector, count, host, disk, write, back);
		sector += count;
		host += count * SECTOR_BYTES;
		disk += count * SECTOR_BYTES;
		bytes -= count * SECTOR_BYTES;
	}
}

/* The kernel merges requests of neighbouring partitions, and whoever has the whole drive asks for more than these. */
blk_status_t store_copy(struct store *store, struct request *rq, bool back)
{
	bool write = op_is_write(req_op(rq));
	u64 sector = blk_rq_pos(rq), end = sector;
	struct req_iterator iter;
	char *disk = NULL;
	struct bio_vec vec;

	rq_for_each_bvec(vec, rq, iter) {
		char *host = page_address(vec.bv_page) + vec.bv_offset;
		u64 left = vec.bv_len / SECTOR_BYTES;

		while (left) {
			u64 count, bytes;

			if (sector == end) {
				end = blk_rq_pos(rq) + blk_rq_sectors(rq);
				disk = platter(store, sector, &end);
				if (write && !disk)
					return BLK_STS_IOERR;
			}
			count = lesser(left, end - sector);
			bytes = count * SECTOR_BYTES;
			if (disk) {
				copy_piece(store, sector, bytes, host, disk, write, write && back);
				disk += bytes;
			} else {
				memset(host, 0, bytes);
			}
			host += bytes;
			sector += count;
			left -= count;
		}
	}
	return BLK_STS_OK;
}
