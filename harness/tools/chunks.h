/*
 * Where btrfs has its address space on the disk.
 *
 * What FIEMAP calls the physical place of an extent is an address in a space of the filesystem's own, which it lays
 * out on the disk in chunks. Of a chunk that is there twice (DUP) the first copy counts; one that is spread over
 * several devices has no single place.
 */
#ifndef CHUNKS_H
#define CHUNKS_H

#include <endian.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

struct chunk {
	uint64_t address, length, place;
	bool spread;
};

struct chunks {
	struct chunk *all;
	size_t count;
};

static inline struct chunk chunk_of(uint64_t address, const struct btrfs_chunk *item)
{
	const struct btrfs_stripe *stripes = &item->stripe;
	struct chunk chunk = {
		.address = address,
		.length = le64toh(item->length),
		.place = le64toh(stripes[0].offset),
	};

	for (int i = 1; i < le16toh(item->num_stripes); i++)
		chunk.spread |= stripes[i].devid != stripes[0].devid;
	return chunk;
}

/* All chunks of the filesystem that ``file`` is on, by address; only root may ask. -1 with errno if it fails. */
static inline int read_chunks(int file, struct chunks *chunks)
{
	struct btrfs_ioctl_search_args search;
	uint64_t from = 0;

	*chunks = (struct chunks){ 0 };
	for (;;) {
		const char *at = search.buf;

		search.key = (struct btrfs_ioctl_search_key){
			.tree_id = BTRFS_CHUNK_TREE_OBJECTID,
			.min_objectid = BTRFS_FIRST_CHUNK_TREE_OBJECTID,
			.max_objectid = BTRFS_FIRST_CHUNK_TREE_OBJECTID,
			.min_type = BTRFS_CHUNK_ITEM_KEY,
			.max_type = BTRFS_CHUNK_ITEM_KEY,
			.min_offset = from,
			.max_offset = UINT64_MAX,
			.max_transid = UINT64_MAX,
			.nr_items = UINT32_MAX,
		};
		if (ioctl(file, BTRFS_IOC_TREE_SEARCH, &search))
			return -1;
		if (!search.key.nr_items)
			return 0;
		chunks->all = realloc(chunks->all, (chunks->count + search.key.nr_items) * sizeof *chunks->all);
		if (!chunks->all)
			return -1;
		for (unsigned int i = 0; i < search.key.nr_items; i++) {
			struct btrfs_ioctl_search_header header;

			memcpy(&header, at, sizeof header);
			at += sizeof header;
			chunks->all[chunks->count++] = chunk_of(header.offset, (const struct btrfs_chunk *)at);
			at += header.len;
			from = header.offset + 1;
		}
	}
}

/* The chunk that an address is in, or NULL. */
static inline const struct chunk *find_chunk(const struct chunks *chunks, uint64_t address)
{
	size_t low = 0, high = chunks->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct chunk *chunk = &chunks->all[middle];

		if (address < chunk->address)
			high = middle;
		else if (address - chunk->address >= chunk->length)
			low = middle + 1;
		else
			return chunk;
	}
	return NULL;
}

#endif
