"""Traces of block requests: what is written is read back, and a line that is none is told by its number."""

import pytest

from agelab.base.errors import InputError
from agelab.machine.drive import block_trace
from agelab.machine.drive.block_trace import BlockRequest, UnreadableEvents

REQUESTS = [
    BlockRequest(0, "drive0", "read", 1 << 20, 4096, "RA", "cat", 7),
    BlockRequest(12, "drive0", "read", 1 << 20, 4096, "RA", "swapper", 0, done=True),
    BlockRequest(1_500_000, "drive0", "write", 2 << 20, 512, "WFS", "jbd2", 9),
    BlockRequest(1_500_001, "drive0", "flush", 0, 0, "FF", "jbd2", 9),
]
SENT = [one for one in REQUESTS if not one.done]
DEVICES = {"drive0": "259,0"}


def facts(requests: list[BlockRequest]) -> list[tuple[int, str, int, int]]:
    return [(one.microseconds, one.kind, one.first, one.size) for one in requests]


def test_an_iolog_has_what_was_sent_in_microseconds_and_is_read_back() -> None:
    lines = list(block_trace.iolog(REQUESTS))
    assert lines == [
        "fio version 3 iolog",
        "0 /dev/drive0 add",
        "0 /dev/drive0 open",
        "0 /dev/drive0 read 1048576 4096",
        "1500000 /dev/drive0 write 2097152 512",
        "1500001 /dev/drive0 sync 0 0",
        "1500001 /dev/drive0 close",
    ]
    assert facts(block_trace.read((f"{line}\n" for line in lines), "x")) == facts(SENT)


def test_text_like_blkparses_is_read_back_with_the_kernels_letters() -> None:
    lines = list(block_trace.blkparse(REQUESTS, DEVICES))
    assert lines[0] == "  259,0  0        1     0.000000000     7  D  RA 2048 + 8 [cat]"
    assert lines[1].endswith("C  RA 2048 + 8 [0]")
    found = block_trace.read(lines, "x")
    assert facts(found) == facts(SENT)
    assert [one.flags for one in found] == ["RA", "WFS", "FF"] and [one.forced for one in found] == [0, 1, 0]


def test_what_blkparse_prints_of_a_real_machine_is_read_up_to_its_summary() -> None:
    text = """\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  P   N [kjournald]
  8,0    3        6     0.000008287   697  D   W 223490 + 8 [kjournald]
  8,0    1        2     0.000226200     0  C   W 223490 + 8 [0]
CPU0 (sda):
 Reads Queued:           0,        0KiB
"""
    [one] = block_trace.read(text.splitlines(), "x")
    assert (one.microseconds, one.kind, one.first, one.size) == (8, "write", 223490 * 512, 4096)


def test_an_iolog_of_version_2_has_no_times() -> None:
    lines = [
        "fio version 2 iolog",
        "/dev/sda add",
        "/dev/sda open",
        "/dev/sda write 512 1024",
        "/dev/sda close",
    ]
    assert facts(block_trace.read(lines, "x")) == [(0, "write", 512, 1024)]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["fio version 3 iolog", "0 a read 0 512", "0 a reed 0 512"], "t:3: is no line of an iolog: "),
        (["fio version 3 iolog", "x a read 0 512"], "t:2: time 'x' is no number"),
        (["fio version 3 iolog", "0 a read 1 512"], "t:2: 1 \\+ 512 bytes are no whole sectors"),
        (["fio version 2 iolog", "a write 0 0"], "t:2: 0 \\+ 0 bytes"),
        (["fio version 2 iolog", "a write 0 ٣"], "t:2: length '٣' is no number"),
        (["hello"], "t:1: is no line of blkparse's: 'hello'"),
        (["fio version 3 iolog", "0 a add"], "t: there is no request in it"),
        ([], "t: there is no request in it"),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_told_by_its_number(lines: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        block_trace.read(lines, "t")


def test_every_wrong_line_is_told_and_twenty_at_most() -> None:
    with pytest.raises(InputError) as told:
        block_trace.read(["fio version 3 iolog", *["no"] * 30], "t")
    assert [line.split(":")[1] for line in str(told.value).splitlines()] == [str(at) for at in range(2, 22)]


EVENTS = """\
           <...>-321     [000] .....    20.000100: block_rq_issue: 259,0 WS 4096 () 8 + 8 [old]
    record-bloc-322     [000] .....    20.000500: tracing_mark_write: begin
             cp-1234    [000] d..1.    20.001500: block_rq_issue: 259,0 RA 131072 () 2048 + 256 [cp]
          <idle>-0       [000] d.h1.    20.011500: block_rq_complete: 259,0 RA () 2048 + 256 [0]
    kworker/0:1H-45      [000] .....    20.021500: block_rq_issue: 259,0 FF 0 () 18446744073709551615 + 0 [kw]
   jbd2/drive0p1-77      (77) [000] .....    20.031500: block_rq_issue: 259,0 FWFS 4096 () 4096 + 8 be,0,4 [jbd2]
"""


def test_the_events_of_every_kernel_become_requests_in_the_machines_time() -> None:
    found = block_trace.read_events(EVENTS.splitlines(), {"259:0": "drive0"}, 2.0)
    assert facts(found) == [
        (2000, "read", 1 << 20, 131072),
        (22000, "read", 1 << 20, 131072),
        (42000, "flush", 0, 0),
        (62000, "write", 2 << 20, 4096),
    ]
    assert [one.done for one in found] == [False, True, False, False]
    assert (found[0].process, found[0].pid, found[3].forced) == ("cp", 1234, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("what", "no event: 'what'"),
        ("  cp-1 [000] ..... 20.000500: block_rq_issue: 8,0 R 4096 () 0 + 8 [cp]", "no request of a drive"),
        ("  cp-1 [000] ..... 20.000500: block_rq_issue: 259,0 R 4096 () 0 + 8 [cp]", "when the step began"),
        ("  cp-1 [000] ..... 20.000500: sched_switch: x", "no request of a drive"),
    ],
)
def test_what_a_guest_makes_up_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnreadableEvents, match=said):
        block_trace.read_events([text], {"259:0": "drive0"}, 1.0)
