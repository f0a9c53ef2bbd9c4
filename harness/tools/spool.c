/*
 * spool write SEED SAFE [COUNT]: change small files in the working directory, COUNT times or until something ends it, as a
 * mail server does.
 * spool check SEED SAFE: look at what a power cut has left of them.
 *
 * Operation n follows from SEED alone: of one of 512 files in 16 directories it writes a new version in place, or
 * beside it to be renamed over it, or it removes the file. One in four syncs what it did (fsync of the file, and of
 * the directory once the name is there), one in 256 everything (sync). When operation n has returned, and with it its
 * syncs, its number is written into the file SAFE, which the cut must leave alone: so many operations were done, the
 * one after them perhaps in part.
 *
 * check works out which version each file must have then, and prints eleven numbers. Of the files whose last change a
 * sync covered, which nothing touched since (a promise): how many, and how many are intact, damaged, missing. Of those
 * that were changed since and not removed: how many, and how many are whole, whole in an earlier version, short (a
 * beginning, or empty), with zeros in the place of data, with other bytes, missing.
 *
 * A version's bytes begin with a head that says which it is; no byte is zero, so that zeros are not taken for data.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 512
#define DIRECTORIES 16
#define LEAST 512 /* bytes of a file; the most is 2^8 times that */
#define MOST (LEAST << 8)
#define HEAD 48
#define NAME 32

enum kind { IN_PLACE, RENAMED, REMOVED };

struct operation {
	uint32_t file;
	enum kind kind;
	uint32_t size;
	bool synced, all_synced;
};

struct file {
	uint64_t version; /* the operation that wrote it; 0: there is none */
	uint32_t size;
	bool promised;
};

static struct file files[FILES];
static unsigned char data[MOST], read_back[MOST + 1];
static uint64_t state, seed;

_Noreturn static void die(const char *what, const char *which)
{
	fprintf(stderr, "spool: %s%s%s: %s\n", what, *which ? " " : "", which, strerror(errno));
	exit(1);
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014) */
static uint64_t draw(uint64_t *from)
{
	uint64_t z = *from += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* The next operation; sizes are as likely between 512 and 1024 bytes as between 64 and 128 KiB. */
static struct operation next_operation(void)
{
	uint64_t what = draw(&state), size = draw(&state);
	uint32_t least = LEAST << (size & 7);
	struct operation op = {
		.file = what % FILES,
		.kind = (what >> 16 & 15) < 7 ? IN_PLACE : (what >> 16 & 15) < 14 ? RENAMED : REMOVED,
		.size = least + (size >> 8) % least,
		.synced = !(what >> 24 & 3),
		.all_synced = !(what >> 32 & 255),
	};

	if (op.kind == REMOVED && !files[op.file].version)
		op.kind = IN_PLACE;
	return op;
}

/* What is known when it has been done. */
static void note(const struct operation *op, uint64_t number)
{
	files[op->file] = (struct file){ op->kind == REMOVED ? 0 : number, op->size, op->synced };
	for (int i = 0; op->all_synced && i < FILES; i++)
		files[i].promised = true;
}

/* The bytes of a version of a file. */
static void make(uint32_t file, uint64_t version, uint32_t size)
{
	uint64_t from = seed ^ version << 20 ^ file, drawn = 0;

	for (uint32_t i = 0; i < size; i++) {
		if (!(i & 7))
			drawn = draw(&from);
		data[i] = (drawn >> 8 * (i & 7) & 255) | 1;
	}
	snprintf((char *)data, HEAD, "spool %" PRIu32 " %" PRIu64 " %" PRIu32, file, version, size);
	memset(data + strlen((char *)data), '.', HEAD - strlen((char *)data));
	data[HEAD - 1] = '\n';
}

static void name(char *into, uint32_t file)
{
	snprintf(into, NAME, "%" PRIu32 "/%" PRIu32, file % DIRECTORIES, file);
}

static void sync_one(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fsync(fd) || close(fd))
		die("syncing", path);
}

static void write_one(const char *path, uint32_t size, bool synced)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0)
		die("creating", path);
	for (uint32_t at = 0; at < size;) {
		ssize_t some = write(fd, data + at, size - at);

		if (some < 0)
			die("writing", path);
		at += some;
	}
	if (synced && fsync(fd))
		die("syncing", path);
	if (close(fd))
		die("closing", path);
}

static void carry_out(const struct operation *op, uint64_t number)
{
	char path[NAME], directory[NAME], beside[NAME];

	name(path, op->file);
	snprintf(directory, sizeof directory, "%d", (int)(op->file % DIRECTORIES));
	if (op->kind == REMOVED) {
		if (unlink(path))
			die("removing", path);
	} else {
		make(op->file, number, op->size);
		snprintf(beside, sizeof beside, "%d/new", (int)(op->file % DIRECTORIES));
		write_one(op->kind == RENAMED ? beside : path, op->size, op->synced);
		if (op->kind == RENAMED && rename(beside, path))
			die("renaming to", path);
	}
	if (op->synced)
		sync_one(directory);
	if (op->all_synced)
		sync();
}

static void write_all(const char *safe, uint64_t count)
{
	int fd = open(safe, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0)
		die("creating", safe);
	for (int i = 0; i < DIRECTORIES; i++) {
		char directory[NAME];

		snprintf(directory, sizeof directory, "%d", i);
		if (mkdir(directory, 0755))
			die("making", directory);
	}
	sync();
	for (uint64_t number = 1; number <= count; number++) {
		struct operation op = next_operation();
		char text[NAME];

		carry_out(&op, number);
		note(&op, number);
		snprintf(text, sizeof text, "%020" PRIu64 "\n", number);
		if (pwrite(fd, text, strlen(text), 0) < 0)
			die("writing", safe);
	}
}

enum state { WHOLE, OLDER, SHORT, ZEROS, GARBAGE, MISSING, STATES };

/* How many bytes of a file there are, read into `read_back`; MOST + 1 for one that is longer, -1 for none. */
static ssize_t read_one(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t size = 0, some = 1;

	if (fd < 0)
		return errno == ENOENT ? -1 : 0;
	while (some > 0 && size < (ssize_t)sizeof read_back) {
		some = read(fd, read_back + size, sizeof read_back - size);
		size += some > 0 ? some : 0;
	}
	close(fd);
	return size;
}

static enum state look(uint32_t number)
{
	const struct file *file = &files[number];
	char path[NAME];
	uint32_t owner, size;
	uint64_t version;
	ssize_t length;
	bool zeros = false;

	name(path, number);
	length = read_one(path);
	if (length < 0)
		return MISSING;
	read_back[length < (ssize_t)sizeof read_back ? length : (ssize_t)sizeof read_back - 1] = 0;
	if (sscanf((char *)read_back, "spool %" SCNu32 " %" SCNu64 " %" SCNu32 ".", &owner, &version, &size) != 3 ||
	    owner != number || size < LEAST || size > MOST) {
		version = file->version;
		size = file->size;
	}
	make(number, version, size);
	if (length > size)
		return GARBAGE;
	for (ssize_t i = 0; i < length; i++) {
		if (read_back[i] != data[i] && read_back[i])
			return GARBAGE;
		zeros |= !read_back[i];
	}
	if (zeros)
		return ZEROS;
	if (length < size)
		return SHORT;
	return version < file->version ? OLDER : WHOLE;
}

static uint64_t number(const char *word)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(word, &end, 10);
	if (errno || *end || *word < '0' || *word > '9') {
		fprintf(stderr, "spool: %s is not a number\n", word);
		exit(2);
	}
	return value;
}

static uint64_t done(const char *safe)
{
	char text[NAME] = "";
	int fd = open(safe, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
		die("reading", safe);
	close(fd);
	text[strcspn(text, "\n")] = 0;
	return *text ? number(text) : 0; /* it had not come to its first one */
}

static void check_all(const char *safe)
{
	unsigned promised[STATES] = { 0 }, others[STATES] = { 0 }, all[2] = { 0 };
	uint64_t last = done(safe);
	struct operation op;

	for (uint64_t i = 1; i <= last; i++) {
		op = next_operation();
		note(&op, i);
	}
	op = next_operation();
	files[op.file].promised = false; /* it may have been done in part */
	for (uint32_t i = 0; i < FILES; i++) {
		if (!files[i].version)
			continue;
		all[files[i].promised]++;
		(files[i].promised ? promised : others)[look(i)]++;
	}
	printf("%u %u %u %u\n", all[1], promised[WHOLE], all[1] - promised[WHOLE] - promised[MISSING],
	       promised[MISSING]);
	printf("%u", all[0]);
	for (int i = 0; i < STATES; i++)
		printf(" %u", others[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	bool writes = argc >= 4 && !strcmp(argv[1], "write");

	if (argc != 4 + (writes && argc == 5) || (!writes && strcmp(argv[1], "check"))) {
		fprintf(stderr, "usage: spool write SEED SAFE [COUNT] | spool check SEED SAFE\n");
		return 2;
	}
	state = seed = number(argv[2]);
	if (writes)
		write_all(argv[3], argc == 5 ? number(argv[4]) : UINT64_MAX);
	else
		check_all(argv[3]);
	return 0;
}
