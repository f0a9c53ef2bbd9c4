"""Traces of block requests: what is written is read back, and what a guest records becomes requests."""

import pytest

from agelab.machine.block_trace import reader as trace_reader
from agelab.machine.block_trace import requests as block_trace
from agelab.machine.block_trace.requests import BlockRequest, UnreadableEvents

REQUESTS = [
    BlockRequest(0, "drive0", "read", 1 << 20, 4096, "RA", "cat", 7),
    BlockRequest(12, "drive0", "read", 1 << 20, 4096, "RA", "swapper", 0, done=True),
    BlockRequest(1_500_000, "drive0", "write", 2 << 20, 512, "WFS", "jbd2", 9),
    BlockRequest(1_500_001, "drive0", "flush", 0, 0, "FF", "jbd2", 9),
]
SENT = [request for request in REQUESTS if not request.done]
DEVICES = {"drive0": "259,0"}


def facts(requests: list[BlockRequest]) -> list[tuple[int, str, int, int]]:
    return [(request.microseconds, request.kind, request.first, request.size) for request in requests]


def test_an_iolog_has_what_was_sent_in_microseconds_and_is_read_back() -> None:
    lines = list(block_trace.iolog(REQUESTS))
    assert lines == [
        "fio version 3 iolog", "0 /dev/drive0 add", "0 /dev/drive0 open", "0 /dev/drive0 read 1048576 4096",
        "1500000 /dev/drive0 write 2097152 512", "1500001 /dev/drive0 sync 0 0", "1500001 /dev/drive0 close",
    ]  # fmt: skip
    assert facts(trace_reader.read((f"{line}\n" for line in lines), "x").requests) == facts(SENT)


def test_text_like_blkparses_is_read_back_with_the_kernels_letters() -> None:
    lines = list(block_trace.blkparse(REQUESTS, DEVICES))
    assert lines[0] == "  259,0  0        1     0.000000000     7  D  RA 2048 + 8 [cat]"
    assert lines[1].endswith("C  RA 2048 + 8 [0]")
    requests = trace_reader.read(lines, "x").requests
    assert facts(requests) == facts(SENT)
    assert [request.flags for request in requests] == ["RA", "WFS", "FF"]
    assert [request.forced for request in requests] == [0, 1, 0]


EVENTS = """\
           <...>-321     [000] .....    20.000100: block_rq_issue: 259,0 WS 4096 () 8 + 8 [old]
    record-bloc-322     [000] .....    20.000500: tracing_mark_write: begin
             cp-1234    [000] d..1.    20.001500: block_rq_issue: 259,0 RA 131072 () 2048 + 256 [cp]
          <idle>-0       [000] d.h1.    20.011500: block_rq_complete: 259,0 RA () 2048 + 256 [0]
    kworker/0:1H-45      [000] .....    20.021500: block_rq_issue: 259,0 FF 0 () 18446744073709551615 + 0 [kw]
   jbd2/drive0p1-77      (77) [000] .....    20.031500: block_rq_issue: 259,0 FWFS 4096 () 4096 + 8 be,0,4 [jbd2]
"""


def test_the_events_of_every_kernel_become_requests_in_the_machines_time() -> None:
    requests = block_trace.read_events(EVENTS.splitlines(), {"259:0": "drive0"}, 2.0)
    assert facts(requests) == [
        (2000, "read", 1 << 20, 131072),
        (22000, "read", 1 << 20, 131072),
        (42000, "flush", 0, 0),
        (62000, "write", 2 << 20, 4096),
    ]
    assert [request.done for request in requests] == [False, True, False, False]
    assert (requests[0].process, requests[0].pid, requests[3].forced) == ("cp", 1234, True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("what", "no event: 'what'"),
        ("  cp-1 [000] ..... 20.000500: block_rq_issue: 8,0 R 4096 () 0 + 8 [cp]", "no request of a drive"),
        ("  cp-1 [000] ..... 20.000500: block_rq_issue: 259,0 R 4096 () 0 + 8 [cp]", "when the step began"),
        ("  cp-1 [000] ..... 20.000500: sched_switch: x", "no request of a drive"),
    ],
)
def test_what_a_guest_makes_up_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UnreadableEvents, match=reason):
        block_trace.read_events([text], {"259:0": "drive0"}, 1.0)
