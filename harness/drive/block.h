/* SPDX-License-Identifier: GPL-2.0 */
#ifndef AGEDRIVE_BLOCK_H
#define AGEDRIVE_BLOCK_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/spinlock.h>
#include "drive.h"
#include "record.h"
#include "store.h"

/* A modelled drive as a block device. */
struct block {
	struct drive drive;	/* first: the model's callback finds the block device by it */
	struct store store;
	u64 table;			/* where in physical memory a solid-state drive's map is */
	struct record record;
	char name[16];
	struct gendisk *disk;
	struct request_queue *queue;
	struct blk_mq_tag_set tags;
	spinlock_t lock;
	struct list_head waiting;	/* commands in the drive that it has not taken up */
	u32 depth;			/* how many there are in it */
	struct request *serving;	/* the one that it has; flash has any number */
	bool failed;			/* it does not answer, and those who ask give up */
	u64 given_up;			/* at this time, or at once after it */
	struct hrtimer background;	/* when the drive will have written something back by itself */
	struct list_head all;
};

/* Read the settings into the drive and the store. Returns 0 or an error, having said which word is wrong. */
int settings_parse(struct block *block, char *text);

#endif
