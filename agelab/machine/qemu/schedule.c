/*
 * Shakes the guest's schedule as a seed draws it.
 *
 * A timer of its own on QEMU's virtual clock ends the processor's stretch of instructions at a drawn moment; the
 * clock is then moved to the next timer of the guest, whose interrupt comes at that instruction. To the guest the
 * processor was taken away meanwhile, as by a hypervisor. All of it follows from the seed and the virtual clock.
 *
 * $AGELAB_SCHEDULE is SEED:BEGIN, BEGIN in nanoseconds of the virtual clock. Each seed draws how often: on average
 * after 2^13 to 2^22 ns, and half as often after every 4096 times, as each costs the guest's kernel some ten thousand
 * instructions: a test that works for long is not worked to death. QEMU's timer and the offset of its clock are those of QEMU 7.2; a clock that does not move as
 * it should ends QEMU. No header, as in clock.c.
 */
#define RTLD_DEFAULT ((void *)0)
#define RTLD_NEXT ((void *)-1)
#define VIRTUAL_CLOCK 1
#define ALL_TIMERS -1
#define OFFSET_OF_BIAS 40
#define MOST_OFTEN 13
#define SELDOM 23
#define AS_OFTEN 4096
#define SHORTEST 200
#define SLEEPS 1000000000
#define LONGEST 10000000 /* a kernel that works has a timer within so many nanoseconds: a tick of 100 Hz at most */

struct timespec;
typedef int poll_function(void *descriptors, unsigned long count, const struct timespec *timeout, const void *signals);

extern void *dlsym(void *handle, const char *name);
extern char *getenv(const char *name);
extern unsigned long strtoul(const char *text, char **end, int base);
extern int getpid(void);
extern int gettid(void);
extern void abort(void) __attribute__((noreturn));

static long timer[16]; /* a QEMUTimer, which has 48 bytes */
static unsigned long drawn, mean, taken;
static long idle;
static long (*clock_now)(int);
static long (*deadline)(int, int);
static void (*set_timer)(void *, long);
static long *bias;

static void *found(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    if (!symbol)
        abort();
    return symbol;
}

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static unsigned long draw(void)
{
    unsigned long word = drawn += 0x9e3779b97f4a7c15;

    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

/*
 * Runs where QEMU runs the timers that are due: no instruction of the guest is under way. Where the next timer is far
 * off, the guest sleeps, or has not yet seen the interrupt of the last one: the clock stays, and it is looked again
 * after as long as it has slept, or a second.
 */
static void take_away(void *unused)
{
    long now = clock_now(VIRTUAL_CLOCK), away = deadline(VIRTUAL_CLOCK, ALL_TIMERS);

    (void)unused;
    if (away < 0 || away > LONGEST) {
        idle = 2 * idle + SHORTEST;
        if (idle > SLEEPS)
            idle = SLEEPS;
    } else {
        idle = 0;
        if (++taken % AS_OFTEN == 0 && mean < 1UL << (SELDOM - 1))
            mean *= 2;
        *bias += away;
        now += away;
        if (clock_now(VIRTUAL_CLOCK) != now)
            abort();
    }
    set_timer(timer, now + idle + SHORTEST + (long)(draw() % (2 * mean)));
}

static void begin(const char *words)
{
    void (*initialise)(void *, void *, int, int, int, void (*)(void *), void *) =
        (void (*)(void *, void *, int, int, int, void (*)(void *), void *))found("timer_init_full");
    char *end;

    clock_now = (long (*)(int))found("qemu_clock_get_ns");
    deadline = (long (*)(int, int))found("qemu_clock_deadline_ns_all");
    set_timer = (void (*)(void *, long))found("timer_mod");
    bias = (long *)((char *)found("timers_state") + OFFSET_OF_BIAS);
    drawn = strtoul(words, &end, 10);
    mean = 1UL << (MOST_OFTEN + draw() % (SELDOM - MOST_OFTEN));
    initialise(timer, 0, VIRTUAL_CLOCK, 1, 0, take_away, 0);
    set_timer(timer, (long)strtoul(end + 1, 0, 10));
}

/* The main loop comes here before the guest runs, and QEMU's clocks are there by then. */
int ppoll(void *descriptors, unsigned long count, const struct timespec *timeout, const void *signals)
{
    static poll_function *next;
    static int begun;
    const char *words;

    if (!next)
        next = (poll_function *)dlsym(RTLD_NEXT, "ppoll");
    if (!begun && getpid() == gettid()) {
        begun = 1;
        if ((words = getenv("AGELAB_SCHEDULE")))
            begin(words);
    }
    return next(descriptors, count, timeout, signals);
}
