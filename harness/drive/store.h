/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the host has written, and what a power cut takes back of it.
 *
 * All of it lies in physical memory that outlives the guest, whether it is on the platters or only in the write cache:
 * so data is copied once. Where a cut is planned, the content from before is kept of what is only in the cache.
 */
#ifndef AGEDRIVE_STORE_H
#define AGEDRIVE_STORE_H

#include <linux/blk-mq.h>
#include "drive.h"
#include "undo.h"

#define WINDOWS_MOST 8

/* A part of the drive that has memory behind it; the rest reads as zeros and cannot be written. */
struct window {
	u64 physical, first, sectors;
	char *memory;
};

struct store {
	struct window windows[WINDOWS_MOST];
	u32 window_count;
	u64 keeps_undo;		/* the setting `undo`: a power cut is planned */
	struct undo undo;
};

int store_init(struct store *store, u64 cache_sectors);
/* Copy a request's data; `back` says that a write stays in the cache. Never sleeps. */
blk_status_t store_copy(struct store *store, struct request *rq, bool back);
/* Sectors of the cache have reached the platters. */
void store_written(struct store *store, u64 first, u64 end);
/* The power is gone: what was only in the cache is as it was before. */
void store_cut(struct store *store);

#endif
