"""python3 events.py NAME: write NAME.blktrace.0, a file of events of every kind, for `blkparse -i NAME`.

The format is that of blktrace's header blktrace_api.h, version 7.
"""

import struct
import sys
from pathlib import Path

ACTIONS = ".QMFGSRDCPUTIXBA"
CATEGORIES = """
    read write flush sync queue requeue issue complete fs pc notify ahead meta discard data fua
""".split()  # noqa: SIM905
ABOUT = {"Q": "queue", "G": "queue", "I": "queue", "R": "requeue", "D": "issue", "C": "complete"}
SDA, DM = (8, 0), (253, 0)


class Events:
    def __init__(self) -> None:
        self.written = bytearray()
        self.number = 0

    def put(self, at: int, action: int, what: str, device: tuple[int, int] = SDA, first: int = 0, size: int = 0,
            pid: int = 7, data: bytes = b"") -> None:  # fmt: skip
        """Write an event: ``what`` are categories, ``first`` is a sector."""
        self.number += 1
        mask = sum(1 << CATEGORIES.index(word) for word in what.split())
        where = device[0] << 20 | device[1]
        header = (0x65617407, self.number, at, first, size, action | mask << 16, pid, where, 0, 0, len(data))
        self.written += struct.pack("<IIQQIIIIIHH", *header) + data

    def act(self, at: int, action: str, what: str, first: int = 0, size: int = 0, data: bytes = b"") -> None:
        pid = 0 if action == "C" else 7
        self.put(at, ACTIONS.index(action), f"{what} {ABOUT.get(action, '')}", SDA, first, size, pid, data)


events = Events()
events.put(0, 1, "notify", data=struct.pack("<II", 1_700_000_000, 5))  # the time of day
events.put(0, 0, "notify", data=b"fio\0")  # a process and its name
events.put(500, 2, "notify", pid=0, data=b"cfq 7 alloced")  # a message
for number in range(1, 5):
    for later, action in enumerate("QGIDC"):
        events.act(number * 10**6 + later * 100, action, "write sync fs", 2040 + 8 * number, 4096)
events.act(6_000_000, "D", "read pc", 0, 36, b"\x12\0\0\0\x24\0")
events.act(6_000_100, "C", "read pc", 0, 36, b"\x12\0\0\0\x24\0")
events.act(6_000_150, "D", "pc", 0, 0, bytes(6))
events.act(6_000_170, "D", "read pc", 0, 4)
events.act(6_000_200, "D", "flush write sync fs")
events.act(6_000_250, "D", "flush fs")
events.act(6_000_300, "C", "flush write sync fs")
events.act(6_000_400, "D", "read ahead fs", 4096, 65536)
events.act(6_000_450, "C", "read ahead fs", 4096, 65536)
events.act(6_000_500, "D", "discard write fs", 8192, 1 << 20)
events.act(6_000_550, "M", "write fs", 8200, 4096)
events.act(6_000_600, "Q", "flush write fua sync fs", 9000, 4096)
events.act(6_000_610, "P", "fs")
events.act(6_000_620, "U", "fs", data=struct.pack(">Q", 1))
events.act(6_000_630, "D", "write fua sync meta fs", 9000, 4096)
events.act(6_000_640, "X", "write fs", 9000, 4096, struct.pack(">Q", 9004))
remapped = struct.pack(">IIQ", DM[0] << 20 | DM[1], SDA[0] << 20 | SDA[1], 6952)
events.act(6_000_650, "A", "write fs", 9000, 4096, remapped)
Path(f"{sys.argv[1]}.blktrace.0").write_bytes(events.written)
