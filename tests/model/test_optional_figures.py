"""What a disk does with the figures that only some files have."""

from tests.model.native import Library
from tests.model.streams import NINETIES, number, old_scsi, settings

REVOLUTION, PER_TRACK = number(NINETIES, "revolution_ns"), 186
MISS, HIT, WRITE = (number(NINETIES, f"{kind}overhead_ns") for kind in ("", "hit_", "write_"))
SKEWS = number(NINETIES, "track_skew_ns"), number(NINETIES, "cylinder_skew_ns")


def bus(sectors: int) -> int:
    """Nanoseconds on the bus."""
    return sectors * 512 * 10**9 // number(NINETIES, "interface")


def test_tracks_begin_later_by_the_skew(library: Library) -> None:
    drive = library.drive(NINETIES)
    for track in range(1, 12):
        skew = SKEWS[0] if track % 5 else SKEWS[1]
        first, before = track * PER_TRACK, (track - 1) * PER_TRACK
        assert drive.turn(first) - drive.turn(before) == REVOLUTION + skew
        assert drive.turn(first) - drive.behind(first) == skew
        for point in (drive.behind(first), drive.turn(first) - 1, drive.turn(first)):
            assert drive.sector(point) == first, "between two tracks the head waits for the second"
        assert drive.sector(drive.behind(first) - 1) == first - 1


def test_a_read_over_two_tracks_passes_the_skew_once(library: Library) -> None:
    drive = library.drive(NINETIES)
    drive.read(0, 2 * PER_TRACK, 0)
    [movement] = drive.take_passes()
    turned = movement.done - MISS - drive.rotation(0, MISS)
    assert turned == 2 * REVOLUTION + SKEWS[0]


def test_a_measured_curve_is_followed_point_by_point(library: Library) -> None:
    drive = library.drive(NINETIES)
    for cylinders, ns in ((0, 0), (1, 1_940_000), (2, 1_956_000), (10, 2_400_000), (284, 9_000_000)):
        assert drive.seek(cylinders) == ns
    assert drive.seek(6) == (1_956_000 + 2_400_000) // 2
    assert drive.seek(2000) == 9_000_000, "beyond its end it is level"


def test_hits_and_writes_have_overheads_of_their_own(library: Library) -> None:
    drive = library.drive(NINETIES)
    now = drive.read(1000, 8, 0) + 10**8
    assert drive.read(1008, 8, now) == now + HIT + bus(8)
    now += 10**9
    assert drive.write(50_000, 8, now) == now + WRITE + bus(8)
    assert drive.get("busy_overhead_ns") == MISS + HIT + WRITE


def test_a_slow_bus_moves_a_read_while_it_comes(library: Library) -> None:
    """Its time begins with the first sector, or when so much is there as the drive waits for."""
    for percent in (0, 50, 100):
        drive = library.drive(old_scsi(bus_after_percent=percent))
        done = drive.read(1000, 100, 0)
        [movement] = drive.take_passes()
        begins = movement.done - (drive.behind(1100) - drive.turn(1000))
        came = begins + drive.behind(1000 + max(1, percent)) - drive.turn(1000)
        assert done == came + bus(100)
    quick = library.drive(old_scsi(interface=10**9))
    assert quick.read(1000, 100, 0) == quick.get("arm_free") + 512, "a quick one has only the last sector left"


def test_a_write_waits_for_its_data(library: Library) -> None:
    """The arm moves meanwhile; the head does not begin before so much has come as the drive wants."""
    begun = []
    for percent in (0, 100):
        drive = library.drive(old_scsi(write_back=0, write_after_percent=percent))
        drive.write(1000, 100, 0)
        [movement] = drive.take_passes()
        passing = drive.behind(1100) - drive.turn(1000)
        begun.append(movement.done - passing)
        needed = bus(100) * percent // 100 if percent else bus(100) - passing
        assert HIT + needed <= begun[-1] < HIT + needed + 2 * REVOLUTION
    assert (begun[1] - begun[0]) % REVOLUTION == 0, "the platters come round"


def test_a_track_is_read_from_where_the_head_comes(library: Library) -> None:
    for gap in range(0, REVOLUTION, REVOLUTION // 17):
        drives = [library.drive(old_scsi(any_order=order, read_ahead_bytes=0)) for order in (0, 1)]
        took = []
        for drive in drives:
            now = drive.read(4 * PER_TRACK, 1, 0) + gap
            done = drive.read(0, PER_TRACK, now)
            took.append(drive.get("arm_free") - now)
            assert done > drive.get("arm_free")
        seek = MISS + number(NINETIES, "head_switch_ns")
        assert took[1] <= seek + REVOLUTION + REVOLUTION // PER_TRACK + 1
        assert took[1] <= took[0]


def test_read_ahead_to_a_track_s_end(library: Library) -> None:
    """Of the read's last track; or, DiskSim's mode 4, of the next one where the segment began before the track."""
    border = 6 * PER_TRACK
    within, across, up_to = (border - 100, 8), (border - 40, 80), (border - 40, 40)
    for tracks, read, limit in (
        (1, within, border),
        (1, across, border + PER_TRACK),
        (1, up_to, border),
        (2, within, border),
        (2, across, border + 40 + 281),  # a segment more, which ends before the next track does
        (2, up_to, border + 281),
    ):
        drive = library.drive(old_scsi(read_ahead_tracks=tracks))
        drive.read(*read, 0)
        assert drive.get("stream_limit") == limit, (tracks, read)
    short = library.drive(old_scsi(read_ahead_tracks=2, cache_bytes=3 * 2048 * 512, read_ahead_bytes=2048 * 512))
    short.read(*across, 0)
    assert short.get("stream_limit") == border + 2 * PER_TRACK


def test_a_write_larger_than_the_cache_goes_through(library: Library) -> None:
    drive = library.drive(NINETIES)
    now = drive.write(1000, 8, 0)
    assert drive.get("dirty_sectors") == 8
    done = drive.write(1000, 300, now)
    assert drive.cache_size() < 300
    assert drive.get("dirty_sectors") == 0
    assert drive.take_written() == [(1000, 1008)]
    assert [(one.first, one.end, one.write) for one in drive.take_passes()] == [
        (1000, 1008, True),
        (1000, 1300, True),
    ]
    assert done >= drive.get("arm_free")


def test_the_quickest_to_reach_is_written_back_first(library: Library) -> None:
    """Of two writes on the track of the head the one that comes first, wherever it lies by address."""
    text = settings("seagate-st380021a")
    drive = library.drive(text)
    now = drive.read(1000, 8, 0)
    drive.write(600, 8, now)
    now = drive.write(104, 8, now)
    begins = drive.next()
    while drive.extents():
        drive.advance(drive.next())
    waits = {first: drive.rotation(first, begins) for first in (104, 600)}
    written = [one.first for one in drive.take_passes() if one.write]
    assert written == sorted(waits, key=waits.__getitem__)
