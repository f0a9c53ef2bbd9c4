/*
 * Lets the processors of a guest take turns that follow from the guest and a seed alone.
 *
 * QEMU runs them in one thread, one after the other, and shares what is left until the next timer among them. A timer of
 * its own on the virtual clock makes that short: of so many instructions that are drawn each processor has its share.
 * Whatever else ends a turn must come from that thread. So the main loop, which wakes processors up and moves the clock
 * on when all of them sleep, has its sections while that thread waits, and at no other time: the two of them exclude
 * each other by one mutex, which is always taken before QEMU's own lock.
 *
 * $AGELAB_SCHEDULE is SEED:BEGIN as in schedule.c; without it, and before BEGIN, turns are of one length. QEMU's
 * functions and its timer are those of QEMU 10.0. No header, as in clock.c. A pthread_mutex_t of zeros is an initialised
 * one.
 */
#define RTLD_DEFAULT ((void *)0)
#define RTLD_NEXT ((void *)-1)
#define SYS_PPOLL 271
#define SIGNAL_SET_BYTES 8
#define VIRTUAL_CLOCK 1
#define USUAL 20000 /* instructions */
#define SHORTEST 100
#define DOUBLINGS 10 /* to 102,400 */
#define LOOKS_AGAIN 1000 /* microseconds of the host */

struct lock {
    long words[8];
};

struct timespec {
    long seconds;
    long nanoseconds;
};

typedef int wait_function(void *condition, void *mutex);

extern void *dlsym(void *handle, const char *name);
extern void *dlvsym(void *handle, const char *name, const char *version);
extern int pthread_mutex_lock(void *mutex);
extern int pthread_mutex_unlock(void *mutex);
extern long syscall(long number, ...);
extern char *getenv(const char *name);
extern unsigned long strtoul(const char *text, char **end, int base);
extern int usleep(unsigned int microseconds);
extern int getpid(void);
extern int gettid(void);
extern void abort(void) __attribute__((noreturn));

static struct lock running;
/* Held by the main loop in its sections, and by the processors' thread unless it waits. */
static __thread int has_it;
static volatile unsigned long sections;

static long timer[16]; /* a QEMUTimer, which has 48 bytes */
static long length, shaken_from = -1;
static unsigned long drawn, nanoseconds;
static long (*clock_now)(int);
static void (*set_timer)(void *, long), (*stop_timer)(void *);
static _Bool (*all_sleep)(void);
static int (*is_ending)(void), (*is_resetting)(void);
static void *(*processor)(int);
static void (*run_later)(void *, void (*)(void *, long), long);
static void (*lock_qemu)(const char *, int), (*unlock_qemu)(void);

static void *found(void *symbol)
{
    if (!symbol)
        abort(); /* never wrong: agelab/machine/qemu/emulator.py lets no other QEMU come here */
    return symbol;
}

static void *of_qemu(const char *name)
{
    return found(dlsym(RTLD_DEFAULT, name));
}

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static unsigned long draw(void)
{
    unsigned long word = drawn += 0x9e3779b97f4a7c15;

    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

/* A length that is drawn is kept until turns have ended by it: how often this thread wakes up draws nothing. */
static void begin_turns(void)
{
    long now = clock_now(VIRTUAL_CLOCK);

    if (!length) {
        length = USUAL;
        if (shaken_from >= 0 && now >= shaken_from) {
            length = SHORTEST << draw() % DOUBLINGS;
            length += (long)(draw() % (unsigned long)length);
        }
    }
    set_timer(timer, now + length * (long)nanoseconds);
}

/*
 * A guest that ends or is reset may never sleep again, and it is the main loop that stops it. Not in a timer's call: the
 * main loop waits for its end.
 */
static void let_main_loop_in(void *unused, long nothing)
{
    unsigned long before = sections;

    (void)unused;
    (void)nothing;
    unlock_qemu();
    pthread_mutex_unlock(&running);
    while (sections == before)
        usleep(LOOKS_AGAIN);
    pthread_mutex_lock(&running);
    lock_qemu("", 0);
}

/* Runs in the processors' thread. */
static void end_turns(void *unused)
{
    (void)unused;
    if (is_ending() || is_resetting())
        run_later(processor(0), let_main_loop_in, 0);
    length = 0;
    begin_turns();
}

static void prepare(void)
{
    void (*initialise)(void *, void *, int, int, int, void (*)(void *), void *) =
        (void (*)(void *, void *, int, int, int, void (*)(void *), void *))of_qemu("timer_init_full");
    const char *words = getenv("AGELAB_SCHEDULE");
    int count = 0;
    char *end;

    clock_now = (long (*)(int))of_qemu("qemu_clock_get_ns");
    set_timer = (void (*)(void *, long))of_qemu("timer_mod");
    stop_timer = (void (*)(void *))of_qemu("timer_del");
    all_sleep = (_Bool(*)(void))of_qemu("all_cpu_threads_idle");
    is_ending = (int (*)(void))of_qemu("qemu_shutdown_requested_get");
    is_resetting = (int (*)(void))of_qemu("qemu_reset_requested_get");
    lock_qemu = (void (*)(const char *, int))of_qemu("bql_lock_impl");
    run_later = (void (*)(void *, void (*)(void *, long), long))of_qemu("async_run_on_cpu");
    unlock_qemu = (void (*)(void))of_qemu("bql_unlock");
    while (processor(count))
        count++;
    nanoseconds = ((unsigned long (*)(long))of_qemu("icount_to_ns"))(count);
    initialise(timer, 0, VIRTUAL_CLOCK, 1, 0, end_turns, 0);
    if (words) {
        drawn = strtoul(words, &end, 10);
        shaken_from = (long)strtoul(end + 1, 0, 10);
    }
}

static int in_main_thread(void)
{
    return getpid() == gettid();
}

static int runs_processors(void)
{
    static _Bool (*is_own)(void *);
    void *first;

    if (!processor) {
        is_own = (_Bool(*)(void *))of_qemu("qemu_cpu_is_self");
        processor = (void *(*)(int))of_qemu("qemu_get_cpu");
    }
    first = processor(0);
    return first && is_own(first);
}

/*
 * The main loop sleeps here between its sections. At its end it polls within one, with QEMU's lock: it keeps the mutex
 * then, as it may not take it after that lock.
 */
int ppoll(void *descriptors, unsigned long count, const struct timespec *timeout, const void *signals)
{
    static _Bool (*has_qemus_lock)(void);
    struct timespec left = timeout ? *timeout : (struct timespec){0, 0};
    int is_main;
    long result;

    if (!has_qemus_lock)
        has_qemus_lock = (_Bool(*)(void))of_qemu("bql_locked");
    is_main = in_main_thread() && !has_qemus_lock();
    if (is_main && has_it)
        pthread_mutex_unlock(&running);
    result = syscall(SYS_PPOLL, descriptors, count, timeout ? &left : 0, signals, SIGNAL_SET_BYTES);
    if (is_main) {
        pthread_mutex_lock(&running);
        has_it = 1;
        sections++;
    }
    return (int)result;
}

/* The processors' thread waits here while all of them sleep or are stopped, and the main loop until they are. */
int pthread_cond_wait(void *condition, void *mutex)
{
    static wait_function *original;
    int processors = !in_main_thread() && runs_processors(), result;

    if (!original) /* by its version: without one the linker takes the function of another kind of condition */
        original = (wait_function *)found(dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2"));
    if (!processors && !has_it)
        return original(condition, mutex);
    if (processors && !clock_now)
        prepare();
    if (processors)
        stop_timer(timer);
    if (has_it)
        pthread_mutex_unlock(&running);
    result = original(condition, mutex);
    pthread_mutex_unlock(mutex);
    pthread_mutex_lock(&running);
    has_it = 1;
    pthread_mutex_lock(mutex);
    if (processors && !all_sleep())
        begin_turns();
    return result;
}
