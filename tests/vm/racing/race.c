/* Processes race for a counter, then for memory and files: race PROCESSES MIB. What it prints tells every turn apart. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define UPDATES 1000000
#define PIECE (1 << 20)

static volatile long *shared;

static int work(int number, int mib)
{
    char name[32], *piece = malloc(PIECE);
    int file;

    for (int at = 0; at < UPDATES; at++)
        shared[0]++;
    snprintf(name, sizeof(name), "file-%d", number);
    file = open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || !piece)
        return 1;
    for (int at = 0; at < mib; at++) {
        memset(piece, number + at, PIECE);
        shared[1] = shared[1] * 31 + number;
        if (write(file, piece, PIECE) != PIECE)
            return 1;
    }
    if (fsync(file))
        return 1;
    for (int at = 0; at < mib; at++)
        if (pread(file, piece, PIECE, (long)at * PIECE) != PIECE || piece[0] != (char)(number + at))
            return 1;
    return 0;
}

int main(int count, char **words)
{
    int processes = count == 3 ? atoi(words[1]) : 0, status, wrong = 0;

    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!processes || shared == MAP_FAILED)
        return 2;
    for (int number = 0; number < processes; number++)
        if (!fork())
            _exit(work(number, atoi(words[2])));
    while (wait(&status) > 0)
        wrong |= status;
    printf("%ld of %d updates, order %lx\n", shared[0], processes * UPDATES, shared[1]);
    return !!wrong;
}
