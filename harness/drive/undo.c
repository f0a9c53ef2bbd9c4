// SPDX-License-Identifier: GPL-2.0
#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif
#include "undo.h"

#define UNIT_BYTES (UNIT * SECTOR_BYTES)
#define NONE 0xffffffffU

static u32 bucket_count(u64 records)
{
	u32 count = 1;

	while (count < records)
		count *= 2;
	return count;
}

u64 undo_bytes(u64 cache_sectors)
{
	u64 records = cache_sectors / UNIT;

	if (!records)
		return 0;
	return records * (UNIT_BYTES + sizeof(u64) + sizeof(u32) + sizeof(u8)) + bucket_count(records) * sizeof(u32);
}

void undo_init(struct undo *undo, u64 cache_sectors, void *memory)
{
	u32 i, buckets;

	undo->record_count = cache_sectors / UNIT;
	if (!undo->record_count)
		return;
	buckets = bucket_count(undo->record_count);
	undo->bucket_mask = buckets - 1;
	undo->before = memory;
	undo->unit = (u64 *)(undo->before + undo->record_count * UNIT_BYTES);
	undo->next = (u32 *)(undo->unit + undo->record_count);
	undo->bucket = undo->next + undo->record_count;
	undo->lost = (u8 *)(undo->bucket + buckets);
	undo->used = undo->free = 0;
	memset(undo->bucket, 0xff, buckets * sizeof(u32));
	for (i = 0; i < undo->record_count; i++)
		undo->next[i] = i + 1 < undo->record_count ? i + 1 : NONE;
}

/* The link that leads to a unit's record, or to NONE. */
static u32 *find(struct undo *undo, u64 unit)
{
	/* Neighbours fall into neighbouring buckets. */
	u32 *link = undo->bucket + ((unit ^ unit >> 16) & undo->bucket_mask);

	while (*link != NONE && undo->unit[*link] != unit)
		link = undo->next + *link;
	return link;
}

static u32 take(struct undo *undo, u64 unit)
{
	u32 *link = find(undo, unit), record = *link;

	if (record != NONE || undo->free == NONE)
		return record;
	record = undo->free;
	undo->free = undo->next[record];
	undo->next[record] = NONE;
	*link = record;
	undo->unit[record] = unit;
	undo->lost[record] = 0;
	undo->used++;
	return record;
}

static void release(struct undo *undo, u32 *link)
{
	u32 record = *link;

	*link = undo->next[record];
	undo->next[record] = undo->free;
	undo->free = record;
	undo->used--;
}

static char *content(const struct undo *undo, u32 record, u32 sector)
{
	return undo->before + record * UNIT_BYTES + sector * SECTOR_BYTES;
}

bool undo_keep(struct undo *undo, u64 sector, u64 sectors, const char *was)
{
	u64 end = sector + sectors;

	for (; sector < end; sector++, was += SECTOR_BYTES) {
		u32 record = take(undo, sector / UNIT), bit = 1U << sector % UNIT;

		if (record == NONE)
			return false;
		/* What is lost already was on the platters before that, too. */
		if (!(undo->lost[record] & bit))
			memcpy(content(undo, record, sector % UNIT), was, SECTOR_BYTES);
		undo->lost[record] |= bit;
	}
	return true;
}

void undo_spare(struct undo *undo, u64 sector, u64 sectors)
{
	u64 end = sector + sectors;

	for (; undo->used && sector < end; sector++) {
		u32 record = *find(undo, sector / UNIT);

		if (record != NONE)
			undo->lost[record] &= ~(1U << sector % UNIT);
	}
}

void undo_forget(struct undo *undo, u64 first, u64 end)
{
	u64 unit;

	for (unit = first / UNIT; undo->used && unit < (end + UNIT - 1) / UNIT; unit++) {
		u32 *link = find(undo, unit);

		if (*link != NONE)
			release(undo, link);
	}
}

void undo_all(struct undo *undo, void (*back)(void *context, u64 sector, const char *was), void *context)
{
	u32 bucket, i;

	for (bucket = 0; undo->used && bucket <= undo->bucket_mask; bucket++) {
		while (undo->bucket[bucket] != NONE) {
			u32 record = undo->bucket[bucket];

			for (i = 0; i < UNIT; i++)
				if (undo->lost[record] & 1U << i)
					back(context, undo->unit[record] * UNIT + i, content(undo, record, i));
			release(undo, undo->bucket + bucket);
		}
	}
}
