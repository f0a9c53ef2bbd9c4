/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is on the platters, and what is only in the write cache.
 *
 * The platters are physical memory that outlives the guest; the cache is the guest's own, so a power cut loses it.
 */
#ifndef AGEDRIVE_STORE_H
#define AGEDRIVE_STORE_H

#include <linux/blk-mq.h>
#include "drive.h"

#define WINDOWS_MOST 8

/* A part of the drive that has memory behind it; the rest reads as zeros and cannot be written. */
struct window {
	u64 physical, first, sectors;
	char *memory;
};

struct store {
	struct window windows[WINDOWS_MOST];
	u32 window_count;
	/* The cache: one slot holds a unit, of which the sectors in its mask are valid. */
	u32 slot_count, used, free;
	char *slots;
	u64 *unit;
	u32 *next;	/* in a bucket or in the list of free ones */
	u8 *valid;
	u32 *bucket;
	u32 bucket_mask;
};

int store_init(struct store *store, u64 cache_sectors);
/* Copy a request's data; `back` says that a write stays in the cache. Never sleeps. */
blk_status_t store_copy(struct store *store, struct request *rq, bool back);
/* Sectors of the cache have reached the platters. */
void store_written(struct store *store, u64 first, u64 end);

#endif
