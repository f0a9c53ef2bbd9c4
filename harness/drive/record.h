/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a drive was sent that changes it, in order, with its data: into physical memory that outlives the guest.
 *
 * A head of one sector, then for each write, flush and discard an entry of one sector and, of a write, its data. Between
 * them stands what has reached the platters, done when it has: a power cut leaves the disk without all that has not. The head alone says
 * how much there is: whoever writes its `end` and `entries` (a sector at a time) begins anew.
 */
#ifndef AGEDRIVE_RECORD_H
#define AGEDRIVE_RECORD_H

#include <linux/blk-mq.h>
#include "drive.h"

#define RECORD_MAGIC 0x64726f6365726761ULL	/* "agrecord" */

enum record_kind { RECORD_WRITE, RECORD_FUA, RECORD_FLUSH, RECORD_DISCARD, RECORD_KEPT };

struct record_head {
	u64 magic, end, entries, lost;	/* lost: entries for which there was no room */
};

struct record_entry {
	u64 kind, sector, sectors, arrived, done;	/* times are the drive's, in nanoseconds */
};

struct record {
	u64 physical, bytes;
	char *memory;	/* NULL: nothing is recorded */
};

int record_init(struct record *record);
/* A request that the drive has taken up, and when it will be done with it. Never sleeps. */
void record_request(struct record *record, struct request *rq, u64 arrived, u64 done);
/* These sectors of the cache, or of a write past it, are on the platters from that time on. */
void record_kept(struct record *record, u64 first, u64 end, u64 when);

#endif
