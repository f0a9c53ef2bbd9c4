/*
 * What lmbench times of a kernel, with its own definitions (lmbench 3: lat_syscall, lat_sig, lat_proc, lat_pipe,
 * bw_file_rd, bw_mem), in as few lines. Prints a line for each: the name, and nanoseconds of the monotonic clock for one
 * call, or for one byte. Usage: calls FILE, a file of FILE_BYTES on a filesystem in RAM, three names deep as lmbench's
 * (/usr/tmp/lmbench).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES (4 << 20)
#define BUFFER_BYTES (64 << 10)
#define TIMES 3

static const char *path;
static int zero, null, to_child[2], from_child[2], to_self[2];
static char *buffer, *first, *second;
static pid_t me;
static volatile int summed;

static void must(int done)
{
	if (!done)
		abort();
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1e9 + at.tv_nsec;
}

/* lmbench reports the mean of reading a byte and of writing one. */
static void null_io(void)
{
	char byte = 0;

	must(read(zero, &byte, 1) == 1);
	must(write(null, &byte, 1) == 1);
}

static void stat_file(void)
{
	struct stat found;

	must(stat(path, &found) == 0);
}

static void open_close(void)
{
	int file = open(path, O_RDONLY);

	must(file >= 0 && close(file) == 0);
}

static void handler(int number)
{
	(void)number;
}

static void install(void)
{
	struct sigaction action = {.sa_handler = handler}, old;

	must(sigaction(SIGUSR1, &action, &old) == 0);
}

static void handle(void)
{
	must(kill(me, SIGUSR1) == 0);
}

/* lmbench's figure for a handler is without the call that sends the signal. */
static void send(void)
{
	must(kill(me, 0) == 0);
}

static void fork_exit(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	must(child > 0 && waitpid(child, &status, 0) == child);
}

static void pipe_there_and_back(void)
{
	char byte = 0;

	must(write(to_child[1], &byte, 1) == 1);
	must(read(from_child[0], &byte, 1) == 1);
}

/* lmbench reads and sums, as integers of 4 bytes; the compilers of its day took one at a time. */
__attribute__((optimize("no-tree-vectorize")))
static int sum_of(const char *bytes, ssize_t size)
{
	const int *at = (const int *)bytes, *end = at + size / sizeof(int);
	int sum = 0;

	for (; at < end; at += 16)
		sum += at[0] + at[1] + at[2] + at[3] + at[4] + at[5] + at[6] + at[7] + at[8] + at[9] + at[10] + at[11] +
		       at[12] + at[13] + at[14] + at[15];
	return sum;
}

static void reread(void)
{
	int file = open(path, O_RDONLY);
	ssize_t size, all = 0;

	while ((size = read(file, buffer, BUFFER_BYTES)) > 0) {
		summed += sum_of(buffer, size);
		all += size;
	}
	must(all == FILE_BYTES && close(file) == 0);
}

static void copy(void)
{
	memcpy(second, first, FILE_BYTES);
}

/* No figure of lmbench's: it tells what a byte costs that is copied into the page cache. */
static void rewrite(void)
{
	int file = open(path, O_WRONLY);
	int piece;

	for (piece = 0; piece < FILE_BYTES / BUFFER_BYTES; piece++)
		must(write(file, buffer, BUFFER_BYTES) == BUFFER_BYTES);
	must(close(file) == 0);
}

/* Nor is this: what a byte costs that goes through a pipe, which holds BUFFER_BYTES. */
static void through_pipe(void)
{
	must(write(to_self[1], buffer, BUFFER_BYTES) == BUFFER_BYTES);
	must(read(to_self[0], buffer, BUFFER_BYTES) == BUFFER_BYTES);
}

/* lmbench's bw_mem wr writes one integer of four. */
__attribute__((optimize("no-tree-vectorize")))
static void write_memory(void)
{
	volatile int *at = (volatile int *)first, *end = at + FILE_BYTES / sizeof(int);

	for (; at < end; at += 64)
		at[0] = at[4] = at[8] = at[12] = at[16] = at[20] = at[24] = at[28] = at[32] = at[36] = at[40] = at[44] = at[48] =
			at[52] = at[56] = at[60] = 1;
}

static int before(const void *one, const void *other)
{
	double difference = *(const double *)one - *(const double *)other;

	return difference < 0 ? -1 : difference > 0;
}

/* The median of TIMES means over so many calls, divided by the units in a call. */
static double median(void (*call)(void), int calls, double units)
{
	double found[TIMES];
	int turn, number;

	call();
	for (turn = 0; turn < TIMES; turn++) {
		double began = now();

		for (number = 0; number < calls; number++)
			call();
		found[turn] = (now() - began) / calls / units;
	}
	qsort(found, TIMES, sizeof(*found), before);
	return found[TIMES / 2];
}

static void measure(const char *name, void (*call)(void), int calls, double units)
{
	printf("%s %.4f\n", name, median(call, calls, units));
}

/* The child echoes, as lat_pipe's does. */
static void start_child(void)
{
	char byte;

	must(pipe(to_child) == 0 && pipe(from_child) == 0);
	if (fork() == 0) {
		close(to_child[1]);
		while (read(to_child[0], &byte, 1) == 1)
			must(write(from_child[1], &byte, 1) == 1);
		_exit(0);
	}
}

int main(int count, char **words)
{
	must(count == 2);
	path = words[1];
	me = getpid();
	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	must(zero >= 0 && null >= 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	measure("null_io", null_io, 2000, 2);
	measure("stat", stat_file, 2000, 1);
	measure("open_close", open_close, 2000, 1);
	measure("sig_install", install, 2000, 1);
	install();
	printf("sig_handle %.4f\n", median(handle, 2000, 1) - median(send, 2000, 1));
	measure("fork_exit", fork_exit, 100, 1);
	start_child();
	measure("pipe", pipe_there_and_back, 1000, 1);
	/* Not before the fork: a child would have as many pages more to take over. */
	buffer = malloc(BUFFER_BYTES);
	first = malloc(FILE_BYTES);
	second = malloc(FILE_BYTES);
	must(buffer && first && second);
	memset(first, 1, FILE_BYTES);
	measure("file_reread", reread, 4, FILE_BYTES);
	measure("file_rewrite", rewrite, 4, FILE_BYTES);
	must(pipe(to_self) == 0);
	measure("pipe_bytes", through_pipe, 16, BUFFER_BYTES);
	measure("mem_write", write_memory, 4, FILE_BYTES);
	measure("bcopy", copy, 4, FILE_BYTES);
	return 0;
}
