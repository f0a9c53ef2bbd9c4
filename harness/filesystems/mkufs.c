/*
 * mkufs [-b BLOCK] [-f FRAGMENT] [-a CLUSTER] -U UUID DEVICE: make an empty UFS2 on a block device or a file.
 *
 * No packaged tool of Linux makes one that Linux reads: makefs puts the superblock of a UFS2 at byte 8192, and Linux
 * looks for it at 65536, where FreeBSD's newfs puts it. This follows FreeBSD's newfs as of August 2005 (sbin/newfs,
 * newfs.c and mkfs.c 1.90): the same sizes, groups and counts for the same disk. Defaults are newfs' of then: blocks of
 * 16 KiB, fragments of 2 KiB, an inode for 8 KiB, 8 % kept for root, clusters of 8 blocks.
 *
 * Other than newfs: no directory .snap (its option -n); times are 1,000,000,000 and generation numbers 0 (its option -R
 * counts them up), so the same UUID and size make the same bytes; and the first 64 KiB, which newfs leaves to a boot
 * program, are zeroed, so that nothing is left there by which another filesystem would be recognised.
 */
#include "ufs.h"

#include <err.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIME 1000000000
#define BYTES_PER_INODE 8192
#define MIN_FREE_PERCENT 8
#define MIN_GROUPS 4
/* What newfs takes for the size of a group's header when it sees how much fits: of then, with padding. */
#define GROUP_HEADER 176

static int device;
static const char *name;
static struct ufs_super super;

static int64_t up_to(int64_t number, int64_t multiple)
{
	return (number + multiple - 1) / multiple * multiple;
}

static int log_2(uint32_t number)
{
	return __builtin_ctz(number);
}

static void put(const void *data, size_t size, int64_t at)
{
	const char *from = data;

	while (size) {
		ssize_t done = pwrite(device, from, size, at);

		if (done <= 0)
			err(1, "writing to %s", name);
		from += done;
		at += done;
		size -= done;
	}
}

static void *zeroed(size_t size)
{
	void *made = calloc(1, size);

	if (!made)
		err(1, "memory");
	return made;
}

static uint32_t bytes_for(uint32_t bits)
{
	return (bits + 7) / 8;
}

/* How long a group's block is. */
static int64_t group_bytes(uint32_t fpg, uint32_t ipg)
{
	return GROUP_HEADER + bytes_for(ipg) + bytes_for(fpg) + 4 + super.contigsumsize * 4 +
	       bytes_for(fpg / super.frag);
}

static uint32_t inodes_of(uint32_t fpg)
{
	uint32_t per_inode = BYTES_PER_INODE > super.fsize ? BYTES_PER_INODE / super.fsize : 1;

	return up_to((fpg + per_inode - 1) / per_inode, super.inopb);
}

/* The least fragments of a group with so many inodes: its own and no data. */
static uint32_t least(uint32_t ipg)
{
	return up_to(super.iblkno + ipg / (super.inopb / super.frag), super.frag);
}

static void size_groups(void)
{
	uint32_t fpg = BYTES_PER_INODE / super.fsize * super.inopb;

	if (fpg > super.size)
		fpg = super.size;
	for (int i = 0; i < 2; i++) {
		uint32_t own = least(i ? inodes_of(fpg) : super.inopb);

		fpg = fpg > own ? fpg : own;
	}
	/* As many in a group as its block has room for, so long as there are four groups. */
	while (super.size / fpg >= MIN_GROUPS && group_bytes(fpg, inodes_of(fpg)) < super.bsize)
		fpg += super.frag;
	if (group_bytes(fpg, inodes_of(fpg)) > super.bsize)
		fpg -= super.frag;
	/* A last group that had no room for its inodes gets some of the others' fragments. */
	while (super.size % fpg && super.size % fpg < least(inodes_of(fpg))) {
		fpg -= super.frag;
		if (fpg < least(super.inopb))
			errx(1, "%s is too small", name);
	}
	super.fpg = fpg;
	super.ipg = inodes_of(fpg);
	super.ncg = (super.size + fpg - 1) / fpg;
	super.cgsize = up_to(group_bytes(fpg, super.ipg), super.fsize);
	super.dblkno = super.iblkno + super.ipg / (super.inopb / super.frag);
}

static void fill_super(int64_t bytes, uint32_t block, uint32_t fragment, uint32_t cluster)
{
	int64_t reach;

	super.bsize = super.maxbsize = block;
	super.fsize = fragment;
	super.frag = block / fragment;
	super.bmask = -(int32_t)block;
	super.fmask = -(int32_t)fragment;
	super.qbmask = block - 1;
	super.qfmask = fragment - 1;
	super.bshift = log_2(block);
	super.fshift = log_2(fragment);
	super.fragshift = log_2(super.frag);
	super.fsbtodb = super.fshift - 9;
	super.maxcontig = cluster;
	super.contigsumsize = cluster > 1 ? cluster : 0;
	super.size = bytes / fragment;
	super.sblockloc = UFS_SUPER_AT;
	super.nindir = block / sizeof(int64_t);
	super.inopb = block / sizeof(struct ufs_inode);
	super.maxsymlinklen = (UFS_DIRECT + UFS_INDIRECT) * sizeof(int64_t);
	super.sblkno = up_to(UFS_SUPER_AT + UFS_SUPER_SIZE, block) / fragment;
	super.cblkno = super.sblkno + up_to(UFS_SUPER_SIZE, block) / fragment;
	super.iblkno = super.cblkno + super.frag;
	super.maxfilesize = (uint64_t)block * UFS_DIRECT - 1;
	reach = block;
	for (int i = 0; i < UFS_INDIRECT; i++) {
		reach *= super.nindir;
		super.maxfilesize += reach;
	}
	if (super.size < super.iblkno + super.frag)
		errx(1, "%s is too small", name);
	size_groups();
	super.csaddr = super.dblkno;
	super.cssize = up_to(super.ncg * sizeof(struct ufs_sum), fragment);
	super.sbsize = up_to(sizeof super, fragment);
	if (super.sbsize > UFS_SUPER_SIZE)
		super.sbsize = UFS_SUPER_SIZE;
	super.dsize = super.size - super.sblkno - (int64_t)super.ncg * (super.dblkno - super.sblkno) -
		      super.cssize / fragment;
	super.minfree = MIN_FREE_PERCENT;
	super.maxbpg = super.nindir;
	super.avgfilesize = 16384;
	super.avgfpdir = 64;
	super.old_flags = (int8_t)UFS_FLAGS_MOVED;
	super.clean = 1;
	super.time = TIME;
	super.magic = UFS_MAGIC;
}

/* The group's block and its first inodes; of the first group with the root directory in use. */
static void make_group(uint32_t number, uint32_t root, struct ufs_sum *sum)
{
	struct ufs_group *group = zeroed(super.bsize);
	uint8_t *bytes = (uint8_t *)group, *inodes = zeroed(2 * super.bsize);
	int64_t at = ufs_group_start(&super, number);
	uint32_t first, end;
	struct ufs_tally tally;

	ufs_own(&super, number, &first, &end);
	group->magic = UFS_GROUP_MAGIC;
	group->time = TIME;
	group->cgx = number;
	group->niblk = super.ipg;
	group->initediblk = super.ipg < 2 * super.inopb ? super.ipg : 2 * super.inopb;
	group->ndblk = ufs_group_length(&super, number);
	group->iusedoff = sizeof *group;
	group->freeoff = group->iusedoff + bytes_for(super.ipg);
	group->nextfreeoff = group->freeoff + bytes_for(super.fpg);
	if (super.contigsumsize) {
		group->nclusterblks = group->ndblk / super.frag;
		/* Counted from a run of 0 blocks, for which there is no room. */
		group->clustersumoff = up_to(group->nextfreeoff, 4) - 4;
		group->clusteroff = group->clustersumoff + (super.contigsumsize + 1) * 4;
		group->nextfreeoff = group->clusteroff + bytes_for(super.fpg / super.frag);
	}
	group->cs.nifree = super.ipg;
	for (uint32_t i = 0; i < group->ndblk; i++)
		if ((i < first || i >= end) && (number || i != root))
			ufs_set(bytes + group->freeoff, i);
	if (!number) {
		/* Inodes 0 and 1 are never given to a file. */
		for (uint32_t i = 0; i <= UFS_ROOT; i++)
			ufs_set(bytes + group->iusedoff, i);
		group->cs.nifree -= UFS_ROOT + 1;
		group->cs.ndir = 1;
		((struct ufs_inode *)inodes)[UFS_ROOT] = (struct ufs_inode){
			.mode = S_IFDIR | 0755, .nlink = 2, .size = UFS_DIRECTORY_BLOCK, .blocks = super.fsize / 512,
			.atime = TIME, .mtime = TIME, .ctime = TIME, .birthtime = TIME, .db = { root },
		};
	}
	tally = ufs_tally(&super, bytes + group->freeoff, group->ndblk,
			  super.contigsumsize ? bytes + group->clusteroff : NULL);
	group->cs.nbfree = tally.nbfree;
	group->cs.nffree = tally.nffree;
	memcpy(group->frsum, tally.frsum, sizeof group->frsum);
	for (int i = 1; i <= super.contigsumsize; i++)
		memcpy(bytes + group->clustersumoff + 4 * i, &tally.clustersum[i], 4);
	put(group, super.bsize, (at + super.cblkno) * super.fsize);
	put(inodes, group->initediblk * sizeof(struct ufs_inode), (at + super.iblkno) * super.fsize);
	*sum = group->cs;
	free(group);
	free(inodes);
}

static void make_root(uint32_t root)
{
	static const struct ufs_entry here = { UFS_ROOT, 12, 4, 1, "." };
	static const struct ufs_entry above = { UFS_ROOT, UFS_DIRECTORY_BLOCK - 12, 4, 2, ".." };
	uint8_t *data = zeroed(super.fsize);

	memcpy(data, &here, sizeof here);
	memcpy(data + here.reclen, &above, sizeof above);
	put(data, super.fsize, (int64_t)root * super.fsize);
	free(data);
}

static void make(void)
{
	struct ufs_sum *sums = zeroed(super.cssize);
	uint8_t *copy = zeroed(UFS_SUPER_AT);
	/* The first whole block behind the groups' summaries. */
	uint32_t root = up_to(super.dblkno + super.cssize / super.fsize, super.frag);

	if (root + super.frag > ufs_group_length(&super, 0))
		errx(1, "%s is too small", name);
	put(copy, UFS_SUPER_AT, 0);
	for (uint32_t i = 0; i < super.ncg; i++) {
		make_group(i, root, &sums[i]);
		super.cstotal.ndir += sums[i].ndir;
		super.cstotal.nbfree += sums[i].nbfree;
		super.cstotal.nifree += sums[i].nifree;
		super.cstotal.nffree += sums[i].nffree;
	}
	make_root(root);
	put(sums, super.cssize, super.csaddr * super.fsize);
	memcpy(copy, &super, sizeof super);
	for (uint32_t i = 0; i < super.ncg; i++)
		put(copy, UFS_SUPER_SIZE, (ufs_group_start(&super, i) + super.sblkno) * super.fsize);
	put(copy, UFS_SUPER_SIZE, UFS_SUPER_AT);
	free(copy);
	free(sums);
}

static int64_t size_of_device(void)
{
	struct stat stat;
	uint64_t size;

	if (fstat(device, &stat))
		err(1, "%s", name);
	if (!S_ISBLK(stat.st_mode))
		return stat.st_size;
	if (ioctl(device, BLKGETSIZE64, &size))
		err(1, "%s", name);
	return size;
}

/* A power of 2 from ``from`` to ``to``. */
static uint32_t power(const char *text, uint32_t from, uint32_t to)
{
	uint32_t number = strtoul(text, NULL, 10);

	if (number < from || number > to || number & (number - 1))
		errx(2, "%s is no power of 2 from %u to %u", text, from, to);
	return number;
}

_Noreturn static void usage(void)
{
	fprintf(stderr, "usage: mkufs [-b BLOCK] [-f FRAGMENT] [-a CLUSTER] -U UUID DEVICE\n");
	exit(2);
}

int main(int argc, char **argv)
{
	uint32_t block = 16384, fragment = 2048, cluster = 8;
	const char *uuid = NULL;
	int option;

	while ((option = getopt(argc, argv, "b:f:a:U:")) != -1) {
		if (option == 'b')
			block = power(optarg, 4096, 65536);
		else if (option == 'f')
			fragment = power(optarg, 512, 4096); /* Linux takes no larger ones */
		else if (option == 'a')
			cluster = power(optarg, 1, UFS_MAX_CONTIG);
		else if (option == 'U')
			uuid = optarg;
		else
			usage();
	}
	if (optind != argc - 1 || !uuid)
		usage();
	if (fragment > block || block / fragment > UFS_MAX_FRAG)
		errx(2, "a block has 1 to %d fragments", UFS_MAX_FRAG);
	/* There is room for 64 bits of it: its ends. */
	if (strlen(uuid) != 36 || sscanf(uuid, "%8x-%*4x-%*4x-%*4x-%*4x%8x", &super.id[0], &super.id[1]) != 2)
		errx(2, "%s is no UUID", uuid);
	name = argv[optind];
	device = open(name, O_RDWR | O_CLOEXEC);
	if (device < 0)
		err(1, "%s", name);
	fill_super(size_of_device(), block, fragment, cluster);
	make();
	if (fsync(device) || close(device))
		err(1, "writing to %s", name);
	printf("%s: UFS2, %u groups of %d fragments and %u inodes\n", name, super.ncg, super.fpg, super.ipg);
	return 0;
}
