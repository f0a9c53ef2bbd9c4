/*
 * replay [--dry] [--allocate] [--skip] LOG: carry out an operation log (docs/operations.md) in the working directory.
 *
 * --dry       read it and do nothing: what the replayer itself costs
 * --allocate  give files their blocks (fallocate) and write nothing into them
 * --skip      go on after an operation that the filesystem refuses; else the first one ends it
 *
 * A line is read, carried out and forgotten: no table of files, so memory and the cost of a line are the same however
 * many there are. Operations on one file that follow each other share one open file, as those of a program do.
 * What has been read of the log is dropped from the page cache.
 *
 * Each refusal is a line on standard error, `replay: line N: <operation>: <reason>`; whether it is a result, whoever
 * reads them decides. At the end a line of counts, `operations N bytes N refused N`. Exit status 0; 1 where anything
 * was refused; 2 for what is no log.
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

#define HEADER "agelab-operations 1"
#define DATA (1 << 20) /* what is written is taken from so many bytes */
#define WINDOW (1 << 16) /* of the log, read at once */
#define LINE 16384 /* bytes; the host takes no longer ones */

static bool dry, allocate, skip;
static const char *log_name;
static int log_fd;
static uint64_t line_number, operations, bytes, refused;
static unsigned char data[2 * DATA];

static int open_fd = -1;
static char open_path[LINE];

_Noreturn static void malformed(const char *why)
{
	fprintf(stderr, "replay: %s: line %" PRIu64 ": %s\n", log_name, line_number, why);
	exit(2);
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014) */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Bytes that nothing compresses, twice over: a piece of up to DATA bytes may begin anywhere in the first half. */
static void make_data(void)
{
	uint64_t state = 0, drawn;

	for (size_t at = 0; at < DATA; at += sizeof drawn) {
		drawn = draw(&state);
		memcpy(data + at, &drawn, sizeof drawn);
	}
	memcpy(data + DATA, data, DATA);
}

/* The next line without its end, or NULL at the log's end; it holds until the next call. */
static char *next_line(void)
{
	static char window[WINDOW + 1], line[LINE];
	static size_t used, at;
	static off_t read_up_to;
	size_t length = 0;

	for (;;) {
		char *end = memchr(window + at, '\n', used - at);
		size_t some = (end ? (size_t)(end - window) : used) - at;
		ssize_t got;

		if (length + some >= LINE)
			malformed("too long");
		memcpy(line + length, window + at, some);
		length += some;
		at += some;
		if (end) {
			at++;
			line_number++;
			line[length] = 0;
			return line;
		}
		got = read(log_fd, window, WINDOW);
		if (got < 0) {
			fprintf(stderr, "replay: reading %s: %s\n", log_name, strerror(errno));
			exit(2);
		}
		if (!got) {
			line_number++;
			if (length)
				malformed("does not end: the log is cut off");
			return NULL;
		}
		/* Of use where the log lies on a disk: it is read once. */
		posix_fadvise(log_fd, 0, read_up_to, POSIX_FADV_DONTNEED);
		read_up_to += got;
		used = got;
		at = 0;
	}
}

/* The next field of a line, which is cut off it; NULL where there is none. */
static char *field(char **rest)
{
	char *word = *rest, *end;

	if (!word)
		return NULL;
	end = strchr(word, ' ');
	*rest = end ? end + 1 : NULL;
	if (end)
		*end = 0;
	return word;
}

static uint64_t number(char **rest)
{
	char *word = field(rest), *end;
	uint64_t value;

	errno = 0;
	if (!word || *word < '0' || *word > '9')
		malformed("a number is missing");
	value = strtoull(word, &end, 10);
	if (errno || *end || value > INT64_MAX)
		malformed("not a number of bytes");
	return value;
}

/* A path, in place: \ooo is the byte of that octal number. */
static char *path(char **rest)
{
	char *word = field(rest), *to = word;

	if (!word || !*word || *word == '/')
		malformed("a path below the working directory is missing");
	for (const char *from = word; *from; to++) {
		if (*from != '\\') {
			*to = *from++;
			continue;
		}
		for (int digit = 1; digit <= 3; digit++)
			if (from[digit] < '0' || from[digit] > '7' || (digit == 1 && from[1] > '3'))
				malformed("a backslash without three octal digits");
		*to = (from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0');
		from += 4;
	}
	*to = 0;
	return word;
}

static void close_file(void)
{
	if (open_fd >= 0)
		close(open_fd);
	open_fd = -1;
}

/* Keep a file open under its path. */
static int keep(int fd, const char *name)
{
	close_file();
	open_fd = fd;
	if (fd >= 0)
		strcpy(open_path, name);
	return fd < 0 ? -1 : 0;
}

/* The file of that path, opened if the operation before was not on it. */
static int opened(const char *name)
{
	if (open_fd < 0 || strcmp(open_path, name))
		if (keep(open(name, O_WRONLY), name))
			return -1;
	return open_fd;
}

static int put(const char *name, uint64_t offset, uint64_t length)
{
	int fd = opened(name);

	if (fd < 0)
		return -1;
	if (allocate) {
		if (length && fallocate(fd, 0, offset, length))
			return -1;
		bytes += length;
		return 0;
	}
	/* Where in the data it begins follows from the line: no two pieces are equal by design, and any run writes the same. */
	while (length) {
		uint64_t piece = length < DATA ? length : DATA;
		ssize_t done = pwrite(fd, data + (line_number * 4099 + offset) % DATA, piece, offset);

		if (done < 0)
			return -1;
		offset += done;
		length -= done;
		bytes += done;
	}
	return 0;
}

static int append(const char *name, uint64_t length)
{
	struct stat status;
	int fd = opened(name);

	if (fd < 0 || fstat(fd, &status))
		return -1;
	return put(name, status.st_size, length);
}

/* Whether the open file is the one of that path, or lies below it. */
static bool open_below(const char *name)
{
	size_t length = strlen(name);

	return open_fd >= 0 && !strncmp(open_path, name, length) && (!open_path[length] || open_path[length] == '/');
}

static int renamed(const char *from, const char *to)
{
	/* What is open under either name would be found under another one. */
	bool moves = open_fd >= 0 && !strcmp(open_path, from);

	if (open_below(to) || (open_below(from) && !moves))
		close_file();
	if (rename(from, to))
		return -1;
	if (moves && open_fd >= 0)
		strcpy(open_path, to);
	return 0;
}

static int removed(const char *name)
{
	if (open_fd >= 0 && !strcmp(open_path, name))
		close_file();
	return unlink(name);
}

/* Carry out one line: 0, or -1 with errno. */
static int carry_out(char *rest)
{
	char *what = field(&rest), *name = path(&rest), *other = NULL;
	uint64_t offset = 0, length = 0;
	enum { MKDIR, RMDIR, CREATE, WRITE, ALLOCATE, APPEND, TRUNCATE, RENAME, LINK, UNLINK, FSYNC } kind;

	if (!strcmp(what, "write") || !strcmp(what, "overwrite") || !strcmp(what, "allocate")) {
		kind = *what == 'a' ? ALLOCATE : WRITE;
		offset = number(&rest);
		length = number(&rest);
	} else if (!strcmp(what, "append") || !strcmp(what, "truncate")) {
		kind = *what == 'a' ? APPEND : TRUNCATE;
		length = number(&rest);
	} else if (!strcmp(what, "rename") || !strcmp(what, "link")) {
		kind = *what == 'r' ? RENAME : LINK;
		other = path(&rest);
	} else if (!strcmp(what, "create")) {
		kind = CREATE;
	} else if (!strcmp(what, "unlink")) {
		kind = UNLINK;
	} else if (!strcmp(what, "fsync")) {
		kind = FSYNC;
	} else if (!strcmp(what, "mkdir")) {
		kind = MKDIR;
	} else if (!strcmp(what, "rmdir")) {
		kind = RMDIR;
	} else {
		malformed("no such operation");
	}
	if (rest)
		malformed("more than the operation takes");
	operations++;
	if (dry)
		return 0;
	switch (kind) {
	case MKDIR:
		return mkdir(name, 0755);
	case RMDIR:
		return rmdir(name);
	case CREATE:
		return keep(open(name, O_WRONLY | O_CREAT | O_EXCL, 0644), name);
	case WRITE:
		return put(name, offset, length);
	case ALLOCATE:
		if (opened(name) < 0)
			return -1;
		return length ? fallocate(open_fd, 0, offset, length) : 0;
	case APPEND:
		return append(name, length);
	case TRUNCATE:
		return opened(name) < 0 ? -1 : ftruncate(open_fd, length);
	case RENAME:
		return renamed(name, other);
	case LINK:
		return link(name, other);
	case UNLINK:
		return removed(name);
	case FSYNC:
		return opened(name) < 0 ? -1 : fsync(open_fd);
	}
	return -1;
}

int main(int argc, char **argv)
{
	static char copy[LINE];
	bool usage = false;
	char *line;

	for (int at = 1; at < argc; at++) {
		if (!strcmp(argv[at], "--dry"))
			dry = true;
		else if (!strcmp(argv[at], "--allocate"))
			allocate = true;
		else if (!strcmp(argv[at], "--skip"))
			skip = true;
		else if (argv[at][0] == '-' || log_name)
			usage = true;
		else
			log_name = argv[at];
	}
	if (usage || !log_name) {
		fprintf(stderr, "usage: replay [--dry] [--allocate] [--skip] LOG\n");
		return 2;
	}
	log_fd = open(log_name, O_RDONLY);
	if (log_fd < 0) {
		fprintf(stderr, "replay: opening %s: %s\n", log_name, strerror(errno));
		return 2;
	}
	make_data();
	line = next_line();
	if (!line || strcmp(line, HEADER))
		malformed("not \"" HEADER "\"");
	while ((line = next_line())) {
		/* Where the history may be stopped: of interest to whoever cuts the log there. */
		if (!*line || *line == '#' || !strncmp(line, "point ", 6))
			continue;
		strcpy(copy, line); /* carrying it out takes the line apart */
		if (!carry_out(line))
			continue;
		fprintf(stderr, "replay: line %" PRIu64 ": %s: %s\n", line_number, copy, strerror(errno));
		refused++;
		if (!skip)
			break;
	}
	close_file();
	printf("operations %" PRIu64 " bytes %" PRIu64 " refused %" PRIu64 "\n", operations, bytes, refused);
	return refused ? 1 : 0;
}
