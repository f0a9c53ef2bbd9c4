// SPDX-License-Identifier: GPL-2.0
#include <linux/io.h>
#include <asm/fpu/api.h>
#include "store.h"

/* ---- copying ---- */

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

/* 64 bytes in 8 instructions, by the widest moves that every 64-bit processor has. */
static __always_inline void copy_wide(u64 *to, const u64 *from)
{
	asm volatile("movups (%0), %%xmm0\n\tmovups 16(%0), %%xmm1\n\tmovups 32(%0), %%xmm2\n\tmovups 48(%0), %%xmm3\n\t"
		     "movups %%xmm0, (%1)\n\tmovups %%xmm1, 16(%1)\n\tmovups %%xmm2, 32(%1)\n\tmovups %%xmm3, 48(%1)"
		     : : "r"(from), "r"(to) : "memory");
}

/* Whole sectors. Emulators run such loops three times as fast as the processor's own string moves. */
#define COPY(move) \
	for (; from < end; from += 64, to += 64) { \
		move(to, from); \
		move(to + 8, from + 8); \
		move(to + 16, from + 16); \
		move(to + 24, from + 24); \
		move(to + 32, from + 32); \
		move(to + 40, from + 40); \
		move(to + 48, from + 48); \
		move(to + 56, from + 56); \
	}

static void copy(char *to_byte, const char *from_byte, u64 bytes, bool wide)
{
	u64 *to = (u64 *)to_byte;
	const u64 *from = (const u64 *)from_byte, *end = from + bytes / sizeof(u64);

	if (wide)
		COPY(copy_wide)
	else
		COPY(copy_words)
}

/* ---- the memory behind the drive ---- */

int store_init(struct store *store)
{
	u32 i;

	for (i = 0; i < store->window_count; i++) {
		struct window *window = store->windows + i;

		window->memory = memremap(window->physical, window->sectors * SECTOR_BYTES, MEMREMAP_WB);
		if (!window->memory)
			return -ENXIO;
	}
	return 0;
}

/* The memory behind a sector, or NULL; `end` is moved to where there is other memory, or some, or none. */
static char *memory_of(const struct store *store, u64 sector, u64 *end)
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

/* ---- requests ---- */

static blk_status_t copy_request(struct store *store, struct request *rq, bool wide)
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
				disk = memory_of(store, sector, &end);
				if (write && !disk)
					return BLK_STS_IOERR;
			}
			count = lesser(left, end - sector);
			bytes = count * SECTOR_BYTES;
			if (write)
				copy(disk, host, bytes, wide);
			else if (disk)
				copy(host, disk, bytes, wide);
			else
				memset(host, 0, bytes);
			if (disk)
				disk += bytes;
			host += bytes;
			sector += count;
			left -= count;
		}
	}
	return BLK_STS_OK;
}

/* The kernel merges requests of neighbouring partitions, and whoever has the whole drive asks for more than these. */
blk_status_t store_copy(struct store *store, struct request *rq)
{
	/* Not where this has interrupted someone who is at the wide registers. */
	bool wide = irq_fpu_usable();
	blk_status_t status;

	if (wide)
		kernel_fpu_begin();
	status = copy_request(store, rq, wide);
	if (wide)
		kernel_fpu_end();
	return status;
}
