"""Block traces are read: what is a request, what is skipped and counted, and what a wrong line is said to be."""

import re
from collections import Counter
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.machine.block_trace import reader as trace_reader
from agelab.machine.block_trace.reader import Trace
from agelab.machine.block_trace.requests import BlockRequest

BLKPARSE = Path(__file__).parents[2] / "golden/traces/events.blkparse"
"""What blkparse 1.2.0 prints of events of every kind that tests/golden/traces/events.py writes."""


def read(text: str, device: str = "") -> Trace:
    return trace_reader.read(text.splitlines(keepends=True), "t", device)


def facts(trace: Trace) -> list[tuple[int, str, int, int]]:
    return [(request.microseconds, request.kind, request.first, request.size) for request in trace.requests]


def refused(text: str, device: str = "") -> InputError:
    with pytest.raises(InputError) as error:
        read(text, device)
    return error.value


def test_what_is_read_of_blkparses_text_are_the_totals_of_its_summary() -> None:
    text = BLKPARSE.read_text()
    trace = read(text)
    kinds: Counter[str] = Counter()
    kib: Counter[str] = Counter()
    for request in trace.requests:
        # blkparse counts an event by its letters: FN, a flush without data, is a read of nothing.
        way = "Read" if request.kind == "read" or request.flags == "FN" else "Write"
        kinds[way] += 1
        kib[way] += request.size // 1024
    totals = dict(re.findall(r"((?:PC )?(?:Read|Write) Disp\w*\.?): +(\d+, +\d+KiB)", text))
    assert totals["Read Dispatches"].split(", ") == [str(kinds["Read"]), f"{kib['Read']:8}KiB"]
    assert totals["Write Dispatches"].split(", ") == [str(kinds["Write"]), f"{kib['Write']:8}KiB"]
    passthrough = int(totals["PC Read Disp."].split(",")[0]) + int(totals["PC Write Disp."].split(",")[0])
    assert trace.skipped["passthrough"] == passthrough == 3
    events = re.search(r"Events \(.*\): (\d+) entries", text)
    others = ("line of blkparse's summary", "empty line")
    assert events and int(events[1]) == len(trace.requests) + sum(
        count for kind, count in trace.skipped.items() if kind not in others
    )


def test_a_request_that_the_driver_did_not_take_is_sent_once() -> None:
    text = """\
  8,0    3        1     0.000001000   697  D   W 8 + 8 [a]
  8,0    3        2     0.000002000   697  D   W 16 + 8 [a]
  8,0    3        3     0.000003000   697  R   W 8 + 8 [0]
  8,0    3        4     0.000009000   697  D   W 8 + 8 [a]
"""
    trace = read(text)
    assert facts(trace) == [(2, "write", 8192, 4096), (9, "write", 4096, 4096)]
    assert trace.skipped == {"issued (D), then requeued": 1, "requeued (R)": 1}


def test_messages_cgroups_and_commands_without_data_are_skipped_and_counted() -> None:
    text = """\
  8,0    2        0     0.000000000 39952 1,0  m   N bfq [bfq_limit_depth] wr_busy 0 sync 0 depth 8
  8,0    2        0     0.000000100     0  m   N cfq7 D   W 8 + 8 [no request]
  8,0    2        1     0.000008134 39952 a1f,2  D   R 4096 + 8 [fio]
  8,0    2        2     0.000009000 39952  D   R 4 [dmraid]
  8,0    2        3     0.000009100   323  D   R 36 (12 00 00 00 24 00 ..) [smartd]
  8,0    2        4     0.000031145   195  D FWS [kworker/3:1H]
  8,0    2        4     0.000031145   195  D  FF 18446744073709551615 + 0 [kworker/3:1H]
  8,0    2        5     0.000032145   195  D   N [kworker/3:1H]
  8,0    2        6     0.000033145   195  D  ZR 0 + 8 [kworker/3:1H]
"""
    trace = read(text)
    assert facts(trace) == [(8, "read", 2 << 20, 4096), (31, "flush", 0, 0), (31, "flush", 0, 0)]
    assert trace.skipped == {
        "command other than reading and writing": 1,
        "message (m)": 2,
        "passthrough": 2,
        "without data": 1,
    }


QUEUED = """\
252,0    3        1     0.000001000   594  Q FWFS 8192 + 8 [fio]
252,0    3        2     0.000010000     0  C FWFS 8192 + 8 [0]
252,0    3        3     0.000020000   594  Q FWS [fio]
252,0    3        4     0.000030000   594  Q   R 8 + 8 (     123) [fio]
"""


def test_a_device_without_issued_requests_has_its_queued_ones_read() -> None:
    """With the flush that an F before the letters asks for, which no request of its own stands for here."""
    trace = read(QUEUED)
    assert facts(trace) == [
        (1, "flush", 0, 0),
        (1, "write", 4 << 20, 4096),
        (20, "flush", 0, 0),
        (30, "read", 4096, 4096),
    ]
    assert trace.requests[1].forced and trace.skipped == {"completed (C)": 1}
    issued = QUEUED + "252,0    3        4     0.000031000   594  D   R 8 + 8 (     123) [fio]\n"
    assert facts(read(issued)) == [(31, "read", 4096, 4096)]
    assert read(issued).skipped == {"completed (C)": 1, "queued (Q)": 3}


DISKS = QUEUED + "  8,0    3        4     0.000031000   594  D   W 10240 + 8 [fio]\n"


def test_devices_are_never_laid_over_each_other_one_is_chosen() -> None:
    error = refused(DISKS)
    assert '2 devices are in it, and a history sends those to one: "252,0" (3), "8,0" (1)' in str(error)
    assert error.hint == 'choose one in the history, as in: device = "252,0"'
    assert facts(read(DISKS, "8,0")) == [(31, "write", 10240 * 512, 4096)]
    assert read(DISKS, "8,0").skipped == {"completed (C)": 1, "request to another device": 3}
    assert len(read(DISKS, "252,0").requests) == 4
    error = refused(DISKS, "8,1")
    assert str(error) == "t: no request to device '8,1' is in it" and '"252,0" (3), "8,0" (1)' in error.hint


IOLOG = """\
fio version 3 iolog
0 /mnt/a b add
3 /mnt/a b open
10 /mnt/a b write 512 1024
15 /mnt/a b wait 100 0
20 /mnt/a b datasync 0 0
25 /dev/sda read 0 4096
30 /mnt/a b read 0 0
35 /mnt/a b close
"""


def test_an_iologs_file_may_have_blanks_in_its_name_and_what_is_no_transfer_is_counted() -> None:
    trace = read(IOLOG, "/mnt/a b")
    assert facts(trace) == [(10, "write", 512, 1024), (20, "flush", 0, 0)]
    assert trace.skipped == {
        "add": 1, "close": 1, "header": 1, "open": 1, "read of 0 bytes": 1, "request to another device": 1, "wait": 1,
    }  # fmt: skip
    assert facts(read(IOLOG, "/dev/sda")) == facts(read(IOLOG, "sda")) == [(25, "read", 0, 4096)]
    assert '"/mnt/a b" (2), "sda" (1)' in str(refused(IOLOG))


def test_an_iolog_of_version_2_has_no_times() -> None:
    text = "fio version 2 iolog\n/dev/s a add\n/dev/s a wait 1000\n/dev/s a write 512 1024\n/dev/s a close\n"
    assert facts(read(text)) == [(0, "write", 512, 1024)]


MSR = """\
128166372016382155,hm,0,Read,1074696192,4096,113
128166372003061629,hm,0,Write,7014912,4096,26
128166372026382155,hm,1,Read,1074696192,512,113
"""
ALIBABA = """\
device_id,opcode,offset,length,timestamp
0,R,126703661056,4096,1577808000000046
1,W,19496058880,77824,1577808000000426
0,R,126703644672,4096,1577808000000626
"""
TENCENT = "1538323199,12910952,128,0,1063\n1538323200,6338688,8,1,1063\n"
SPC = """\
0,20941264,8192,W,0.551706,Alpha/NT
0,20939840,8192,W,0.554041
1, 3436288, 15872,r,1.250720,0x123,5.99,test
"""


@pytest.mark.parametrize(
    ("text", "device", "requests"),
    [
        (MSR, "hm_0", [(0, "write", 7014912, 4096), (1332053, "read", 1074696192, 4096)]),
        (MSR, "hm_1", [(0, "read", 1074696192, 512)]),
        (ALIBABA, "0", [(0, "read", 126703661056, 4096), (580, "read", 126703644672, 4096)]),
        (ALIBABA, "1", [(0, "write", 19496058880, 77824)]),
        (TENCENT, "", [(0, "read", 12910952 * 512, 65536), (1000000, "write", 6338688 * 512, 4096)]),
        (SPC, "0", [(0, "write", 20941264 * 512, 8192), (2335, "write", 20939840 * 512, 8192)]),
        (SPC, "1", [(0, "read", 3436288 * 512, 15872)]),
    ],
)
def test_published_tables_are_read_a_devices_first_request_at_0(
    text: str, device: str, requests: list[tuple[int, str, int, int]]
) -> None:
    assert facts(read(text, device)) == requests


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fio version 3 iolog\n0 a read 0 512\n0 a reed 0 512", "t:3: no action of fio's: 'reed'"),
        ("fio version 3 iolog\nx a read 0 512", "t:2: time 'x' is no number"),
        ("fio version 3 iolog\n0 a read 1 512", "t:2: 1 + 512 bytes are no whole sectors of 512"),
        ("fio version 2 iolog\na write 0 ٣", "t:2: length '٣' is no number"),
        ("fio version 2 iolog\na write 0", "t:2: cut off, or not of the form FILE ACTION [OFFSET LENGTH]"),
        ("fio version 3 iolog\n0 a add", "t: there is no request in it, but lines of other kinds: 1 header, 1 add"),
        ("fio version 2 iolog\na read 0 512\nfio version 2 iolog", "t:3: a second iolog begins here"),
        ("fio version 4 iolog\n", "t:1: an iolog of version 4: versions 2 and 3 are read"),
        ("/dev/sda write 0 4096", "t:1: lines of an iolog without its header"),
        ("hello", "t:1: none of the traces that are read begins so: 'hello'"),
        ("\x1f\x8b\x08\0", "t: it is binary"),
        ("", "t: it is empty"),
        (QUEUED + "252,0 3 4 0.00003 594 Q R 8 + 8 [fio]", "t:5: its time is '0.00003'"),
        (QUEUED + "252,0 3 4 0.000030000", "t:5: cut off before its process"),
        (QUEUED + "252,0 3 4 0.000030000 594 Q R 8 +", "t:5: cut off: '252,0 3 4 0.000030000 594 Q R 8 +'"),
        (QUEUED + "252,0 3 4 0.000030000 594 Q R", "t:5: cut off: '252,0 3 4 0.000030000 594 Q R'"),
        (QUEUED + "252,0 3 4 0.000030000 594 Z R 8 + 8", "t:5: no action of blkparse's: 'Z'"),
        (MSR + "1,hm,0,Trim,0,512,1", "t:4: its Type is 'Trim', neither Read nor Write"),
        (ALIBABA + "0,R,126703661056", "t:5: it has 3 columns, and Alibaba 5: '0,R,126703661056'"),
        (TENCENT + "1538323200,1,8,2,1063", "t:3: its IOType is '2', neither 0 nor 1"),
        (SPC + "2,30862016,4096,W,2 448003", "t:4: its timestamp is '2 448003', no number of seconds"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named_for_what_it_is(text: str, reason: str) -> None:
    assert str(refused(text)).startswith(reason)


def test_every_wrong_line_is_named_and_twenty_at_most() -> None:
    lines = str(refused("fio version 3 iolog\n" + "no\n" * 30)).splitlines()
    assert [line.split(":")[1] for line in lines] == [str(at) for at in range(2, 22)]


def test_more_requests_or_devices_than_are_taken_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_reader, "MAX_REQUESTS", 1)
    assert str(refused(TENCENT)) == "t:2: more than 1 requests to 1063"
    monkeypatch.setattr(trace_reader, "MAX_DEVICES", 1)
    assert str(refused(ALIBABA)) == "t:3: more than 1 devices"


def test_a_request_knows_whether_it_is_forced() -> None:
    assert [BlockRequest(0, "a", "write", 0, 0, flags).forced for flags in ("WFS", "FWS", "FWFS")] == [1, 0, 1]
