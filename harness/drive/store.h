/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the host has written, whether it is on the platters or only in the write cache: in physical memory that outlives
 * the guest.
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
};

int store_init(struct store *store);
/* Copy a request's data. Never sleeps. */
blk_status_t store_copy(struct store *store, struct request *rq);

#endif
