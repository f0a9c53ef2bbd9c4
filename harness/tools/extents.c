/*
 * extents [--fibmap] ROOT: where each regular file below ROOT lies on the disk.
 *
 *	agelab-extents 1 <block size> <fiemap|fibmap>
 *	F <inode> <size> <allocated bytes> <links> <path below ROOT, escaped>
 *	E <logical> <physical> <length> <flags in hex>
 *	N <why nothing is known of this file's extents>
 *
 * A file's extents follow its line, in bytes and in the order of the file. Files come in directory order (readdir,
 * depth first), on ROOT's own filesystem alone. Exit status 0: every file of the tree is listed.
 *
 * To be used on a filesystem that was mounted read-only and that nothing has written to since: nothing is synced.
 *
 * FIBMAP knows no flags and says 0 for a block that lies nowhere: in a hole, or among the filesystem's own. The latter
 * is told from a hole by the space that the file takes, and written with the flags that FIEMAP has for it, at place 0:
 * - on reiserfs a file's last bytes, less than a block, may lie in the tree: its tail. It takes a block's space, a hole
 *   takes none;
 * - a file that takes less space than one block has none (ntfs: its data are in its record).
 * - reiser4 answers ERANGE for a file that it compresses: its body lies in the tree. So does that of a plain file of at
 *   most four blocks, but there it tells of the tree's nodes, which others share. Such a file takes as many sectors as
 *   it has, one outside the tree whole blocks.
 * A file that takes more and has no block at all was not told of: not every FUSE filesystem knows the places.
 */
#include "chunks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define BATCH 512
#define REISER4_MAGIC 0x52345362 /* "R4Sb": not one of Linux's own */
#define FLUSH_AT (64 << 10)
/* What these extents have for a place is none on the disk, or not theirs alone. */
#define NOWHERE (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DATA_INLINE)

/* Text or a path that grows. */
struct text {
	char *at;
	size_t used, size;
};

static struct text out, path;
static bool fibmap, btrfs, reiserfs, reiser4;
static struct chunks chunks; /* of btrfs */
static dev_t device;

_Noreturn static void die(const char *what, const char *which)
{
	fprintf(stderr, "extents: %s%s%s: %s\n", what, *which ? " " : "", which, strerror(errno));
	exit(1);
}

static char *room(struct text *text, size_t more)
{
	if (text->used + more > text->size) {
		text->size = 2 * (text->used + more);
		text->at = realloc(text->at, text->size);
		if (!text->at)
			die("memory", "");
	}
	return text->at + text->used;
}

static void flush(void)
{
	size_t done = 0;

	while (done < out.used) {
		ssize_t some = write(STDOUT_FILENO, out.at + done, out.used - done);

		if (some < 0)
			die("writing the map", "");
		done += some;
	}
	out.used = 0;
}

static void put_char(char c)
{
	*room(&out, 1) = c;
	out.used++;
}

static void put_string(const char *string)
{
	size_t length = strlen(string);

	memcpy(room(&out, length), string, length);
	out.used += length;
}

static void put_number(uint64_t number, unsigned int base)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = "0123456789abcdef"[number % base];
	while (number /= base);
	room(&out, count);
	while (count)
		out.at[out.used++] = digits[--count];
}

static void put_escaped(const char *string)
{
	for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
		if (*c > ' ' && *c < 0x7f && *c != '\\') {
			put_char(*c);
			continue;
		}
		put_char('\\');
		for (int shift = 6; shift >= 0; shift -= 3)
			put_char('0' + (*c >> shift & 7));
	}
}

static void put_extent(uint64_t logical, uint64_t physical, uint64_t length, uint32_t flags)
{
	put_string("E ");
	put_number(logical, 10);
	put_char(' ');
	put_number(physical, 10);
	put_char(' ');
	put_number(length, 10);
	put_char(' ');
	put_number(flags, 16);
	put_char('\n');
}

/* The same, from an address of btrfs; whether the disk has it in one place. */
static bool put_from_chunks(uint64_t logical, uint64_t address, uint64_t length, uint32_t flags)
{
	while (length) {
		const struct chunk *chunk = find_chunk(&chunks, address);
		uint64_t inside, part;

		if (!chunk || chunk->spread)
			return false;
		inside = address - chunk->address;
		part = length < chunk->length - inside ? length : chunk->length - inside;
		/* Compressed: it is no longer than the chunk, whatever it is a map of. */
		if (flags & FIEMAP_EXTENT_ENCODED)
			part = length;
		put_extent(logical, chunk->place + inside, part, flags);
		logical += part;
		address += part;
		length -= part;
	}
	return true;
}

/* The extents as the filesystem has them. NULL, or what is wrong, of which errno says more unless it is 0. */
static const char *map_fiemap(int file)
{
	static union {
		struct fiemap map;
		char space[sizeof(struct fiemap) + BATCH * sizeof(struct fiemap_extent)];
	} buffer;
	struct fiemap *map = &buffer.map;
	uint64_t start = 0;

	for (;;) {
		*map = (struct fiemap){
			.fm_start = start, .fm_length = FIEMAP_MAX_OFFSET - start, .fm_extent_count = BATCH
		};
		/* ntfs3 answers 1 where it has filled in a file's last extent. */
		if (ioctl(file, FS_IOC_FIEMAP, map) < 0)
			return "FIEMAP";
		if (!map->fm_mapped_extents)
			return NULL;
		for (unsigned int i = 0; i < map->fm_mapped_extents; i++) {
			const struct fiemap_extent *extent = &map->fm_extents[i];
			uint64_t logical = extent->fe_logical, physical = extent->fe_physical;
			uint32_t flags = extent->fe_flags;

			errno = 0;
			/* ntfs3: an empty file's content is in its record like that of any small one. */
			if (!extent->fe_length && flags & FIEMAP_EXTENT_DATA_INLINE && flags & FIEMAP_EXTENT_LAST)
				return NULL;
			/* Twice the same extent, or one that begins before the last one's end, is no map. */
			if (!extent->fe_length || logical < start)
				return "FIEMAP: extents that overlap";
			/* A disk begins with no file's data. f2fs says so of space that is reserved and has no place yet. */
			if (!physical && !(flags & NOWHERE))
				flags |= FIEMAP_EXTENT_UNKNOWN;
			if (!btrfs || flags & NOWHERE)
				put_extent(logical, physical, extent->fe_length, flags);
			else if (!put_from_chunks(logical, physical, extent->fe_length, flags))
				return "FIEMAP: an extent on several devices, or on none";
			start = logical + extent->fe_length;
			if (flags & FIEMAP_EXTENT_LAST)
				return NULL;
		}
	}
}

/* The whole file lies among the filesystem's own. */
static void put_in_tree(const struct stat *stat)
{
	put_extent(0, 0, stat->st_size, FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_INLINE);
}

/* The same from one block after the other, neighbours joined. */
static const char *map_fibmap(int file, const struct stat *stat)
{
	uint64_t logical = 0, physical = 0, length = 0, mapped = 0;
	uint64_t blocks, tail, allocated = (uint64_t)stat->st_blocks * 512;
	int unit;

	if (ioctl(file, FIGETBSZ, &unit))
		return "FIGETBSZ";
	blocks = ((uint64_t)stat->st_size + unit - 1) / unit;
	tail = stat->st_size % unit;
	if (blocks > INT_MAX) {
		errno = EFBIG;
		return "FIBMAP";
	}
	if (reiser4 && blocks && blocks <= 4 && allocated == ((uint64_t)stat->st_size + 511) / 512 * 512) {
		put_in_tree(stat);
		return NULL;
	}
	for (uint64_t i = 0; i < blocks; i++) {
		int block = i;
		uint64_t place;

		if (ioctl(file, FIBMAP, &block)) {
			if (!reiser4 || errno != ERANGE || length)
				return "FIBMAP";
			put_in_tree(stat);
			return NULL;
		}
		place = (uint64_t)(unsigned int)block * unit;
		if (block && length && place == physical + length && i * unit == logical + length) {
			length += unit;
		} else if (block) {
			if (length)
				put_extent(logical, physical, length, 0);
			logical = i * unit;
			physical = place;
			length = unit;
		}
		mapped += block ? unit : 0;
	}
	if (length)
		put_extent(logical, physical, length, 0);
	if (reiserfs && tail && allocated > mapped && (!length || logical + length <= (blocks - 1) * unit)) {
		put_extent((blocks - 1) * unit, 0, tail, FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_TAIL);
	} else if (blocks && !mapped && allocated && allocated < (uint64_t)unit) {
		put_in_tree(stat);
	} else if (blocks && !mapped && allocated) {
		/* So answers, say, a FUSE filesystem that is on no device. */
		errno = 0;
		return "FIBMAP: no place for any block of a file that takes space";
	}
	return NULL;
}

/* ``wrong``, with errno, where nothing could be asked about the file. */
static void list_file(int file, const struct stat *stat, const char *wrong)
{
	int why = errno;
	size_t body;

	put_string("F ");
	put_number(stat->st_ino, 10);
	put_char(' ');
	put_number(stat->st_size, 10);
	put_char(' ');
	put_number((uint64_t)stat->st_blocks * 512, 10);
	put_char(' ');
	put_number(stat->st_nlink, 10);
	put_char(' ');
	put_escaped(path.at);
	put_char('\n');
	body = out.used;
	if (!wrong) {
		wrong = fibmap ? map_fibmap(file, stat) : map_fiemap(file);
		why = errno;
	}
	if (wrong) {
		out.used = body;
		put_string("N ");
		put_string(wrong);
		if (why) {
			put_string(": ");
			put_string(strerror(why));
		}
		put_char('\n');
	}
	if (out.used >= FLUSH_AT)
		flush();
}

static void list_directory(int directory);

static void list_entry(int parent, const struct dirent *entry)
{
	struct stat stat = { .st_ino = entry->d_ino };
	unsigned int type = entry->d_type;
	const char *wrong = NULL;
	int fd;

	if (type == DT_UNKNOWN) {
		if (fstatat(parent, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW))
			die("asking about", path.at);
		type = IFTODT(stat.st_mode);
	}
	if (type != DT_DIR && type != DT_REG)
		return;
	fd = openat(parent, entry->d_name, O_RDONLY | O_NOFOLLOW | (type == DT_DIR ? O_DIRECTORY : O_NONBLOCK));
	if (fd < 0) {
		int why = errno;

		if (type == DT_DIR)
			die("opening the directory", path.at);
		fstatat(parent, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW);
		errno = why;
		wrong = "open";
	} else if (fstat(fd, &stat)) {
		die("asking about", path.at);
	}
	if (wrong || stat.st_dev == device) {
		if (type == DT_DIR) {
			list_directory(fd); /* which closes it */
			return;
		}
		list_file(fd, &stat, wrong);
	}
	if (fd >= 0)
		close(fd);
}

static void list_directory(int directory)
{
	size_t above = path.used;
	DIR *entries = fdopendir(directory);
	struct dirent *entry;

	if (!entries)
		die("reading the directory", path.at);
	while (errno = 0, entry = readdir(entries)) {
		size_t length = strlen(entry->d_name);

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		room(&path, length + 2);
		if (above)
			path.at[path.used++] = '/';
		memcpy(path.at + path.used, entry->d_name, length + 1);
		path.used += length;
		list_entry(dirfd(entries), entry);
		path.used = above;
		path.at[above] = 0;
	}
	if (errno)
		die("reading the directory", path.at);
	closedir(entries);
}

int main(int argc, char **argv)
{
	struct rlimit files;
	struct statfs filesystem;
	struct stat stat;
	int root;

	fibmap = argc == 3 && !strcmp(argv[1], "--fibmap");
	if (argc != 2 + fibmap || argv[argc - 1][0] == '-') {
		fprintf(stderr, "usage: extents [--fibmap] ROOT\n");
		return 2;
	}
	/* Each directory above the one that is read is open. */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	root = open(argv[argc - 1], O_RDONLY | O_DIRECTORY);
	if (root < 0 || fstatfs(root, &filesystem) || fstat(root, &stat))
		die("opening", argv[argc - 1]);
	device = stat.st_dev;
	btrfs = filesystem.f_type == BTRFS_SUPER_MAGIC;
	if (btrfs && !fibmap && read_chunks(root, &chunks))
		die("reading btrfs's chunks of", argv[argc - 1]);
	reiserfs = filesystem.f_type == REISERFS_SUPER_MAGIC;
	reiser4 = filesystem.f_type == REISER4_MAGIC;
	put_string("agelab-extents 1 ");
	put_number(filesystem.f_bsize, 10);
	put_string(fibmap ? " fibmap\n" : " fiemap\n");
	*room(&path, 1) = 0;
	list_directory(root);
	flush();
	return 0;
}
