/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a power cut takes back: the platters' content from before the writes that are only in the write cache.
 *
 * No call into the kernel but memcpy: the host compiles the same file and tests it (tests/model).
 */
#ifndef AGEDRIVE_UNDO_H
#define AGEDRIVE_UNDO_H

#include "drive.h"

/* One record holds a unit, of which the sectors in its mask would be lost. */
struct undo {
	u32 record_count, used, free;
	char *before;
	u64 *unit;
	u32 *next;	/* in a bucket or in the list of free ones */
	u8 *lost;
	u32 *bucket;
	u32 bucket_mask;
};

/* The bytes of memory for a write cache of so many sectors; 0 where nothing can be lost. */
u64 undo_bytes(u64 cache_sectors);
void undo_init(struct undo *undo, u64 cache_sectors, void *memory);
/* Sectors are about to be overwritten by what stays in the cache; `was` is their content. False without room. */
bool undo_keep(struct undo *undo, u64 sector, u64 sectors, const char *was);
/* Sectors are overwritten past the cache: a cut leaves them as they are then. */
void undo_spare(struct undo *undo, u64 sector, u64 sectors);
/* Units of the cache have reached the platters. */
void undo_forget(struct undo *undo, u64 first, u64 end);
/* Hand out each sector that a cut takes back with its content from before, and forget them all. */
void undo_all(struct undo *undo, void (*back)(void *context, u64 sector, const char *was), void *context);

#endif
