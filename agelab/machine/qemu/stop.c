/*
 * Stops a guest for a debugger: so many nanoseconds of the virtual clock after it has written a text.
 *
 * $AGELAB_STOP is NANOSECONDS:TEXT, TEXT in hexadecimal digits. It is looked for in what QEMU writes to files in pieces
 * (writev): the guest's serial lines, at the instruction that sends the byte. The functions that are called are those
 * of QEMU 7.2. No header, as in clock.c.
 */
#define RTLD_DEFAULT ((void *)0)
#define RTLD_NEXT ((void *)-1)
#define VIRTUAL_CLOCK 1
#define PAUSED 4 /* RUN_STATE_PAUSED */
#define FILES 64
#define LONGEST 256

struct piece {
    const char *bytes;
    unsigned long count;
};

extern void *dlsym(void *handle, const char *name);
extern char *getenv(const char *name);
extern unsigned long strtoul(const char *text, char **end, int base);
extern void abort(void) __attribute__((noreturn));

static long timer[16]; /* a QEMUTimer, which has 48 bytes */
static char text[LONGEST], last[FILES][LONGEST];
static unsigned long length, after;

static void *found(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    if (!symbol)
        abort();
    return symbol;
}

static int digit(char word)
{
    return word <= '9' ? word - '0' : word - 'a' + 10;
}

static void begin(void)
{
    const char *words = getenv("AGELAB_STOP");
    char *at;

    if (!words)
        return;
    after = strtoul(words, &at, 10);
    for (at++; at[0] && length < LONGEST; at += 2)
        text[length++] = (char)(digit(at[0]) << 4 | digit(at[1]));
}

static void stop(void *unused)
{
    (void)unused;
    ((int (*)(int))found("vm_stop"))(PAUSED);
}

static void written(void)
{
    long (*now)(int) = (long (*)(int))found("qemu_clock_get_ns");
    void (*initialise)(void *, void *, int, int, int, void (*)(void *), void *) =
        (void (*)(void *, void *, int, int, int, void (*)(void *), void *))found("timer_init_full");

    length = 0;
    if (!after) {
        stop(0);
        return;
    }
    initialise(timer, 0, VIRTUAL_CLOCK, 1, 0, stop, 0);
    ((void (*)(void *, long))found("timer_mod"))(timer, now(VIRTUAL_CLOCK) + (long)after);
}

static void see(char *line, char byte)
{
    unsigned long at;

    for (at = 0; at + 1 < length; at++)
        line[at] = line[at + 1];
    line[at] = byte;
    for (at = 0; at < length; at++)
        if (line[at] != text[at])
            return;
    written();
}

long writev(int file, const struct piece *pieces, int count)
{
    static long (*next)(int, const struct piece *, int);
    long result;

    if (!next) {
        next = (long (*)(int, const struct piece *, int))dlsym(RTLD_NEXT, "writev");
        begin();
    }
    result = next(file, pieces, count);
    for (int piece = 0; file < FILES && piece < count; piece++)
        for (unsigned long at = 0; length && at < pieces[piece].count; at++)
            see(last[file], pieces[piece].bytes[at]);
    return result;
}
