/*
 * checkufs [--free] DEVICE: whether a UFS2 agrees with itself, or where its space is free. It changes nothing.
 *
 * Debian has no fsck for UFS. What FreeBSD's fsck_ffs looks for in its five passes is looked for here: inodes, their
 * blocks and sizes; names in directories; where directories hang; counts of links; each group's maps and counts, and
 * their sums. Exit status 0: nothing is wrong; 4: something is, and the first things are told; 1: it cannot be read.
 *
 * --free prints, in bytes:
 *	agelab-ufs 1 <fragment> <size of the filesystem> <free, as the superblock has it>
 *	F <start> <length>	free fragments, neighbours in a group joined
 *	M <start> <length>	superblock and its copies, groups' blocks, inodes, summaries
 */
#include "ufs.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOLD 20
#define DAMAGED 4

/* What is known of an inode after the first pass. */
struct known {
	uint16_t mode, nlink;
	uint32_t links; /* names that were found for it */
	uint32_t above, holder; /* of a directory: what its .. says, and where its name is */
};

static int device;
static const char *name;
static struct ufs_super super;
static uint64_t wrong, inodes, used;
static uint8_t *claimed; /* a bit for each fragment that is something's */
static struct known *known;

static void __attribute__((format(printf, 1, 2))) tell(const char *format, ...)
{
	va_list values;

	if (wrong++ >= TOLD)
		return;
	va_start(values, format);
	vprintf(format, values);
	va_end(values);
	putchar('\n');
}

static void *zeroed(uint64_t size)
{
	void *made = calloc(1, size);

	if (!made)
		err(1, "memory");
	return made;
}

static void get(void *data, size_t size, int64_t at)
{
	char *to = data;

	while (size) {
		ssize_t done = pread(device, to, size, at);

		if (done < 0)
			err(1, "reading %s", name);
		if (!done)
			errx(1, "%s ends before byte %" PRId64, name, at);
		to += done;
		at += done;
		size -= done;
	}
}

static bool power_of_two(int32_t number, int32_t from, int32_t to)
{
	return number >= from && number <= to && !(number & (number - 1));
}

static void read_super(void)
{
	get(&super, sizeof super, UFS_SUPER_AT);
	if (super.magic != UFS_MAGIC)
		errx(1, "%s has no UFS2 at byte %d", name, UFS_SUPER_AT);
	if (!power_of_two(super.bsize, 4096, 65536) || !power_of_two(super.fsize, 512, 65536) ||
	    super.fsize > super.bsize || super.frag != super.bsize / super.fsize || super.frag > UFS_MAX_FRAG ||
	    super.inopb != super.bsize / sizeof(struct ufs_inode) || super.nindir != super.bsize / 8 ||
	    super.contigsumsize < 0 || super.contigsumsize > UFS_MAX_CONTIG || super.cgsize > super.bsize ||
	    super.cgsize < (int32_t)sizeof(struct ufs_group) || super.sblkno <= 0 || super.cblkno <= super.sblkno ||
	    super.iblkno <= super.cblkno || super.dblkno <= super.iblkno || super.fpg < super.dblkno ||
	    !super.ncg || super.size <= (int64_t)super.fpg * (super.ncg - 1) ||
	    super.size > (int64_t)super.fpg * super.ncg || super.size > UINT32_MAX || super.ipg % super.inopb ||
	    super.iblkno + super.ipg / super.inopb * super.frag > (uint32_t)super.dblkno ||
	    super.cssize < (int64_t)(super.ncg * sizeof(struct ufs_sum)) || super.csaddr != super.dblkno)
		errx(1, "%s: its superblock contradicts itself", name);
}

/* A group's block, whose maps are all within it. */
static struct ufs_group *read_group(uint32_t number)
{
	struct ufs_group *group = zeroed(super.bsize);
	uint32_t size = super.cgsize, blocks = (super.fpg / super.frag + 7) / 8;

	get(group, super.cgsize, (ufs_group_start(&super, number) + super.cblkno) * super.fsize);
	if (group->magic != UFS_GROUP_MAGIC || group->cgx != number || group->niblk != super.ipg ||
	    group->ndblk != ufs_group_length(&super, number) || group->initediblk > super.ipg ||
	    group->iusedoff < sizeof *group || group->iusedoff > size || (super.ipg + 7) / 8 > size - group->iusedoff ||
	    group->freeoff > size || (super.fpg + 7) / 8u > size - group->freeoff)
		errx(DAMAGED, "%s: the block of group %u is damaged", name, number);
	if (super.contigsumsize &&
	    (group->clustersumoff > size || (super.contigsumsize + 1) * 4u > size - group->clustersumoff ||
	     group->clusteroff > size || blocks > size - group->clusteroff))
		errx(DAMAGED, "%s: the block of group %u is damaged", name, number);
	return group;
}

/* What an inode holds, block after block. */
struct walk {
	uint32_t number;
	uint64_t blocks, size; /* of data */
	uint64_t held; /* fragments, those of indirect blocks too */
	uint8_t *content; /* where it goes, of a directory; its blocks were looked at before */
};

/* Take fragments for an inode; false where they are not its to have. */
static bool claim(const struct walk *walk, int64_t first, uint32_t count)
{
	uint32_t group = first / super.fpg, own_first, own_end, in_group = first % super.fpg, inode = walk->number;

	if (walk->content)
		return first > 0 && first + count <= super.size;
	if (first <= 0 || first + count > super.size || in_group + count > (uint32_t)super.fpg) {
		tell("inode %u: %u fragments at %" PRId64 " lie outside the filesystem or in two groups", inode, count, first);
		return false;
	}
	if (first % super.frag + count > (uint32_t)super.frag)
		tell("inode %u: %u fragments at %" PRId64 " lie in two blocks", inode, count, first);
	ufs_own(&super, group, &own_first, &own_end);
	if (in_group < own_end && in_group + count > own_first) {
		tell("inode %u: fragment %" PRId64 " is group %u's own", inode, first, group);
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (ufs_bit(claimed, first + i))
			tell("inode %u: fragment %" PRId64 " is another's too", inode, first + i);
		ufs_set(claimed, first + i);
	}
	used += count;
	return true;
}

static void walk_block(struct walk *walk, uint64_t block, int64_t address, bool direct)
{
	uint32_t count = super.frag;

	if (!address)
		return;
	if (block >= walk->blocks) {
		if (walk->content)
			return;
		tell("inode %u: block %" PRIu64 " lies behind its end", walk->number, block);
	} else if (direct && block == walk->blocks - 1) {
		uint64_t tail = walk->size - block * super.bsize;

		count = (tail + super.fsize - 1) / super.fsize;
	}
	if (!claim(walk, address, count))
		return;
	walk->held += count;
	if (walk->content)
		get(walk->content + block * super.bsize, (size_t)count * super.fsize, address * super.fsize);
}

static void walk_indirect(struct walk *walk, uint64_t first, int64_t address, int level)
{
	uint64_t reach = 1;
	int64_t *addresses;

	if (!address || !claim(walk, address, super.frag))
		return;
	walk->held += super.frag;
	for (int i = 1; i < level; i++)
		reach *= super.nindir;
	addresses = zeroed(super.bsize);
	get(addresses, super.bsize, address * super.fsize);
	for (int i = 0; i < super.nindir; i++) {
		if (level == 1)
			walk_block(walk, first + i, addresses[i], false);
		else
			walk_indirect(walk, first + i * reach, addresses[i], level - 1);
	}
	free(addresses);
}

static void walk_inode(struct walk *walk, const struct ufs_inode *inode)
{
	uint64_t first = UFS_DIRECT, reach = 1;

	walk->size = inode->size;
	walk->blocks = (inode->size + super.bsize - 1) / super.bsize;
	for (int i = 0; i < UFS_DIRECT; i++)
		walk_block(walk, i, inode->db[i], true);
	for (int level = 1; level <= UFS_INDIRECT; level++) {
		reach *= super.nindir;
		walk_indirect(walk, first, inode->ib[level - 1], level);
		first += reach;
	}
	if (!walk->content && walk->held * super.fsize != inode->blocks * 512)
		tell("inode %u says that it holds %" PRIu64 " sectors, and holds %" PRIu64, walk->number, inode->blocks,
		     walk->held * super.fsize / 512);
}

static void check_inode(uint32_t number, const struct ufs_inode *inode)
{
	struct walk walk = { .number = number };
	unsigned int type = inode->mode & S_IFMT;
	bool holds = type == S_IFREG || type == S_IFDIR || type == S_IFLNK;

	known[number] = (struct known){ .mode = inode->mode, .nlink = inode->nlink };
	inodes++;
	if (!holds && type != S_IFCHR && type != S_IFBLK && type != S_IFIFO && type != S_IFSOCK) {
		tell("inode %u has mode %o", number, inode->mode);
		return;
	}
	if (inode->size > super.maxfilesize) {
		tell("inode %u has %" PRIu64 " bytes", number, inode->size);
		return;
	}
	if (type == S_IFDIR && (!inode->size || inode->size % UFS_DIRECTORY_BLOCK))
		tell("directory %u has %" PRIu64 " bytes", number, inode->size);
	/* A device's numbers, and a short link's target, stand in the addresses' place. */
	if (holds && !(type == S_IFLNK && inode->size < (uint64_t)super.maxsymlinklen && !inode->blocks))
		walk_inode(&walk, inode);
	else if (inode->blocks)
		tell("inode %u holds %" PRIu64 " sectors and needs none", number, inode->blocks);
}

/* Each inode of a group to ``each``; those that are in use by its map, and are ones. */
static void for_inodes(uint32_t group_number, const struct ufs_group *group, bool directories,
		       void (*each)(uint32_t, const struct ufs_inode *))
{
	const uint8_t *in_use = (const uint8_t *)group + group->iusedoff;
	struct ufs_inode *table = zeroed(super.bsize);
	int64_t at = ufs_group_start(&super, group_number) + super.iblkno;

	for (uint32_t i = 0; i < super.ipg; i++) {
		uint32_t number = group_number * super.ipg + i, in_block = i % super.inopb;

		if (i < group->initediblk && !in_block)
			get(table, super.bsize, (at + i / super.inopb * super.frag) * super.fsize);
		if (number < UFS_ROOT)
			continue;
		if (directories) {
			if (S_ISDIR(known[number].mode))
				each(number, &table[in_block]);
			continue;
		}
		if (i >= group->initediblk) {
			if (ufs_bit(in_use, i))
				tell("inode %u is in use and was never written", number);
		} else if (ufs_bit(in_use, i)) {
			each(number, &table[in_block]);
		} else if (table[in_block].mode) {
			tell("inode %u has mode %o and is not in use", number, table[in_block].mode);
		}
	}
	free(table);
}

static void check_entry(uint32_t directory, const struct ufs_entry *entry, unsigned int position)
{
	const char *text = entry->name;
	uint32_t ino = entry->ino;
	bool here = entry->namlen == 1 && !memcmp(text, ".", 1), above = entry->namlen == 2 && !memcmp(text, "..", 2);

	if (here != (position == 0) || above != (position == 1))
		tell("directory %u does not begin with . and ..", directory);
	if (ino < UFS_ROOT || ino >= super.ncg * super.ipg || !known[ino].mode) {
		tell("directory %u: %.*s is inode %u, which is none", directory, entry->namlen, text, ino);
		return;
	}
	if (entry->type && entry->type != known[ino].mode >> 12)
		tell("directory %u: %.*s says type %u, its inode %o", directory, entry->namlen, text, entry->type,
		     known[ino].mode);
	known[ino].links++;
	if (here && ino != directory)
		tell("directory %u: . is inode %u", directory, ino);
	else if (above)
		known[directory].above = ino;
	else if (!here && S_ISDIR(known[ino].mode))
		known[ino].holder = directory;
}

static void check_directory(uint32_t number, const struct ufs_inode *inode)
{
	struct walk walk = { .number = number };
	unsigned int position = 0;

	if (inode->size > (uint64_t)super.size * super.fsize)
		return; /* its blocks contradict that, which was told */
	walk.content = zeroed((inode->size / super.bsize + 1) * super.bsize);
	walk_inode(&walk, inode);
	for (uint64_t at = 0; at < inode->size;) {
		const struct ufs_entry *entry = (const void *)(walk.content + at);
		uint64_t left = UFS_DIRECTORY_BLOCK - at % UFS_DIRECTORY_BLOCK;

		if (entry->reclen < 12 || entry->reclen % 4 || entry->reclen > left ||
		    offsetof(struct ufs_entry, name) + entry->namlen + 1 > entry->reclen) {
			tell("directory %u is damaged at byte %" PRIu64, number, at);
			break;
		}
		if (entry->ino)
			check_entry(number, entry, position++);
		at += entry->reclen;
	}
	free(walk.content);
}

static void check_links(void)
{
	for (uint32_t i = UFS_ROOT; i < super.ncg * super.ipg; i++)
		if (known[i].mode && known[i].nlink != known[i].links)
			tell("inode %u says that it has %u links, and has %u", i, known[i].nlink, known[i].links);
	for (uint32_t i = UFS_ROOT; i < super.ncg * super.ipg; i++) {
		uint32_t at = i, steps = 0;

		if (!S_ISDIR(known[i].mode))
			continue;
		if (i != UFS_ROOT && known[i].above != known[i].holder)
			tell("directory %u is in directory %u, its .. says %u", i, known[i].holder, known[i].above);
		while (at > UFS_ROOT && steps++ < super.ncg * super.ipg)
			at = known[at].holder;
		if (at != UFS_ROOT)
			tell("directory %u does not hang from the root", i);
	}
}

static void check_map(uint32_t number, const struct ufs_group *group, const uint8_t *free)
{
	int64_t start = ufs_group_start(&super, number);
	uint32_t first, end, lost = 0;

	ufs_own(&super, number, &first, &end);
	for (uint32_t i = 0; i < group->ndblk; i++) {
		bool taken = (i >= first && i < end) || ufs_bit(claimed, start + i);

		if (taken && ufs_bit(free, i))
			tell("fragment %" PRId64 " is in use, and free in the map of group %u", start + i, number);
		else if (!taken && !ufs_bit(free, i))
			lost++;
	}
	if (lost)
		tell("%u fragments of group %u are not free and nobody's", lost, number);
}

static void check_sum(const char *whose, uint32_t number, const struct ufs_sum *says, const struct ufs_sum *is)
{
	if (memcmp(says, is, sizeof *is))
		tell("%s %u says: directories %u, blocks %u, inodes %u, fragments %u free; they are %u, %u, %u, %u", whose,
		     number, says->ndir, says->nbfree, says->nifree, says->nffree, is->ndir, is->nbfree, is->nifree,
		     is->nffree);
}

static struct ufs_sum check_group(uint32_t number, const struct ufs_group *group)
{
	const uint8_t *bytes = (const uint8_t *)group, *free_map = bytes + group->freeoff;
	uint8_t *blocks = zeroed(super.bsize);
	struct ufs_tally tally = ufs_tally(&super, free_map, group->ndblk, blocks);
	struct ufs_sum sum = { .nbfree = tally.nbfree, .nffree = tally.nffree };

	for (uint32_t i = 0; i < super.ipg; i++) {
		sum.nifree += !ufs_bit(bytes + group->iusedoff, i);
		sum.ndir += S_ISDIR(known[number * super.ipg + i].mode);
	}
	check_map(number, group, free_map);
	check_sum("group", number, &group->cs, &sum);
	if (memcmp(group->frsum, tally.frsum, sizeof tally.frsum))
		tell("group %u counts its runs of free fragments wrongly", number);
	if (super.contigsumsize) {
		if (memcmp(bytes + group->clusteroff, blocks, (super.fpg / super.frag + 7) / 8))
			tell("group %u: its map of free blocks is not that of its free fragments", number);
		if (memcmp(bytes + group->clustersumoff + 4, &tally.clustersum[1], super.contigsumsize * 4))
			tell("group %u counts its clusters wrongly", number);
	}
	free(blocks);
	return sum;
}

static void check(void)
{
	struct ufs_group **groups = zeroed(super.ncg * sizeof(void *));
	struct ufs_sum *sums = zeroed(super.cssize);
	int64_t total[4] = { 0 };
	const int64_t says[] = { super.cstotal.ndir, super.cstotal.nbfree, super.cstotal.nifree, super.cstotal.nffree };
	static const char *const what[] = { "directories", "free blocks", "free inodes", "free fragments" };

	claimed = zeroed((super.size + 7) / 8);
	known = zeroed((uint64_t)super.ncg * super.ipg * sizeof *known);
	get(sums, super.cssize, super.csaddr * super.fsize);
	for (uint32_t i = 0; i < super.ncg; i++) {
		groups[i] = read_group(i);
		for_inodes(i, groups[i], false, check_inode);
	}
	if (!S_ISDIR(known[UFS_ROOT].mode))
		tell("inode %d is no directory", UFS_ROOT);
	for (uint32_t i = 0; i < super.ncg; i++)
		for_inodes(i, groups[i], true, check_directory);
	check_links();
	for (uint32_t i = 0; i < super.ncg; i++) {
		struct ufs_sum sum = check_group(i, groups[i]);

		check_sum("the summary of group", i, &sums[i], &sum);
		total[0] += sum.ndir;
		total[1] += sum.nbfree;
		total[2] += sum.nifree;
		total[3] += sum.nffree;
		free(groups[i]);
	}
	for (int i = 0; i < 4; i++)
		if (says[i] != total[i])
			tell("the superblock has %" PRId64 " %s, there are %" PRId64, says[i], what[i], total[i]);
	if (super.clean != 1)
		tell("it is not marked clean");
	free(groups);
	free(sums);
	free(claimed);
	free(known);
}

static void print_run(char kind, uint32_t group, uint32_t first, uint32_t end)
{
	if (end > first)
		printf("%c %" PRId64 " %" PRId64 "\n", kind, (ufs_group_start(&super, group) + first) * super.fsize,
		       (int64_t)(end - first) * super.fsize);
}

static void print_free(void)
{
	printf("agelab-ufs 1 %d %" PRId64 " %" PRId64 "\n", super.fsize, super.size * super.fsize,
	       (super.cstotal.nbfree * super.frag + super.cstotal.nffree) * super.fsize);
	for (uint32_t i = 0; i < super.ncg; i++) {
		struct ufs_group *group = read_group(i);
		const uint8_t *map = (const uint8_t *)group + group->freeoff;
		uint32_t first, end, start = 0;

		ufs_own(&super, i, &first, &end);
		print_run('M', i, first, end);
		for (uint32_t at = 0; at < group->ndblk; at++)
			if (!ufs_bit(map, at)) {
				print_run('F', i, start, at);
				start = at + 1;
			}
		print_run('F', i, start, group->ndblk);
		free(group);
	}
}

int main(int argc, char **argv)
{
	bool list = argc == 3 && !strcmp(argv[1], "--free");

	if (argc != 2 + list || argv[argc - 1][0] == '-') {
		fprintf(stderr, "usage: checkufs [--free] DEVICE\n");
		return 2;
	}
	name = argv[argc - 1];
	device = open(name, O_RDONLY | O_CLOEXEC);
	if (device < 0)
		err(1, "%s", name);
	read_super();
	if (list) {
		print_free();
	} else {
		check();
		printf("%s: UFS2, %" PRIu64 " inodes and %" PRIu64 " fragments in use: ", name, inodes, used);
		printf(wrong ? "%" PRIu64 " things are wrong\n" : "clean\n", wrong);
	}
	if (fflush(stdout) || ferror(stdout))
		err(1, "writing");
	return wrong ? DAMAGED : 0;
}
