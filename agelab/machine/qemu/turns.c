/*
 * Lets the processors of a guest take turns on the virtual clock.
 *
 * QEMU runs them in one thread, one after the other, and gives each all instructions up to the next timer: a processor
 * that waits for another one waits for ever, and where a turn ends follows from the host as well. Here a turn has so
 * many instructions, which a timer of its own ends, and it goes on wherever QEMU cuts it. The next turn is that of the
 * next processor in the row that has something to do. The clock counts the instructions of all of them.
 *
 * $AGELAB_SCHEDULE is SEED:BEGIN as in schedule.c: from BEGIN on the seed draws how long turns are. The functions that
 * are called are those of QEMU 7.2. With main_loop.c, which keeps the main loop out meanwhile.
 */
#include "main_loop.c"

#define VIRTUAL_CLOCK 1
#define ALL_TIMERS -1
#define USUAL 10000 /* instructions */
#define SHORTEST 100
#define DOUBLINGS 10 /* to 102,400 */
#define MOST_PROCESSORS 255
#define INTERRUPTED 0x10000 /* EXCP_INTERRUPT: it ran, or did not, and may run again */
#define HALTS 0x10001 /* EXCP_HLT */
#define HALTED 0x10003 /* EXCP_HALTED */

extern char *getenv(const char *name);
extern unsigned long strtoul(const char *text, char **end, int base);

static long timer[16]; /* a QEMUTimer, which has 48 bytes */
static void *processors[MOST_PROCESSORS];
static int count, last = -1, owner = -1;
/* Whose turn it was before, and whose it is; -1 for nobody. */
static long began, length, shift, shaken_from = -1;
static unsigned long drawn;
static long (*clock_now)(int);
static long (*deadline)(int, int);
static _Bool (*is_idle)(void *);
static void (*set_timer)(void *, long);
static void (*stop_timer)(void *);

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static unsigned long draw(void)
{
    unsigned long word = drawn += 0x9e3779b97f4a7c15;

    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

static void end_turn(void *unused)
{
    (void)unused;
    last = owner;
    owner = -1;
    length = 0;
}

static void prepare(void)
{
    void (*initialise)(void *, void *, int, int, int, void (*)(void *), void *) =
        (void (*)(void *, void *, int, int, int, void (*)(void *), void *))found(dlsym(RTLD_DEFAULT, "timer_init_full"));
    void *(*processor)(int) = (void *(*)(int))found(dlsym(RTLD_DEFAULT, "qemu_get_cpu"));
    long (*nanoseconds)(long) = (long (*)(long))found(dlsym(RTLD_DEFAULT, "icount_to_ns"));
    const char *words = getenv("AGELAB_SCHEDULE");
    char *end;

    clock_now = (long (*)(int))found(dlsym(RTLD_DEFAULT, "qemu_clock_get_ns"));
    deadline = (long (*)(int, int))found(dlsym(RTLD_DEFAULT, "qemu_clock_deadline_ns_all"));
    is_idle = (_Bool(*)(void *))found(dlsym(RTLD_DEFAULT, "cpu_thread_is_idle"));
    set_timer = (void (*)(void *, long))found(dlsym(RTLD_DEFAULT, "timer_mod"));
    stop_timer = (void (*)(void *))found(dlsym(RTLD_DEFAULT, "timer_del"));
    while (count < MOST_PROCESSORS && (processors[count] = processor(count)))
        count++;
    shift = nanoseconds(1);
    initialise(timer, 0, VIRTUAL_CLOCK, 1, 0, end_turn, 0);
    if (words) {
        drawn = strtoul(words, &end, 10);
        shaken_from = (long)strtoul(end + 1, 0, 10);
    }
}

/* A turn that is drawn is kept until somebody begins it. */
static long instructions(void)
{
    if (!length && shaken_from >= 0 && clock_now(VIRTUAL_CLOCK) >= shaken_from) {
        length = SHORTEST << draw() % DOUBLINGS;
        length += (long)(draw() % (unsigned long)length);
    }
    return length ? length : USUAL;
}

/* The next in the row that has something to do; -1 where all sleep. */
static int next_one(void)
{
    for (int step = 1; step <= count; step++)
        if (!is_idle(processors[(last + step) % count]))
            return (last + step) % count;
    return -1;
}

/*
 * The processor's thread, between icount_prepare_for_run and icount_process_data: the main loop is kept out. Timers that
 * are due run first. What the processor may execute was counted before the timer of a new turn was there: it is asked
 * again.
 */
int tcg_cpus_exec(void *processor)
{
    static int (*original)(void *);
    int result;

    if (!original) {
        original = (int (*)(void *))in_module("tcg_cpus_exec");
        prepare();
    }
    if (deadline(VIRTUAL_CLOCK, ALL_TIMERS) == 0)
        return INTERRUPTED;
    if (owner < 0) {
        int next = next_one();

        if (next >= 0 && processors[next] == processor) {
            owner = next;
            began = clock_now(VIRTUAL_CLOCK);
            set_timer(timer, began + instructions() * shift);
        }
        return INTERRUPTED;
    }
    if (processors[owner] != processor)
        return INTERRUPTED;
    result = original(processor);
    if (result == HALTS || result == HALTED) {
        stop_timer(timer);
        if (clock_now(VIRTUAL_CLOCK) != began)
            end_turn(0);
        else
            owner = -1; /* it had nothing to do: the turn is the next one's */
    }
    return result;
}
