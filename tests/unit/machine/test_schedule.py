"""The library that shakes the schedule, loaded into a program that stands for QEMU: its clock, and one timer."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from agelab.machine.qemu import emulator
from tests.build import qemu_stand_in

STAND_IN = r"""
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char timers_state[96];
static long *bias = (long *)(timers_state + 40), instructions, due, tick, period;
static void (*called)(void *);
static void *with;

long qemu_clock_get_ns(int clock) { return clock == 1 ? instructions + *bias : -1; }
long qemu_clock_deadline_ns_all(int clock, int which)
{
    (void)which;
    return clock == 1 ? tick - qemu_clock_get_ns(1) : -1;
}
void timer_init_full(void *timer, void *group, int clock, int scale, int attributes, void (*call)(void *), void *data)
{
    memset(timer, 0, 48);
    if (group || clock != 1 || scale != 1 || attributes)
        abort();
    called = call;
    with = data;
}
void timer_mod(void *timer, long at) { (void)timer; due = at; }

/* Runs for so many nanoseconds: the guest sets its next tick a microsecond after each one. */
int main(int count, char **words)
{
    long left = atol(words[count - 2]);

    period = atol(words[count - 1]);
    tick = period;
    ppoll(0, 0, &(struct timespec){0, 0}, 0);
    while (instructions < left) {
        long now = qemu_clock_get_ns(1);
        if (called && now >= due) {
            long before = *bias;
            called(with);
            if (*bias != before)
                printf("%ld %ld\n", instructions, *bias - before);
        } else if (now >= tick + 1000) {
            tick = now + period;
        } else {
            long next = now >= tick ? tick + 1000 : tick;
            instructions += (called && due < next ? due : next) - now;
        }
    }
    return 0;
}
"""


@dataclass(frozen=True)
class Shaken:
    """What the stand-in saw: at which of its instructions the clock jumped, and how far."""

    at: list[int]
    by: list[int]


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qemu_stand_in.compiled(tmp_path_factory.mktemp("schedule"), STAND_IN, emulator.SCHEDULE)


def shaken(place: Path, words: str, nanoseconds: int, period: int = 4_000_000) -> Shaken:
    environment = {"LD_PRELOAD": str(place / "schedule.so"), **({"AGELAB_SCHEDULE": words} if words else {})}
    argv = [str(place / "qemu"), str(nanoseconds), str(period)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return Shaken([at for at, _ in pairs], [by for _, by in pairs])


def test_a_seed_draws_the_same_moments_each_time_and_another_seed_others(stand_in: Path) -> None:
    first, again, other = (shaken(stand_in, f"{seed}:1000000", 50_000_000) for seed in (3, 3, 4))
    assert first == again != other
    assert first.at and other.at


def test_the_clock_jumps_to_the_guests_next_timer_and_never_before_the_first_step(stand_in: Path) -> None:
    for seed in range(20):
        seen = shaken(stand_in, f"{seed}:7000000", 60_000_000)
        assert all(0 < by <= 4_000_000 for by in seen.by)
        assert min(seen.at, default=7_000_000) >= 7_000_000


def test_seeds_shake_from_often_to_seldom(stand_in: Path) -> None:
    jumps = [len(shaken(stand_in, f"{seed}:0", 100_000_000).at) for seed in range(60)]
    assert max(jumps) > 2000 and 0 < min(jumps) < 60


def test_a_guest_that_sleeps_long_is_left_alone(stand_in: Path) -> None:
    assert shaken(stand_in, "1:0", 500_000_000, period=60_000_000_000).at == []


def test_without_a_word_of_it_nothing_is_shaken(stand_in: Path) -> None:
    assert shaken(stand_in, "", 50_000_000).at == []
