/*
 * What a spool does: two records in place, a new file under another's name, one that grows, one that is done. PLANTED is
 * the number of the fault that Linux has meanwhile (crash_faults.toml); 0: none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char data[8192] = "what is written";

static int opened(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		_exit(1);
	return fd;
}

int main(void)
{
	int fd = opened("/sys/module/blk_flush/parameters/planted", O_WRONLY);

	dprintf(fd, "%d", PLANTED);
	close(fd);

	fd = opened("A/foo", O_WRONLY);
	pwrite(fd, data, 4096, 0);
	fdatasync(fd);
	pwrite(fd, data, 4096, 4096);
	fdatasync(fd);
	close(fd);

	fd = opened("A/new", O_WRONLY | O_CREAT);
	write(fd, data, 8192);
	fsync(fd);
	close(fd);
	rename("A/new", "A/bar");
	fd = opened("A", O_RDONLY);
	fsync(fd);
	close(fd);

	fd = opened("B/foo", O_WRONLY | O_APPEND);
	write(fd, data, 4096);
	fsync(fd);
	close(fd);

	unlink("A/foo");
	sync();
	return 0;
}
