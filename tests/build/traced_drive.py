"""A made-up drive with a trace, in the format of DiskSim's validation set."""

from pathlib import Path
from random import Random

MODEL = """\
dm_disk MADE_UP {
   Number of data surfaces = 4,
   Number of cylinders = 2000,
   Block count = 780000,
   Layout Model = dm_layout_g1 {
      Zones = [
         dm_layout_g1_zone {
            First cylinder number = 0,
            Last cylinder number = 999,
            Blocks per track = 110,
            Skew for track switch = 12.0,
            Skew for cylinder switch = 20.0,
            slips = [
               5,
               7
            ],
            defects = []
         },
         dm_layout_g1_zone {
            First cylinder number = 1001,
            Last cylinder number = 1999,
            Blocks per track = 90,
            Skew for track switch = 10.0,
            Skew for cylinder switch = 16.0,
            slips = []
         }
      ]
   },
   Mechanical Model = dm_mech_g1 {
      Seek type = extracted,
      Full seek curve = made-up.seek,
      Add. write settling delay = 0.500000,
#      First ten seek times = [
#         1.0
#      ],
      Head switch time = 0.800000,
      Rotation speed (in rpms) = 7200
   }
} # end of MADE_UP
"""
SPECS = """\
disksim_disk MADE_UP {
   Model = source made-up.model,
   Scheduler = disksim_ioqueue {
      Scheduling policy = 1
   },
   Number of buffer segments = 3,
   Maximum number of write segments = 1,
   Segment size (in blks) = 281,
   Low (write) water mark = 0.000000,
   High (read) water mark = 0.000000,
   Buffer continuous read = 3,
   Maximum read-ahead (blks) = 281,
   Fast write level = 0,
   Immediate buffer read = 0,
   Read hit over. after read = 0.200000,
   Read hit over. after write = 0.300000,
   Read miss over. after read = 0.600000,
   Read miss over. after write = 0.600000,
   Write hit over. after read = 0.500000,
   Write hit over. after write = 0.400000,
   Write miss over. after read = 1.000000,
   Write miss over. after write = 0.900000,
   Read completion overhead = 0.050000,
   Write completion overhead = 0.000000
}
"""
SEEK = "Seek distances measured: 6\n1,\t1.5\n2,\t1.7\n10,\t2.5\n100,\t5.0\n1000,\t10.0\n1999,\t14.0\n"


def write(directory: Path, **changed: str) -> Path:
    """Write the drive's files, and a trace of nothing in particular; ``changed`` has others, or ``""`` for none."""
    files = {"trace": lines(60), "model": MODEL, "diskspecs": SPECS, "seek": SEEK} | changed
    for ending, text in files.items():
        if text:
            (directory / f"made-up.{ending}").write_text(text)
    return directory


def lines(count: int, seed: int = 1) -> str:
    """A trace of so many lines."""
    random = Random(seed)
    return "".join(
        f"{random.choice('RW')} Hit {random.randrange(779_000)} {random.choice((2, 8, 16))}"
        f" {random.uniform(500, 20_000):.3f} {random.uniform(3000, 40_000):.3f}\n"
        for _ in range(count)
    )
