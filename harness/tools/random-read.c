/*
 * random-read SEED COUNT < paths, each ended by a NUL: COUNT reads of 4096 bytes, without read-ahead.
 *
 * Each read is at a place that is drawn uniformly from all the whole multiples of 4096 bytes in all the files, so
 * that a file is read in proportion to its size; the last piece of a file may be shorter. The same seed and list of
 * files and sizes give the same reads. A file is opened for each read of it, as a program does that comes by.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 4096

struct file {
	const char *path;
	uint64_t size;
	uint64_t end; /* pieces of this file and all before it */
};

_Noreturn static void die(const char *what, const char *which)
{
	fprintf(stderr, "random-read: %s%s%s: %s\n", what, *which ? " " : "", which, strerror(errno));
	exit(1);
}

static void *grown(void *at, size_t size)
{
	at = realloc(at, size);
	if (!at)
		die("memory", "");
	return at;
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014) */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Uniform in [0, below): what would make some numbers likelier is drawn again. */
static uint64_t draw_below(uint64_t *state, uint64_t below)
{
	uint64_t few = -below % below, drawn;

	do
		drawn = draw(state);
	while (drawn < few);
	return drawn % below;
}

static char *read_list(size_t *used)
{
	size_t size = 0;
	char *list = NULL;
	ssize_t some;

	*used = 0;
	do {
		if (*used + PIECE > size)
			list = grown(list, size = 2 * (*used + PIECE));
		some = read(STDIN_FILENO, list + *used, size - *used);
		if (some < 0)
			die("reading the list of files", "");
		*used += some;
	} while (some);
	if (*used && list[*used - 1]) {
		fprintf(stderr, "random-read: the list of files does not end with a NUL\n");
		exit(2);
	}
	return list;
}

static void read_piece(const struct file *file, uint64_t piece)
{
	static char data[PIECE];
	uint64_t at = piece * PIECE, expected = file->size - at < PIECE ? file->size - at : PIECE;
	int fd = open(file->path, O_RDONLY);
	ssize_t got;

	if (fd < 0)
		die("opening", file->path);
	errno = posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	if (errno)
		die("advising on", file->path);
	got = pread(fd, data, PIECE, at);
	if (got < 0)
		die("reading", file->path);
	if ((uint64_t)got != expected) {
		fprintf(stderr, "random-read: %s has changed: %zd bytes at %" PRIu64 "\n", file->path, got, at);
		exit(1);
	}
	close(fd);
}

static uint64_t number(const char *word)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(word, &end, 10);
	if (errno || *end || *word < '0' || *word > '9') {
		fprintf(stderr, "random-read: %s is not a number\n", word);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	static struct file *files;
	static char *list;
	size_t count = 0, size = 0, used;
	uint64_t state, reads, pieces = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: random-read SEED COUNT < paths, each ended by a NUL\n");
		return 2;
	}
	state = number(argv[1]);
	reads = number(argv[2]);
	list = read_list(&used);
	for (const char *path = list; path < list + used; path += strlen(path) + 1) {
		struct stat stat_;

		if (stat(path, &stat_))
			die("asking about", path);
		if (!S_ISREG(stat_.st_mode)) {
			fprintf(stderr, "random-read: %s is not a regular file\n", path);
			return 2;
		}
		if (count == size)
			files = grown(files, (size = 2 * size + 64) * sizeof *files);
		pieces += (stat_.st_size + PIECE - 1) / PIECE;
		files[count++] = (struct file){ path, stat_.st_size, pieces };
	}
	if (!pieces && reads) {
		fprintf(stderr, "random-read: the files hold nothing to read\n");
		return 2;
	}
	while (reads--) {
		uint64_t piece = draw_below(&state, pieces);
		size_t low = 0, high = count - 1;

		while (low < high) {
			size_t middle = (low + high) / 2;

			if (piece < files[middle].end)
				high = middle;
			else
				low = middle + 1;
		}
		read_piece(&files[low], piece - (low ? files[low - 1].end : 0));
	}
	return 0;
}
