"""The library that stops a guest, loaded into a program that writes as QEMU's serial lines do: a byte at a time."""

import subprocess
from pathlib import Path

import pytest

from agelab.machine.qemu import emulator
from agelab.machine.vm.guest import Stop
from tests.build import qemu_stand_in

PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static long now;
long qemu_clock_get_ns(int clock) { return clock == 1 ? now : -1; }
int vm_stop(int state) { printf("stopped %d at %ld\n", state, now); return 0; }
void timer_init_full(void *timer, void *group, int clock, int scale, int attributes, void (*call)(void *), void *data)
{
    memset(timer, 0, 48);
    if (group || clock != 1 || scale != 1 || attributes || data || !call)
        abort();
}
void timer_mod(void *timer, long at) { (void)timer; printf("a timer for %ld\n", at); }

int main(int count, char **words)
{
    int files[2] = {open("/dev/null", O_WRONLY), open("/dev/null", O_WRONLY)};

    for (int word = 1; word < count; word++)
        for (char *byte = words[word] + 1; *byte; byte++, now += 10)
            if (writev(files[words[word][0] == '2'], &(struct iovec){byte, 1}, 1) != 1)
                return 1;
    return 0;
}
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qemu_stand_in.compiled(tmp_path_factory.mktemp("stop"), PROGRAM, emulator.STOP)


@pytest.mark.parametrize(
    ("text", "nanoseconds", "said"),
    [
        ("BUG: aab", 0, "stopped 4 at 200\n"),
        ("BUG: aab", 1500, "a timer for 1700\n"),
        ("BUG: b", 0, ""),
        ("b", 0, "stopped 4 at 50\n"),
    ],
)
def test_it_stops_where_a_line_of_one_file_has_the_text_and_only_once(
    stand_in: Path, text: str, nanoseconds: int, said: str
) -> None:
    words = ["1on 7 b", "1 BUG: a", "2BUG: a", "1ab, BUG: aab"]
    environment = {"LD_PRELOAD": str(stand_in / "stop.so"), "AGELAB_STOP": Stop(text, nanoseconds, stand_in).words}
    done = subprocess.run([str(stand_in / "qemu"), *words], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == said
