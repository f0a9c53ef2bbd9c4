#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* revision {number} */
enum { OPERATIONS = 400, WORK = {work}, SLOW = {slow}, PAGE = 4096, PAD = {pad} };
static unsigned char page[PAGE + PAD];
static double took[OPERATIONS];

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

static int by_size(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;
	return (a < b) - (a > b);
}

int main(void)
{
	volatile unsigned long sum = {number};
	unsigned char chance[OPERATIONS];
	double slowest = 0;
	char name[32];

	if (getrandom(chance, 256, 0) != 256 || getrandom(chance + 256, OPERATIONS - 256, 0) != OPERATIONS - 256)
		return 1;
	for (int at = 0; at < OPERATIONS; at++) {
		double began = now();
		long work = at % 20 ? WORK : SLOW;
		work += (chance[at] - 127) * work / 640;
		for (long i = 0; i < work; i++)
			sum = sum * 31 + page[i % PAGE];
		snprintf(name, sizeof name, "file-%d", at);
		int file = open(name, O_CREAT | O_WRONLY, 0644);
		if (file < 0 || write(file, page, PAGE) != PAGE || close(file))
			return 1;
		took[at] = now() - began;
	}
	qsort(took, OPERATIONS, sizeof *took, by_size);
	for (int at = 0; at < OPERATIONS / 20; at++)
		slowest += took[at] / (OPERATIONS / 20);
	printf("%.9f\n", slowest);
	return 0;
}
