// SPDX-License-Identifier: GPL-2.0
#include <linux/io.h>
#include <linux/string.h>
#include "record.h"

int record_init(struct record *record)
{
	struct record_head *head;

	if (!record->bytes)
		return 0;
	record->memory = memremap(record->physical, record->bytes, MEMREMAP_WB);
	if (!record->memory)
		return -ENXIO;
	head = (struct record_head *)record->memory;
	*head = (struct record_head){ .magic = RECORD_MAGIC, .end = SECTOR_BYTES };
	return 0;
}

static enum record_kind kind_of(const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		return RECORD_FLUSH;
	case REQ_OP_WRITE:
		return rq->cmd_flags & REQ_FUA ? RECORD_FUA : RECORD_WRITE;
	default:
		return RECORD_DISCARD;
	}
}

/* Where the data of a new entry goes; NULL without room. */
static char *add(struct record *record, const struct record_entry *entry, u64 bytes)
{
	struct record_head *head = (struct record_head *)record->memory;
	char *to = record->memory + head->end;

	if (head->end + SECTOR_BYTES + bytes > record->bytes) {
		head->lost++;
		return NULL;
	}
	memset(to, 0, SECTOR_BYTES);
	memcpy(to, entry, sizeof(*entry));
	head->end += SECTOR_BYTES + bytes;
	head->entries++;
	return to + SECTOR_BYTES;
}

void record_request(struct record *record, struct request *rq, u64 arrived, u64 done)
{
	struct record_entry entry = { .arrived = arrived, .done = done };
	struct req_iterator iter;
	struct bio_vec vec;
	u64 bytes;
	char *to;

	if (!record->memory || req_op(rq) == REQ_OP_READ)
		return;
	entry.kind = kind_of(rq);
	if (entry.kind != RECORD_FLUSH) {
		entry.sector = blk_rq_pos(rq);
		entry.sectors = blk_rq_sectors(rq);
	}
	bytes = entry.kind <= RECORD_FUA ? entry.sectors * SECTOR_BYTES : 0;
	to = add(record, &entry, bytes);
	if (!to || !bytes)
		return;
	rq_for_each_bvec(vec, rq, iter) {
		memcpy(to, page_address(vec.bv_page) + vec.bv_offset, vec.bv_len);
		to += vec.bv_len;
	}
}

void record_kept(struct record *record, u64 first, u64 end, u64 when)
{
	struct record_entry entry = { .kind = RECORD_KEPT, .sector = first, .sectors = end - first, .done = when };

	if (record->memory)
		add(record, &entry, 0);
}
