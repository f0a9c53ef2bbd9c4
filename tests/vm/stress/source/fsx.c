/*
 * Processes that change a file of their own at random and compare it with what should be in it: fsx SEED PROCESSES
 * OPERATIONS. One that sees a wrong byte, size or error prints all that it did.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 192 << 10, PAGE = 4096, KEEP = 1, PUNCH = 3, COLLAPSE = 8, ZERO = 16, INSERT = 32 };
static const char *const names[] = {"read",  "map",  "write mapped", "write",  "truncate", "allocate",
                                    "punch", "zero", "collapse",     "insert", "copy",     "read again"};
static unsigned char good[MOST], seen[MOST]; /* good is 0 behind the file's end */
static long size;
static int file;

static void need(int fine, const char *what)
{
    if (!fine)
        exit(printf("%s: %s\n", what, strerror(errno)) > 0);
}

static void compare(const unsigned char *with, long at, long length)
{
    for (long byte = 0; memcmp(with, good + at, length) && byte < length; byte++)
        if (with[byte] != good[at + byte])
            exit(printf("byte %ld is %02x, not %02x\n", at + byte, with[byte], good[at + byte]) > 0);
}

static void longer(long end)
{
    size = end > size ? end : size;
}

static void fill(long at, long length)
{
    for (long byte = at; byte < at + length; byte += 256)
        memset(good + byte, random(), at + length - byte < 256 ? at + length - byte : 256);
    longer(at + length);
}

static int allocate(int how, long at, long length)
{
    int failed = fallocate(file, how, at, length);

    need(!failed || errno == EOPNOTSUPP, "fallocate");
    return !failed;
}

static void operate(int which, long at, long length, const char *path)
{
    long page = at / PAGE * PAGE, pages = (length + PAGE - 1) / PAGE * PAGE;
    loff_t from = random() % MOST, to = at;

    if (which == 0) {
        need(pread(file, seen, length, at) == length, "pread"), compare(seen, at, length);
    } else if (which <= 2) {
        unsigned char *map = mmap(0, at - page + length, PROT_READ | PROT_WRITE, MAP_SHARED, file, page);

        need(map != MAP_FAILED, "mmap");
        compare(map, page, (at - page + length + PAGE - 1) / PAGE * PAGE); /* also behind the file's end */
        if (which == 2)
            fill(at, length), memcpy(map + at - page, good + at, length);
        munmap(map, at - page + length);
    } else if (which == 3) {
        fill(at, length), need(pwrite(file, good + at, length, at) == length, "pwrite");
    } else if (which == 4) {
        need(!ftruncate(file, at), "ftruncate"), memset(good + at, 0, MOST - at), size = at;
    } else if (which == 5 && allocate(0, at, length)) {
        longer(at + length);
    } else if ((which == 6 || which == 7) && allocate(which == 6 ? PUNCH : ZERO + KEEP, at, length)) {
        memset(good + at, 0, length);
    } else if (which == 8 && page + pages < size && allocate(COLLAPSE, page, pages)) {
        memmove(good + page, good + page + pages, MOST - page - pages);
        memset(good + MOST - pages, 0, pages), size -= pages;
    } else if (which == 9 && page < size && size + pages <= MOST && allocate(INSERT, page, pages)) {
        memmove(good + page + pages, good + page, MOST - page - pages);
        memset(good + page, 0, pages), size += pages;
    } else if (which == 10 && from + length <= size && labs(from - at) >= length) {
        memcpy(good + at, good + from, length), longer(at + length);
        need(copy_file_range(file, &from, file, &to, length, 0) == length, "copy_file_range");
    } else if (which == 11) {
        need(!fsync(file) && !posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) && !close(file), "fsync");
        need((file = open(path, O_RDWR)) >= 0 && lseek(file, 0, SEEK_END) == size, "another size");
        need(pread(file, seen, MOST, 0) == size, "pread"), compare(seen, 0, size);
    }
}

int main(int count, char **words)
{
    static char done[1 << 20];
    int status, failed = count != 4;

    for (int process = 0; !failed && process < atoi(words[2]); process++)
        if (!fork()) {
            char path[] = {'a' + process, 0};

            setvbuf(stdout, done, _IOFBF, sizeof(done));
            srandom(1000 * atoi(words[1]) + process);
            need((file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600)) >= 0, "open");
            for (int left = atoi(words[3]); left--;) {
                int which = left ? random() % 12 : 11;
                long most = which < 3 ? size : MOST, at = most ? random() % most : 0, length = most - at;

                length = length ? 1 + random() % (random() % 2 ? length : 1 + length / 16) : 0;
                printf("%s %ld+%ld of %ld\n", names[which], at, length, size);
                if (length)
                    operate(which, at, length, path);
            }
            _exit(0); /* prints nothing */
        }
    while (wait(&status) > 0)
        failed |= status;
    return !!failed;
}
