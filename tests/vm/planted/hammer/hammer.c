/* Two processes write to the files of the planted filesystem: hammer WORD FILE FILE TIMES, WORD for each write. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int writes(const char *word, const char *path, int times, int go)
{
    int file = open(path, O_WRONLY);
    char begin;

    if (file < 0 || read(go, &begin, 1) != 0)
        return 1;
    for (int at = 0; at < times; at++)
        if (write(file, word + at % strlen(word), 1) < 0 && strlen(word) == 1)
            return 1;
    return 0;
}

int main(int count, char **words)
{
    int go[2], status, wrong = 0;

    if (count != 5 || pipe(go))
        return 2;
    for (int child = 0; child < 2; child++)
        if (!fork()) {
            close(go[1]);
            return writes(words[1], words[2 + child], atoi(words[4]), go[0]);
        }
    close(go[1]);
    while (wait(&status) > 0)
        wrong |= status;
    return !!wrong;
}
