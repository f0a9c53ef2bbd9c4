/*
 * UFS2 as it lies on the disk, in the byte order of the PC (little-endian), and what its makers and checkers share.
 *
 * The layout is that of FreeBSD's sys/ufs/ffs/fs.h and sys/ufs/ufs/dinode.h of 2005, of which Linux's fs/ufs/ufs_fs.h
 * reads the same fields; names are theirs without the prefix. Fields that UFS2 no longer uses are called old.
 *
 * A filesystem is cut into groups (cylinder groups) of fpg fragments. A group begins with data, then come a copy of the
 * superblock (at sblkno), the group's own block with its maps (cblkno), its inodes (iblkno), and data again (dblkno).
 * In the first group what lies before the superblock's copy is for boot programs and the superblock itself; its data
 * begin with the summaries of all groups (csaddr). Addresses count fragments from the beginning of the filesystem.
 */
#ifndef AGELAB_UFS_H
#define AGELAB_UFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UFS_SUPER_AT 65536
#define UFS_SUPER_SIZE 8192
#define UFS_MAGIC 0x19540119
#define UFS_GROUP_MAGIC 0x090255
#define UFS_DIRECT 12
#define UFS_INDIRECT 3
#define UFS_ROOT 2
#define UFS_MAX_FRAG 8
#define UFS_MAX_CONTIG 16
#define UFS_DIRECTORY_BLOCK 512
#define UFS_FLAGS_MOVED 0x80

struct ufs_sum {
	uint32_t ndir, nbfree, nifree, nffree;
};

struct ufs_super {
	uint32_t old_link[2];
	int32_t sblkno, cblkno, iblkno, dblkno;
	int32_t old_place[5];
	uint32_t ncg;
	int32_t bsize, fsize, frag;
	int32_t minfree;
	int32_t old_rotation[2];
	int32_t bmask, fmask, bshift, fshift;
	int32_t maxcontig, maxbpg;
	int32_t fragshift, fsbtodb, sbsize;
	int32_t old_summary[2];
	int32_t nindir;
	uint32_t inopb;
	int32_t old_nspf, optim, old_track[3];
	uint32_t id[2];
	int32_t old_csaddr, cssize, cgsize;
	int32_t old_geometry[5];
	uint32_t ipg;
	int32_t fpg;
	struct ufs_sum old_cstotal;
	int8_t fmod, clean, ronly, old_flags;
	char fsmnt[468], volname[32];
	uint64_t swuid;
	int32_t pad, cgrotor;
	uint8_t pointers[128];
	int32_t old_cpc, maxbsize;
	int64_t spare64[17];
	int64_t sblockloc;
	struct {
		int64_t ndir, nbfree, nifree, nffree, numclusters, spare[3];
	} cstotal;
	int64_t time, size, dsize, csaddr;
	int64_t pendingblocks;
	uint32_t pendinginodes;
	uint32_t snapinum[20];
	uint32_t avgfilesize, avgfpdir;
	int32_t save_cgsize, spare32[26];
	int32_t flags, contigsumsize, maxsymlinklen, old_inodefmt;
	uint64_t maxfilesize;
	int64_t qbmask, qfmask;
	int32_t state, old_format[4];
	int32_t magic;
};

_Static_assert(offsetof(struct ufs_super, ipg) == 184, "superblock");
_Static_assert(offsetof(struct ufs_super, volname) == 680, "superblock");
_Static_assert(offsetof(struct ufs_super, sblockloc) == 1000, "superblock");
_Static_assert(offsetof(struct ufs_super, csaddr) == 1096, "superblock");
_Static_assert(offsetof(struct ufs_super, contigsumsize) == 1316, "superblock");
_Static_assert(offsetof(struct ufs_super, magic) == 1372, "superblock");
_Static_assert(sizeof(struct ufs_super) == 1376, "superblock");

struct ufs_group {
	uint32_t old_link, magic, old_time, cgx;
	uint16_t old_ncyl, old_niblk;
	uint32_t ndblk;
	struct ufs_sum cs;
	uint32_t rotor, frotor, irotor;
	uint32_t frsum[UFS_MAX_FRAG];
	uint32_t old_offset[2];
	uint32_t iusedoff, freeoff, nextfreeoff;
	uint32_t clustersumoff, clusteroff, nclusterblks;
	uint32_t niblk, initediblk;
	uint32_t spare32[3];
	int64_t time, spare64[3];
	/* Then the maps: inodes in use, free fragments, free blocks. */
};

_Static_assert(offsetof(struct ufs_group, iusedoff) == 92, "group");
_Static_assert(offsetof(struct ufs_group, time) == 136, "group");
_Static_assert(sizeof(struct ufs_group) == 168, "group");

struct ufs_inode {
	uint16_t mode, nlink;
	uint32_t uid, gid, blksize;
	uint64_t size, blocks;
	int64_t atime, mtime, ctime, birthtime;
	uint32_t mtimensec, atimensec, ctimensec, birthnsec;
	uint32_t gen, kernflags, flags, extsize;
	int64_t extb[2];
	int64_t db[UFS_DIRECT], ib[UFS_INDIRECT];
	uint64_t modrev, spare[2];
};

_Static_assert(offsetof(struct ufs_inode, db) == 112, "inode");
_Static_assert(sizeof(struct ufs_inode) == 256, "inode");

struct ufs_entry {
	uint32_t ino;
	uint16_t reclen;
	uint8_t type, namlen;
	char name[4];
};

static inline bool ufs_bit(const uint8_t *map, uint64_t at)
{
	return map[at / 8] >> (at % 8) & 1;
}

static inline void ufs_set(uint8_t *map, uint64_t at)
{
	map[at / 8] |= 1 << (at % 8);
}

/* What a group's block says of its map of free fragments besides the map. */
struct ufs_tally {
	uint32_t nbfree, nffree;
	uint32_t frsum[UFS_MAX_FRAG]; /* runs of that many free fragments in blocks that are not wholly free */
	uint32_t clustersum[UFS_MAX_CONTIG + 1]; /* runs of that many free blocks, the last: or more */
};

/* The same from the map; ``blocks``, where it is not NULL, gets a bit for each block that is wholly free. */
static inline struct ufs_tally ufs_tally(const struct ufs_super *super, const uint8_t *free, uint32_t fragments,
					 uint8_t *blocks)
{
	struct ufs_tally tally = { 0 };
	uint32_t frag = super->frag, longest = super->contigsumsize, cluster = 0;

	for (uint32_t block = 0; block * frag < fragments; block++) {
		uint32_t runs[UFS_MAX_FRAG + 1] = { 0 }, run = 0, count = 0;

		for (uint32_t i = block * frag; i < (block + 1) * frag; i++) {
			if (i < fragments && ufs_bit(free, i)) {
				run++;
				count++;
			} else {
				runs[run]++;
				run = 0;
			}
		}
		if (count == frag) {
			tally.nbfree++;
			cluster++;
			if (blocks)
				ufs_set(blocks, block);
			continue;
		}
		runs[run]++;
		tally.nffree += count;
		for (uint32_t length = 1; length < frag; length++)
			tally.frsum[length] += runs[length];
		if (cluster)
			tally.clustersum[cluster < longest ? cluster : longest]++;
		cluster = 0;
	}
	if (cluster)
		tally.clustersum[cluster < longest ? cluster : longest]++;
	return tally;
}

/* The first fragment of a group. */
static inline int64_t ufs_group_start(const struct ufs_super *super, uint32_t group)
{
	return (int64_t)super->fpg * group;
}

/* How many fragments a group has: the last one may have fewer. */
static inline uint32_t ufs_group_length(const struct ufs_super *super, uint32_t group)
{
	int64_t left = super->size - ufs_group_start(super, group);

	return left < super->fpg ? left : super->fpg;
}

/* The group's own fragments: from ``first`` up to the one before ``end``, counted in the group. */
static inline void ufs_own(const struct ufs_super *super, uint32_t group, uint32_t *first, uint32_t *end)
{
	*first = group ? super->sblkno : 0;
	*end = super->dblkno + (group ? 0 : super->cssize / super->fsize);
}
#endif
