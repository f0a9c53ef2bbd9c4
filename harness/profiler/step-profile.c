/*
 * step-profile: run a command, and log the kernel and program stacks of the whole guest meanwhile.
 *
 * usage: step-profile DISK BYTES PERIOD SYNC STEP REPETITION COMMAND...
 *
 * DISK is the number of a memory-backed disk (harness/machine.py, disks), or a path; BYTES of it are used. PERIOD is the time
 * between two samples in nanoseconds of the guest's clock; under an instruction counter that is a number of
 * instructions. With SYNC 1 the samples go on until what the command left dirty is written back. Ends as the command.
 *
 * The log goes to the disk past the page cache. Its format, read by agelab/stacks/log.py: block 0 begins with the
 * bytes in use (64 bits); then come chunks, each with its kind (32 bits), 32 zero bits and its length (64 bits), and
 * zeros behind it to a multiple of 16 bytes. Kind 0 is the rest of a block.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP = 1, TASKS, RECORDS, SYMBOLS, END };

#define BLOCK 4096
#define BUFFER (256 << 10)
#define RING (1 << 20)		/* what is logged of two seconds, at a sample each 250 us of 120 frames */
#define RESERVE (32 << 20)	/* for symbols and ends: samples take no more than what is left of the disk */

static int disk;
static uint64_t limit, end, full, dropped;
static unsigned char *buffer;
static size_t filled;

static int open_path(const char *path)
{
	int opened = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);

	if (opened < 0)
		err(125, "%s", path);
	return opened;
}

/* Find the n-th memory-backed disk by its physical address, as harness/machine.py does. */
static int open_disk(unsigned n)
{
	struct { uint64_t address; char name[32]; } disks[64], swap;
	unsigned count = 0;
	DIR *directory = opendir("/sys/block");
	struct dirent *entry;

	if (!directory)
		err(125, "/sys/block");
	while ((entry = readdir(directory)) && count < 64) {
		char path[128];
		FILE *file;

		if (strncmp(entry->d_name, "pmem", 4) || strlen(entry->d_name) > 31)
			continue;
		snprintf(path, sizeof(path), "/sys/block/%.31s/device/resource", entry->d_name);
		file = fopen(path, "r");
		if (!file || fscanf(file, "%lx", &disks[count].address) != 1)
			err(125, "%s", path);
		fclose(file);
		strcpy(disks[count++].name, entry->d_name);
	}
	closedir(directory);
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = i + 1; j < count; j++)
			if (disks[j].address < disks[i].address) {
				swap = disks[i];
				disks[i] = disks[j];
				disks[j] = swap;
			}
	if (n >= count)
		errx(125, "there are %u memory-backed disks, not %u", count, n + 1);

	char path[64];
	snprintf(path, sizeof(path), "/dev/%s", disks[n].name);
	return open_path(path);
}

/* Write what is in the buffer, filled up with zeros to a whole block. */
static void flush(void)
{
	size_t size = (filled + BLOCK - 1) / BLOCK * BLOCK;

	memset(buffer + filled, 0, size - filled);
	if (size && pwrite(disk, buffer, size, end) != (ssize_t)size)
		err(125, "writing the profile");
	end += size;
	filled = 0;
}

static void append(const void *data, size_t size)
{
	while (size) {
		size_t part = size < BUFFER - filled ? size : BUFFER - filled;

		memcpy(buffer + filled, data, part);
		filled += part;
		data = (const char *)data + part;
		size -= part;
		if (filled == BUFFER)
			flush();
	}
}

static void put_head(uint32_t kind, uint64_t size)
{
	struct { uint32_t kind, zero; uint64_t size; } head = { kind, 0, size };

	append(&head, sizeof(head));
}

static void put_tail(uint64_t size)
{
	static const char zeros[16];

	append(zeros, -size % sizeof(zeros));
}

static void put(uint32_t kind, const void *data, uint64_t size)
{
	put_head(kind, size);
	append(data, size);
	put_tail(size);
}

/* Log a file of /proc, each chunk of it after these words; returns how many lines it has, or -1. */
static long copy_file(uint32_t kind, const char *path, const char *before)
{
	static char text[32 << 10];
	size_t start = strlen(before);
	long lines = 0;
	ssize_t got;
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return -1;
	memcpy(text, before, start);
	while ((got = read(file, text + start, sizeof(text) - start)) > 0) {
		for (ssize_t i = 0; i < got; i++)
			lines += text[start + i] == '\n';
		put(kind, text, start + got);
	}
	close(file);
	return lines;
}

/* Log the names of all tasks that there are, and where the programs among them are mapped. */
static void log_tasks(void)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;

	if (!directory)
		err(125, "/proc");
	while ((entry = readdir(directory))) {
		char path[300], before[300];

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(before, sizeof(before), "comm %s\n", entry->d_name);
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		copy_file(TASKS, path, before);
		snprintf(before, sizeof(before), "maps %s\n", entry->d_name);
		snprintf(path, sizeof(path), "/proc/%s/maps", entry->d_name);
		copy_file(TASKS, path, before);
	}
	closedir(directory);
}

/* Log the kernel's symbols, unless they were since the last module came: a file in RAM tells in each boot. */
static void log_symbols(void)
{
	const char *set = getenv("PROFILE_STATE"), *state = set ? set : "/run/agelab/profiled-modules";
	char before[32] = "", now[32];
	long modules = 0;
	FILE *file = fopen("/proc/modules", "r");

	for (int letter; file && (letter = fgetc(file)) != EOF;)
		modules += letter == '\n';
	if (file)
		fclose(file);
	snprintf(now, sizeof(now), "%ld\n", modules);
	file = fopen(state, "r");
	if (file) {
		if (!fgets(before, sizeof(before), file))
			before[0] = 0;
		fclose(file);
	}
	if (!strcmp(before, now))
		return;
	if (copy_file(SYMBOLS, "/proc/kallsyms", "") <= 0)
		errx(125, "/proc/kallsyms is empty: the kernel has no CONFIG_KALLSYMS");
	file = fopen(state, "w");
	if (!file || fputs(now, file) < 0 || fclose(file))
		err(125, "%s", state);
}

/* Log what is in the ring, or count the samples that the disk has no room for. */
static void drain(struct perf_event_mmap_page *ring)
{
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), tail = ring->data_tail;
	const unsigned char *data = (unsigned char *)ring + ring->data_offset;

	if (head == tail)
		return;
	if (!full && end + filled + (head - tail) + 2 * BLOCK + RESERVE > limit)
		full = 1;
	if (full) {
		while (tail < head) {
			struct perf_event_header record;

			memcpy(&record, data + tail % RING, sizeof(record));	/* records begin at multiples of 8 */
			dropped += record.type == PERF_RECORD_SAMPLE;
			tail += record.size;
		}
	} else {
		uint64_t from = tail % RING, size = head - tail, first = size < RING - from ? size : RING - from;

		put_head(RECORDS, size);
		append(data + from, first);
		append(data, size - first);
		put_tail(size);
	}
	__atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
}

static int open_event(uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.mmap = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.watermark = 1,
		.wakeup_watermark = RING / 8,
	};
	int event = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (event < 0)
		err(125, "perf_event_open: the kernel takes no samples (CONFIG_PERF_EVENTS)");
	return event;
}

int main(int argc, char **argv)
{
	if (argc < 8)
		errx(125, "usage: step-profile DISK BYTES PERIOD SYNC STEP REPETITION COMMAND...");
	uint64_t period = strtoull(argv[3], NULL, 10);
	int until_written = !strcmp(argv[4], "1"), status, go[2];
	char text[512];

	limit = strtoull(argv[2], NULL, 10);
	disk = strchr(argv[1], '/') ? open_path(argv[1]) : open_disk(strtoul(argv[1], NULL, 10));
	if (posix_memalign((void **)&buffer, BLOCK, BUFFER))
		err(125, "memory");
	if (pread(disk, buffer, BLOCK, 0) != BLOCK)
		err(125, "reading the profile's disk");
	memcpy(&end, buffer, sizeof(end));
	if (!end)
		end = BLOCK;
	put(STEP, text, snprintf(text, sizeof(text), "%s %s %lu %d\n", argv[5], argv[6], period, getpid()));
	log_tasks();
	flush();

	int event = open_event(period);
	struct perf_event_mmap_page *ring =
		mmap(NULL, BLOCK + RING, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	if (ring == MAP_FAILED)
		err(125, "mapping the samples");
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		err(125, "mlockall");
	if (pipe2(go, O_CLOEXEC))
		err(125, "pipe");
	pid_t child = fork();
	if (child < 0)
		err(125, "fork");
	if (!child) {
		close(go[1]);
		if (read(go[0], text, 1))
			_exit(125);
		execvp(argv[7], argv + 7);
		err(127, "%s", argv[7]);
	}
	close(go[0]);
	int ended = syscall(SYS_pidfd_open, child, 0);
	if (ended < 0)
		err(125, "pidfd_open");
	if (ioctl(event, PERF_EVENT_IOC_ENABLE, 0))
		err(125, "starting the samples");
	close(go[1]);	/* the command begins */

	struct pollfd what[2] = { { .fd = ended, .events = POLLIN }, { .fd = event, .events = POLLIN } };
	do {
		if (poll(what, 2, -1) < 0 && errno != EINTR)
			err(125, "poll");
		drain(ring);
	} while (!(what[0].revents & POLLIN));
	if (until_written)
		sync();
	ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
	drain(ring);
	if (waitpid(child, &status, 0) != child)
		err(125, "waiting");

	log_symbols();
	put(END, text, snprintf(text, sizeof(text), "dropped %lu\n", dropped));
	flush();
	memset(buffer, 0, BLOCK);
	memcpy(buffer, &end, sizeof(end));
	if (pwrite(disk, buffer, BLOCK, 0) != BLOCK)
		err(125, "ending the profile");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
