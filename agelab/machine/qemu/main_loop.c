/*
 * Keeps QEMU's main loop out while the guest's processor runs.
 *
 * The main loop reads the virtual clock and moves it on when the guest is idle. Beside a running processor
 * it may see one that has halted and not yet accounted for its last instructions: then the host's load
 * decides when a timer fires. Recording (rr=record) closes this too, but a recorded guest cannot be saved.
 * Here a section of the main loop and a stretch of instructions with its accounting exclude each other,
 * by one mutex, which is always taken before QEMU's own lock. The functions that are replaced are those of
 * accel/tcg/tcg-accel-ops-icount.c of QEMU 7.2, a module, and two of the C library.
 *
 * No header, as in clock.c. A pthread_mutex_t or pthread_cond_t of zeros is an initialised one.
 */
#define MODULE "/../lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so"
/* From the directory of QEMU's own file, as QEMU finds it. */
#define LONGEST_PATH 4096
#define RTLD_LAZY 1
#define RTLD_NOLOAD 4
#define RTLD_NEXT ((void *)-1)
#define RTLD_DEFAULT ((void *)0)
#define SYS_PPOLL 271
#define SIGNAL_SET_BYTES 8

struct lock {
    long words[8];
};

struct timespec {
    long seconds;
    long nanoseconds;
};

extern void *dlopen(const char *file, int mode);
extern void *dlsym(void *handle, const char *name);
extern void *dlvsym(void *handle, const char *name, const char *version);
extern int pthread_mutex_lock(void *mutex);
extern int pthread_mutex_unlock(void *mutex);
extern long syscall(long number, ...);
extern long readlink(const char *path, char *target, unsigned long size);
extern int getpid(void);
extern int gettid(void);
extern void abort(void) __attribute__((noreturn));

static struct lock running;
/* Held by the main loop in its sections, and by the processor's thread while it runs and accounts. */
static int main_loop_has_it;
/* Whether the main thread holds it; only the main thread uses this. */
static struct lock pause_lock, pause_begins;
static int main_loop_pauses;
/* Whether the main thread waits for a condition: it has asked a processor to stop, and waits until it has. */

typedef int wait_function(void *condition, void *mutex);
typedef int broadcast_function(void *condition);

static void *found(void *symbol)
{
    if (!symbol)
        abort(); /* never wrong: agelab/machine/qemu/emulator.py lets no other QEMU come here */
    return symbol;
}

static void *open_module(void)
{
    char path[LONGEST_PATH + sizeof(MODULE)];
    long end = readlink("/proc/self/exe", path, LONGEST_PATH);

    while (end > 0 && path[end] != '/')
        end--;
    for (unsigned long at = 0; at < sizeof(MODULE); at++)
        path[end + at] = MODULE[at];
    return found(dlopen(path, RTLD_LAZY | RTLD_NOLOAD));
}

static void *in_module(const char *name)
{
    static void *module;

    if (!module)
        module = open_module();
    return found(dlsym(module, name));
}

/* By its version: without one the linker takes the function of 2.2.5, whose condition is a pointer to another. */
static void *of_conditions(const char *name)
{
    return found(dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"));
}

static wait_function *original_wait(void)
{
    static wait_function *original;

    if (!original)
        original = (wait_function *)of_conditions("pthread_cond_wait");
    return original;
}

static void tell_everybody(void *condition)
{
    static broadcast_function *broadcast;

    if (!broadcast)
        broadcast = (broadcast_function *)of_conditions("pthread_cond_broadcast");
    broadcast(condition);
}

static int in_main_thread(void)
{
    static __thread int known;

    if (!known)
        known = getpid() == gettid() ? 1 : 2;
    return known == 1;
}

/* The processor's thread, without QEMU's lock: before a stretch of instructions. */
void icount_prepare_for_run(void *processor, long budget)
{
    static void (*original)(void *, long);

    if (!original)
        original = (void (*)(void *, long))in_module("icount_prepare_for_run");
    pthread_mutex_lock(&running);
    original(processor, budget);
}

/*
 * After it. A processor that was asked to stop waits until the main loop waits for it: otherwise the main
 * loop may move the clock to the next timer between the processor's stop and the clock's.
 */
void icount_process_data(void *processor)
{
    static void (*original)(void *);
    static _Bool (*can_run)(void *);

    if (!original) {
        original = (void (*)(void *))in_module("icount_process_data");
        can_run = (_Bool(*)(void *))found(dlsym(RTLD_DEFAULT, "cpu_can_run"));
    }
    original(processor);
    pthread_mutex_unlock(&running);
    if (can_run(processor))
        return;
    pthread_mutex_lock(&pause_lock);
    while (!main_loop_pauses)
        original_wait()(&pause_begins, &pause_lock);
    pthread_mutex_unlock(&pause_lock);
}

/* The processor's thread, with QEMU's lock: runs the timers that are due. */
void icount_handle_deadline(void)
{
    static void (*original)(void), (*unlock)(void), (*lock)(const char *, int);

    if (!original) {
        original = (void (*)(void))in_module("icount_handle_deadline");
        unlock = (void (*)(void))found(dlsym(RTLD_DEFAULT, "qemu_mutex_unlock_iothread"));
        lock = (void (*)(const char *, int))found(dlsym(RTLD_DEFAULT, "qemu_mutex_lock_iothread_impl"));
    }
    unlock();
    pthread_mutex_lock(&running);
    lock("", 0);
    original();
    pthread_mutex_unlock(&running);
}

/*
 * The main loop sleeps here between its sections. At its end it polls within one, with QEMU's lock: it keeps the mutex
 * then, as it may not take it after that lock.
 */
int ppoll(void *descriptors, unsigned long count, const struct timespec *timeout, const void *signals)
{
    static _Bool (*has_qemus_lock)(void);
    struct timespec left = timeout ? *timeout : (struct timespec){0, 0};
    int between_sections;
    long result;

    if (!has_qemus_lock)
        has_qemus_lock = (_Bool(*)(void))found(dlsym(RTLD_DEFAULT, "qemu_mutex_iothread_locked"));
    between_sections = in_main_thread() && !has_qemus_lock();
    if (between_sections && main_loop_has_it) {
        main_loop_has_it = 0;
        pthread_mutex_unlock(&running);
    }
    result = syscall(SYS_PPOLL, descriptors, count, timeout ? &left : 0, signals, SIGNAL_SET_BYTES);
    if (between_sections) {
        pthread_mutex_lock(&running);
        main_loop_has_it = 1;
    }
    return (int)result;
}

/* In a section it may wait for the processor's thread, which needs the mutex to get on. */
int pthread_cond_wait(void *condition, void *mutex)
{
    int result;

    if (!in_main_thread() || !main_loop_has_it)
        return original_wait()(condition, mutex);
    main_loop_has_it = 0;
    pthread_mutex_unlock(&running);
    pthread_mutex_lock(&pause_lock);
    main_loop_pauses = 1;
    tell_everybody(&pause_begins);
    pthread_mutex_unlock(&pause_lock);
    result = original_wait()(condition, mutex);
    pthread_mutex_lock(&pause_lock);
    main_loop_pauses = 0;
    pthread_mutex_unlock(&pause_lock);
    pthread_mutex_unlock(mutex);
    pthread_mutex_lock(&running);
    main_loop_has_it = 1;
    pthread_mutex_lock(mutex);
    return result;
}
