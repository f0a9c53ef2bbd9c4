/*
 * crash JOB: make the disks of workloads, or look at what a power cut would have left of them. docs/design.md, "Crash
 * states".
 *
 * JOB has a line for each thing: a word, and what it is about. Words of a command are separated by the character 31.
 *
 *   test, raw, base, log, record   devices: the drive that is mounted, the memory behind it, the disk that each
 *                                  workload begins with, the record of workloads, the record of the test drive now
 *   type, flags, options           of mount(2)
 *   repair, fsck                   commands; repair comes before each mount that follows a cut
 *   check                          a program of the user's looks at the tree that was mounted, too
 *   shell                          so does a shell on the console
 *   aged                           the disk that each workload begins with is there: what makes a tree adds to it
 *   begin CALL                     makes a part of the tree that each workload finds;
 *   prepare PATH                   a program makes its own
 *   workload NUMBER                the calls of a workload follow
 *   call CALL                      CALL is carried out here;
 *   program PATH                   a program makes its own (traced.h)
 *   state FIRST NAME               look at a state of the workload whose record begins with entry FIRST
 *
 * NAME is WORKLOAD:PREFIX[:LOSS,...]: the first PREFIX entries of the record are on the disk, but for each LOSS: -7 is
 * entry 7, t3 says that of the last entry 3 sectors are there, m that only what the drive had on its platters is. It
 * answers on the standard output, a JSON object a line; where an object goes on in the next line, it says so.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define SECTOR 512
#define PIECE (1 << 20)
#define BLOCK 4096
#define WORDS 32
#define LINE_MOST 32768
#define LONGEST_MS 120000 /* of the guest, for a repair or a check */
#define WHERE "/run/crash"
#define CONSOLE "/dev/ttyS0"
#define WARNING 4 /* the least level of the kernel's words that are told */
#define BTRFS_FORGET _IOW(0x94, 5, char[4096])

extern char **environ;

enum kind { WRITE, FUA, FLUSH, DISCARD, KEPT };

struct head {
	uint64_t magic, end, entries, lost;
};

struct entry {
	uint64_t kind, sector, sectors, arrived, done, at;
};

static struct {
	char *test, *type, *flags, *options, *repair, *fsck, *aged, *check, *shell;
	int raw, base, log, record;
} job = { .raw = -1, .base = -1, .log = -1, .record = -1 };

static char *buffer; /* for what passes the page cache */
static FILE *out; /* into `line` */
static char *line;
static size_t line_size;
static int kernel = -1;

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "crash: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- answers ---- */

static void text(const char *word)
{
	putc('"', out);
	for (; *word; word++) {
		unsigned char c = *word;

		if (c < 32 || c > 126 || c == '"' || c == '\\')
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

/* The next words name what may be the guest's end: the line must be out before. */
static void end_line(void)
{
	fputs("}\n", out);
	fflush(out);
	for (size_t done = 0; done < line_size;) {
		ssize_t some = write(1, line + done, line_size - done);

		if (some < 0)
			die("answering");
		done += some;
	}
	rewind(out);
	if (isatty(1))
		tcdrain(1);
}

/*
 * It says nothing more than so often in 5 s (DEFAULT_RATELIMIT_INTERVAL): what follows must not depend on what came
 * before.
 */
static void kernel_says(void)
{
	char record[8192], *words;
	const char *before = "";
	ssize_t size;

	fputs(",\"kernel\":[", out);
	while ((size = read(kernel, record, sizeof record - 1)) > 0 || (size < 0 && errno == EPIPE)) {
		if (size < 0)
			continue;
		record[size] = 0;
		words = strchr(record, ';');
		if (!words || (atoi(record) & 7) > WARNING || ftello(out) > LINE_MOST + LINE_MOST / 2)
			continue;
		words[1 + strcspn(words + 1, "\n")] = 0;
		fputs(before, out);
		text(words + 1);
		before = ",";
	}
	putc(']', out);
	if (*before)
		sleep(6);
}

/* ---- the tree ---- */

static uint64_t mixed(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

/* 0 is a piece of zeros alone. */
static uint64_t hash_of(const char *data, size_t size)
{
	uint64_t hash = 0, word, any = 0;

	for (size_t i = 0; i < size; i += sizeof word) {
		word = 0;
		memcpy(&word, data + i, size - i < sizeof word ? size - i : sizeof word);
		any |= word;
		hash = mixed(hash, word + 1);
	}
	return any ? mixed(hash, size) : 0;
}

/* Large files in large pieces: their lines take the longest. */
static void file_content(int fd, bool large)
{
	const char *before = "";
	ssize_t size;

	putc('"', out);
	while ((size = read(fd, buffer, large ? PIECE : BLOCK)) > 0) {
		fprintf(out, "%s%" PRIx64, before, hash_of(buffer, size));
		before = " ";
	}
	fputs(size < 0 ? " unreadable\"" : "\"", out);
}

static uint64_t attributes(const char *path)
{
	char names[4096], value[4096];
	ssize_t size = llistxattr(path, names, sizeof names), length;
	uint64_t hash = 0;

	for (ssize_t i = 0; i < size; i += strlen(names + i) + 1) {
		length = lgetxattr(path, names + i, value, sizeof value);
		hash ^= mixed(hash_of(names + i, strlen(names + i)), hash_of(value, length > 0 ? length : 0));
	}
	return hash;
}

static unsigned tree_size;
static bool first;

/* [path, type, size, links, inode, attributes, content]; whether it is a directory. */
static bool one(const char *path)
{
	char target[BLOCK];
	struct stat is;
	ssize_t size;
	int fd;

	tree_size++;
	if (ftello(out) > LINE_MOST) {
		fputs("],\"goes_on\":true", out);
		end_line();
		fputs("{\"event\":\"more\",\"tree\":[", out);
		first = true;
	}
	if (lstat(path, &is))
		memset(&is, 0, sizeof is);
	fputs(first ? "[" : ",[", out);
	first = false;
	text(path + 2);
	fprintf(out, ",\"%c\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\"%" PRIx64 "\",",
		S_ISREG(is.st_mode) ? 'f' : S_ISDIR(is.st_mode) ? 'd' : S_ISLNK(is.st_mode) ? 'l' : is.st_mode ? 'o' : '?',
		S_ISDIR(is.st_mode) ? 0 : (uint64_t)is.st_size, S_ISDIR(is.st_mode) ? 1 : (uint64_t)is.st_nlink,
		(uint64_t)is.st_ino, attributes(path));
	if (S_ISREG(is.st_mode)) {
		fd = open(path, O_RDONLY | O_NOATIME);
		if (fd < 0) {
			fputs("\"unreadable\"", out);
		} else {
			file_content(fd, is.st_size > PIECE);
			close(fd);
		}
	} else {
		size = S_ISLNK(is.st_mode) ? readlink(path, target, sizeof target - 1) : 0;
		target[size > 0 ? size : 0] = 0;
		text(target);
	}
	putc(']', out);
	return S_ISDIR(is.st_mode);
}

static void walk(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOATIME);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *found;
	char path[PATH_MAX];
	bool below;

	if (!stream) {
		snprintf(path, sizeof path, "%s/unreadable", directory);
		one(path);
		return;
	}
	while (errno = 0, found = readdir(stream)) {
		if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, ".."))
			continue;
		if (snprintf(path, sizeof path, "%s/%s", directory, found->d_name) >= (int)sizeof path)
			continue;
		below = one(path); /* not every filesystem says so in d_type */
		if (below)
			walk(path);
	}
	closedir(stream);
}

static void tree(void)
{
	fputs(",\"tree\":[", out);
	tree_size = 0;
	if (chdir(WHERE))
		die(WHERE);
	first = true;
	walk(".");
	if (chdir("/"))
		die("/");
	putc(']', out);
}

/* ---- commands and mounts ---- */

static int64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/*
 * The exit status of a command, and the beginning of its words; 256 and more: a signal, or it could not be run. One
 * that loops, as some checks do on some disks, is killed.
 */
static int run(const char *command, char *said, size_t room)
{
	char *copy = strdup(command), *words[WORDS + 1], *rest = copy;
	posix_spawn_file_actions_t actions;
	int status, ends[2], count = 0;
	struct pollfd output = { .events = POLLIN };
	int64_t end = milliseconds() + LONGEST_MS, left;
	size_t kept = 0;
	ssize_t size = 1;
	pid_t child;

	while (count < WORDS && (words[count] = strsep(&rest, "\37")))
		count++;
	words[count] = NULL;
	if (pipe2(ends, O_CLOEXEC))
		die("pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
	errno = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
	if (errno && command != job.check)
		die(words[0]);
	close(ends[1]);
	if (errno) {
		snprintf(said, room, "%s", strerror(errno));
		close(ends[0]);
		return 127; /* as a shell says it */
	}
	output.fd = ends[0];
	while ((left = end - milliseconds()) > 0 && poll(&output, 1, (int)left) > 0) {
		size_t part;

		size = read(ends[0], buffer, PIECE);
		if (size <= 0)
			break;
		part = (size_t)size < room - 1 - kept ? (size_t)size : room - 1 - kept;
		memcpy(said + kept, buffer, part);
		kept += part;
	}
	said[kept] = 0;
	close(ends[0]);
	if (size > 0)
		kill(child, SIGKILL);
	if (waitpid(child, &status, 0) < 0)
		die(words[0]);
	posix_spawn_file_actions_destroy(&actions);
	free(copy);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static int mount_it(void)
{
	return mount(job.test, WHERE, job.type, strtoul(job.flags, NULL, 10), job.options) ? errno : 0;
}

static void umount_it(void)
{
	static char all[4096];
	int control;

	if (umount2(WHERE, 0))
		die("unmounting");
	if (strcmp(job.type, "btrfs"))
		return;
	/* It remembers the device, and takes an older state of it for another one (fs/btrfs/volumes.c). */
	control = open("/dev/btrfs-control", O_RDWR);
	if (control >= 0) {
		ioctl(control, BTRFS_FORGET, all);
		close(control);
	}
}

/* ---- the disk ---- */

static void move_bytes(int to, int from, uint64_t at, uint64_t from_at, uint64_t bytes, bool sparse)
{
	static const char zeros[PIECE];

	while (bytes) {
		size_t part = bytes < PIECE ? bytes : PIECE;

		if (pread(from, buffer, part, from_at) != (ssize_t)part)
			die("reading a disk");
		if (!sparse || memcmp(buffer, zeros, part))
			if (pwrite(to, buffer, part, at) != (ssize_t)part)
				die("writing a disk");
		at += part;
		from_at += part;
		bytes -= part;
	}
}

static uint64_t size_of(int disk)
{
	uint64_t bytes;

	if (ioctl(disk, BLKGETSIZE64, &bytes))
		die("the size of a disk");
	return bytes;
}

static struct head head_of(int record)
{
	struct head head;

	if (pread(record, buffer, SECTOR, 0) != SECTOR)
		die("reading a record");
	memcpy(&head, buffer, sizeof head);
	if (head.lost) {
		errno = ENOSPC;
		die("the record of the drive");
	}
	return head;
}

static void record_anew(void)
{
	struct head head = head_of(job.record);

	head.end = SECTOR;
	head.entries = 0;
	memset(buffer, 0, SECTOR);
	memcpy(buffer, &head, sizeof head);
	if (pwrite(job.record, buffer, SECTOR, 0) != SECTOR)
		die("writing a record");
}

static struct entry entry_at(int record, uint64_t at)
{
	struct entry entry;

	if (pread(record, buffer, SECTOR, at) != SECTOR)
		die("reading a record");
	memcpy(&entry, buffer, sizeof entry);
	entry.at = at + SECTOR;
	return entry;
}

static uint64_t behind(const struct entry *entry)
{
	return entry->at + (entry->kind <= FUA ? entry->sectors * SECTOR : 0);
}

static bool changes(const struct entry *entry)
{
	return entry->kind != FLUSH && entry->kind != KEPT;
}

static void restore(const struct entry *entry)
{
	if (changes(entry))
		move_bytes(job.raw, job.base, entry->sector * SECTOR, entry->sector * SECTOR, entry->sectors * SECTOR,
			   false);
}

/* Make the disk what it was before what a record has from `at` on. */
static void undo(int record, uint64_t at)
{
	uint64_t end = head_of(record).end;

	while (at < end) {
		struct entry entry = entry_at(record, at);

		restore(&entry);
		at = behind(&entry);
	}
}

/* ---- calls ---- */

/* What is written says by which call and at which place; no byte is zero. */
static int fill(int fd, uint64_t offset, uint64_t size, const char *call)
{
	uint64_t seed = hash_of(call, strlen(call));

	for (uint64_t i = 0; i < size; i++)
		buffer[i] = (mixed(seed, (offset + i) >> 3) >> 8 * (i & 7) & 255) | 1;
	return pwrite(fd, buffer, size, offset) == (ssize_t)size ? 0 : -1;
}

static int on_file(const char *what, const char *path, uint64_t offset, uint64_t size, const char *call)
{
	bool writes = !strcmp(what, "write") || !strcmp(what, "truncate") || !strcmp(what, "fallocate") ||
		      !strcmp(what, "punch") || !strcmp(what, "append");
	int fd = open(path, !strcmp(what, "create") ? O_RDWR | O_CREAT | O_EXCL : writes ? O_RDWR : O_RDONLY, 0644);
	struct stat is;
	int result;

	if (fd < 0)
		return -1;
	if (!strcmp(what, "append") && !fstat(fd, &is))
		offset = is.st_size;
	result = !strcmp(what, "create") ? 0 :
		 !strcmp(what, "write") || !strcmp(what, "append") ? fill(fd, offset, size, call) :
		 !strcmp(what, "truncate") ? ftruncate(fd, offset) :
		 !strcmp(what, "fallocate") ? fallocate(fd, 0, offset, size) :
		 !strcmp(what, "punch") ? fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size) :
		 !strcmp(what, "fsync") ? fsync(fd) :
		 !strcmp(what, "fdatasync") ? fdatasync(fd) :
		 !strcmp(what, "syncfs") ? syncfs(fd) : (errno = EINVAL, -1);
	close(fd);
	return result;
}

/* Carry out a call, in the filesystem; 0 or an error. */
static int carry_out(const char *call)
{
	char what[32] = "", a[256] = "", b[256] = "", c[256] = "";
	int result;

	if (sscanf(call, "%31s %255s %255s %255s", what, a, b, c) < 1 || chdir(WHERE))
		return EINVAL;
	result = !strcmp(what, "mkdir") ? mkdir(a, 0755) :
		 !strcmp(what, "rmdir") ? rmdir(a) :
		 !strcmp(what, "unlink") ? unlink(a) :
		 !strcmp(what, "link") ? link(a, b) :
		 !strcmp(what, "symlink") ? symlink(a, b) :
		 !strcmp(what, "rename") ? rename(a, b) :
		 !strcmp(what, "setxattr") ? setxattr(a, b, c, strlen(c), 0) :
		 !strcmp(what, "removexattr") ? removexattr(a, b) :
		 !strcmp(what, "sync") ? (sync(), 0) :
		 on_file(what, a, strtoull(b, NULL, 10), strtoull(c, NULL, 10), call);
	result = result ? errno : 0;
	return chdir("/") ? errno : result;
}

static void tell(int number, const char *call, int error)
{
	/* Before the tree: what is recorded while it is looked at comes after the call. */
	uint64_t entries = head_of(job.record).entries;

	fprintf(out, "{\"event\":\"call\",\"workload\":%d,\"entries\":%" PRIu64 ",\"call\":", number, entries);
	text(call);
	fprintf(out, ",\"error\":%d", error);
	tree();
	end_line();
}

#include "traced.h"

/* ---- workloads ---- */

static void begin(void)
{
	errno = mount_it();
	if (errno)
		die("mounting");
}

static void prepare(const char *program)
{
	char said[512] = "";
	int status;

	if (chdir(WHERE))
		die(WHERE);
	status = run(program, said, sizeof said);
	if (status) {
		fprintf(stderr, "what comes before ended with %d: %s", status, said);
		exit(1);
	}
	if (chdir("/"))
		die("/");
}

static void keep_base(void)
{
	sync();
	umount_it();
	move_bytes(job.base, job.raw, 0, 0, size_of(job.raw), true);
	record_anew();
}

static void end_workload(int number, uint64_t from)
{
	umount_it();
	fprintf(out, "{\"event\":\"workload\",\"workload\":%d,\"entries\":%" PRIu64, number,
		head_of(job.record).entries);
	kernel_says();
	end_line();
	undo(job.record, from);
}

/* ---- states ---- */

static struct entry *entries;
static uint64_t entry_count;

static void read_log(void)
{
	uint64_t at = SECTOR, end = head_of(job.log).end;

	while (at < end) {
		if (!(entry_count & 1023))
			entries = realloc(entries, (entry_count + 1024) * sizeof *entries);
		if (!entries)
			die("memory");
		entries[entry_count] = entry_at(job.log, at);
		at = behind(&entries[entry_count++]);
	}
}

/* Sectors of an entry; what was discarded is zeros. */
static void put_sectors(const struct entry *entry, uint64_t from, uint64_t to)
{
	uint64_t bytes[2] = { from * SECTOR, (to - from) * SECTOR };

	if (entry->kind != DISCARD)
		move_bytes(job.raw, job.log, bytes[0], entry->at + (from - entry->sector) * SECTOR, bytes[1], false);
	else if (ioctl(job.raw, BLKZEROOUT, bytes))
		die("discarding");
}

/* What the drive had taken up of the sectors that it says it has kept. */
static void put_kept(const struct entry *entry, const struct entry *kept)
{
	for (; entry < kept; entry++) {
		uint64_t from = entry->sector > kept->sector ? entry->sector : kept->sector;
		uint64_t end = entry->sector + entry->sectors, kept_end = kept->sector + kept->sectors;
		uint64_t to = end < kept_end ? end : kept_end;

		if (changes(entry) && from < to)
			put_sectors(entry, from, to);
	}
}

/* Put the state on the disk, or take it back. */
static void each(uint64_t first, const char *name, bool put)
{
	const char *rest = strchr(name, ':');
	uint64_t prefix = rest ? strtoull(rest + 1, (char **)&rest, 10) : 0;

	if (first + prefix > entry_count) {
		errno = ERANGE;
		die(name);
	}
	for (uint64_t i = 0; i < prefix; i++) {
		struct entry *entry = &entries[first + i];
		uint64_t sectors = entry->sectors;
		bool lost = !changes(entry);

		if (put && !strcmp(rest, ":m")) {
			if (entry->kind == KEPT)
				put_kept(entries + first, entry);
			continue;
		}
		for (const char *word = rest; *word == ':' || *word == ',';) {
			char what = *++word;
			uint64_t value = strtoull(word + 1, (char **)&word, 10);

			lost |= what == '-' && value == i;
			if (what == 't' && i == prefix - 1 && value < sectors)
				sectors = value;
		}
		if (lost)
			continue;
		if (put)
			put_sectors(entry, entry->sector, entry->sector + sectors);
		else
			restore(entry);
	}
}

/* Whether a new file can be written, synced and removed: 0 or the error. */
static int writes(void)
{
	static const char path[] = WHERE "/.new-after-the-cut";
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644), error = 0;

	if (fd < 0)
		return errno;
	if (fill(fd, 0, BLOCK, path) || fsync(fd))
		error = errno;
	close(fd);
	return unlink(path) && !error ? errno : error;
}

static void check(void)
{
	char said[512] = "";

	if (chdir(WHERE))
		die(WHERE);
	fprintf(out, ",\"check\":%d,\"checked\":", run(job.check, said, sizeof said));
	text(said);
	if (chdir("/"))
		die("/");
}

static void console(int error)
{
	pid_t child = fork();
	int fd;

	if (child < 0)
		die("fork");
	if (!child) {
		setsid();
		fd = open(CONSOLE, O_RDWR);
		if (chdir(WHERE) || ioctl(fd, TIOCSCTTY, 0) || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
			_exit(127);
		if (error)
			printf("mount has failed (%s): " WHERE " is empty, and the disk is %s\n", strerror(error), job.test);
		else
			printf("%s is mounted at " WHERE "; exit goes on\n", job.test);
		fflush(stdout);
		execl("/bin/sh", "sh", "-i", (char *)NULL);
		_exit(127);
	}
	waitpid(child, NULL, 0);
}

static void look(uint64_t first, const char *name)
{
	char said[512] = "";
	int error, status;

	fputs("{\"event\":\"at\",\"state\":", out);
	text(name);
	end_line();
	each(first, name, true);
	record_anew();
	fputs("{\"event\":\"state\",\"state\":", out);
	text(name);
	if (job.repair)
		fprintf(out, ",\"repair\":%d", run(job.repair, said, sizeof said));
	error = mount_it();
	fprintf(out, ",\"mount\":%d", error);
	if (job.shell)
		console(error);
	if (!error) {
		tree();
		if (job.check)
			check();
		umount_it();
	}
	status = run(job.fsck, said, sizeof said);
	fprintf(out, ",\"fsck\":%d,\"said\":", status);
	text(said);
	if (!error) {
		error = mount_it();
		fprintf(out, ",\"again\":%d", error);
	}
	if (!error) {
		fprintf(out, ",\"write\":%d", writes());
		umount_it();
	}
	kernel_says();
	end_line();
	each(first, name, false);
	undo(job.record, SECTOR);
}

/* ---- the job ---- */

static int opened(const char *path)
{
	int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

static bool setting(const char *word, char *value)
{
	const struct {
		const char *word;
		char **text;
		int *disk;
	} known[] = {
		{ "test", &job.test, NULL }, { "type", &job.type, NULL }, { "flags", &job.flags, NULL },
		{ "options", &job.options, NULL }, { "repair", &job.repair, NULL }, { "fsck", &job.fsck, NULL },
		{ "aged", &job.aged, NULL }, { "check", &job.check, NULL }, { "shell", &job.shell, NULL },
		{ "raw", NULL, &job.raw }, { "base", NULL, &job.base }, { "log", NULL, &job.log }, { "record", NULL, &job.record },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(word, known[i].word))
			continue;
		if (known[i].disk)
			*known[i].disk = opened(value);
		else
			*known[i].text = value;
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	enum { SETTINGS, BEGINNING, WORKLOADS, STATES } stage = SETTINGS;
	FILE *lines = argc == 2 ? fopen(argv[1], "r") : NULL;
	char *word = NULL, *rest;
	uint64_t from = SECTOR, first;
	size_t room = 0;
	int number = -1;

	out = open_memstream(&line, &line_size);
	kernel = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (!out || !lines || kernel < 0 || lseek(kernel, 0, SEEK_END) < 0 || posix_memalign((void **)&buffer, BLOCK, PIECE))
		die("the job");
	mkdir(WHERE, 0755);
	while (getline(&word, &room, lines) > 0) {
		word[strcspn(word, "\n")] = 0;
		rest = word + strcspn(word, " ");
		if (*rest)
			*rest++ = 0;
		if (setting(word, strdup(rest)))
			continue;
		if (!strcmp(word, "begin") || !strcmp(word, "prepare")) {
			if (stage == SETTINGS && job.aged)
				move_bytes(job.raw, job.base, 0, 0, size_of(job.base), true);
			if (stage == SETTINGS)
				begin();
			stage = BEGINNING;
			if (!strcmp(word, "prepare")) {
				prepare(rest);
				continue;
			}
			errno = carry_out(rest);
			if (errno && errno != EOPNOTSUPP) /* not every filesystem has attributes */
				die(rest);
		} else if (!strcmp(word, "workload")) {
			if (stage == BEGINNING)
				keep_base();
			if (stage == WORKLOADS)
				end_workload(number, from);
			stage = WORKLOADS;
			number = atoi(rest);
			from = head_of(job.record).end;
			begin();
			tell(number, "", 0);
		} else if (!strcmp(word, "call")) {
			int error = carry_out(rest);

			tell(number, rest, error);
		} else if (!strcmp(word, "program")) {
			run_watched(number, rest);
		} else if (!strcmp(word, "state")) {
			if (stage != STATES) {
				read_log();
				move_bytes(job.raw, job.base, 0, 0, size_of(job.base), true);
			}
			stage = STATES;
			first = strtoull(rest, &rest, 10);
			look(first, rest + strspn(rest, " "));
		}
	}
	if (stage == WORKLOADS)
		end_workload(number, from);
	return 0;
}
