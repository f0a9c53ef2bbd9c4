"""The library of several processors' turns, in a program that stands for QEMU and cuts stretches as it likes."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from agelab.base import process
from agelab.machine.qemu import emulator

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK 4000000
static long instructions, bias, due = -1, tick = TICK;
static void (*called)(void *);
int processors[3] = {0, 1, 2}, halted[3];

long qemu_clock_get_ns(int clock) { return clock == 1 ? instructions + bias : -1; }
long qemu_clock_deadline_ns_all(int clock, int which)
{
    long first = due >= 0 && due < tick ? due : tick, now = qemu_clock_get_ns(clock);
    (void)which;
    return first > now ? first - now : 0;
}
void timer_init_full(void *timer, void *group, int clock, int scale, int attributes, void (*call)(void *), void *data)
{
    (void)timer, (void)data;
    if (group || clock != 1 || scale != 1 || attributes)
        abort();
    called = call;
}
void timer_mod(void *timer, long at) { (void)timer; due = at; }
void timer_del(void *timer) { (void)timer; due = -1; }
void *qemu_get_cpu(int number) { return number < 3 ? &processors[number] : 0; }
long icount_to_ns(long count) { return count; }
_Bool cpu_thread_is_idle(void *processor) { return halted[*(int *)processor]; }
_Bool cpu_can_run(void *processor) { (void)processor; return 1; }
void qemu_mutex_unlock_iothread(void) {}
void qemu_mutex_lock_iothread_impl(const char *file, int line) { (void)file, (void)line; }
void advance(long count) { instructions += count; }
void wait_for_timer(void) { bias += qemu_clock_deadline_ns_all(1, -1); }
void run_timers(void)
{
    if (due >= 0 && qemu_clock_get_ns(1) >= due) {
        due = -1;
        called(0);
    }
    if (qemu_clock_get_ns(1) >= tick) { /* the tick is the first processor's */
        tick += TICK;
        halted[0] = 0;
    }
}

int main(int count, char **words)
{
    void *module = dlopen(words[count - 2], RTLD_LAZY);
    ((void (*)(long))dlsym(module, "run"))(atol(words[count - 1]));
    return 0;
}
"""
MODULE = r"""
#include <stdio.h>
#include <stdlib.h>

extern int processors[3], halted[3];
extern long qemu_clock_deadline_ns_all(int clock, int which);
extern long qemu_clock_get_ns(int clock);
extern void advance(long count), wait_for_timer(void), run_timers(void);
static const long batches[3] = {70000, 41000, 30000};
static long left[3] = {70000, 41000, 30000}, budget, most, ran[3];

void icount_prepare_for_run(void *processor, long unused)
{
    (void)processor, (void)unused;
    budget = qemu_clock_deadline_ns_all(1, -1);
}
void icount_process_data(void *processor) { (void)processor; }
void icount_handle_deadline(void) { run_timers(); }

/* A batch of the first processor wakes both others. */
int tcg_cpus_exec(void *processor)
{
    int own = *(int *)processor;
    long now = most ? 1 + rand() % most : budget;

    if (halted[own])
        return 0x10003;
    now = now < budget ? now : budget;
    now = now < left[own] ? now : left[own];
    printf("%ld %d %ld\n", qemu_clock_get_ns(1), own, now);
    advance(now);
    ran[own] += now;
    if (left[own] -= now)
        return 0x10000;
    left[own] = batches[own];
    halted[own] = 1;
    if (!own)
        halted[1] = halted[2] = 0;
    return 0x10001;
}

void run(long seed)
{
    most = seed ? 3000 : 0;
    srand((unsigned)seed);
    while (qemu_clock_get_ns(1) < 40000000) {
        icount_handle_deadline();
        for (int own = seed ? rand() % 3 : 0; own < 3; own++) {
            icount_prepare_for_run(&processors[own], 0);
            tcg_cpus_exec(&processors[own]);
            icount_process_data(&processors[own]);
            if (seed && rand() % 4 == 0)
                break;
        }
        if (halted[0] && halted[1] && halted[2])
            wait_for_timer();
    }
}
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("turns")
    module = place / "lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so"
    (place / "bin").mkdir()
    module.parent.mkdir(parents=True)
    (place / "qemu.c").write_text(PROGRAM)
    (place / "module.c").write_text(MODULE)
    flags = ("-O2", "-Wall", "-Wextra", "-Werror")
    process.run(["gcc", *flags, "-rdynamic", "-o", str(place / "bin/qemu"), str(place / "qemu.c")])
    process.run(["gcc", *flags, "-shared", "-fPIC", "-o", str(module), str(place / "module.c")])
    library = ("-shared", "-fPIC", "-nostdlib", "-o", str(place / "turns.so"))
    process.run(["gcc", *flags, *library, str(emulator.TURNS)])
    return place


def turns(place: Path, cuts: int, words: str = "") -> list[tuple[int, int, int]]:
    """Return where each stretch of a processor begins, whose it is, and its instructions: those that follow are one."""
    environment = {"LD_PRELOAD": str(place / "turns.so"), **({"AGELAB_SCHEDULE": words} if words else {})}
    argv = [str(place / "bin/qemu"), str(place / "lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so"), str(cuts)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60)
    found: list[tuple[int, int, int]] = []
    for line in done.stdout.splitlines():
        at, own, count = map(int, line.split())
        if found and found[-1][1] == own and found[-1][0] + found[-1][2] == at:
            found[-1] = (found[-1][0], own, found[-1][2] + count)
        else:
            found.append((at, own, count))
    return found


@pytest.mark.parametrize("words", ["", "3:0", "3:9000000"])
def test_wherever_stretches_are_cut_the_turns_are_the_same(stand_in: Path, words: str) -> None:
    undisturbed = turns(stand_in, 0, words)
    assert {own for _, own, _ in undisturbed} == {0, 1, 2}
    for cuts in range(1, 6):
        assert turns(stand_in, cuts, words) == undisturbed


def test_a_turn_has_so_many_instructions_or_those_that_a_seed_draws(stand_in: Path) -> None:
    lengths = {"usual": turns(stand_in, 0), "drawn": turns(stand_in, 0, "3:0")}
    usual, drawn = ([count for _, _, count in found] for found in lengths.values())
    assert Counter(usual).most_common(1)[0][0] == 10_000  # fewer at a batch's end, more of one who is alone
    assert len(set(drawn)) > 20 and min(drawn) < 1000 and max(drawn) > 10_000
    assert turns(stand_in, 0, "3:0") == lengths["drawn"] != turns(stand_in, 0, "4:0")
    before, after = turns(stand_in, 0, "3:9000000"), turns(stand_in, 0)
    assert (
        [turn for turn in before if turn[0] < 8_900_000]
        == [turn for turn in after if turn[0] < 8_900_000]
        != before
    )
