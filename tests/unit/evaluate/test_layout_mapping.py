"""Places on the disk under test are followed to its drives, as md and device-mapper lay them."""

import pytest

from agelab.base.errors import AgelabError
from agelab.evaluate.layout import measures
from agelab.evaluate.layout.mapping import Mapping, NotFollowed, parse_mapping
from agelab.evaluate.layout.model import Extent, ExtentMap, FileMap

MEMBERS = "member 0 254:0\nmember 1 254:1\nmember 2 254:2\ntop 9:0\n"
KIB = 1024


def mapping(lines: str, top: str = "9:0") -> Mapping:
    return parse_mapping(MEMBERS.replace("top 9:0", f"top {top}").encode() + lines.encode())


def test_raid0_takes_turns() -> None:
    found = mapping("md 9:0 raid0 65536 2 0:254:0 8:254:1\n")
    assert found.follow(60 * KIB, 72 * KIB) == [(0, 60 * KIB, 4 * KIB), (1, 8 * 512, 64 * KIB), (0, 64 * KIB, 4 * KIB)]


def test_raid1_stands_for_its_first_member() -> None:
    found = mapping("md 9:0 raid1 0 0 2048:254:0 2048:254:1\n")
    assert found.follow(4096, 8192) == [(0, 2048 * 512 + 4096, 8192)]


def test_raid5_begins_behind_the_parity() -> None:
    """Rows of left-symmetric over three: D0 D1 P, D3 P D2, P D4 D5 (linux/drivers/md/raid5.c)."""
    found = mapping("md 9:0 raid5 4096 2 0:254:0 0:254:1 0:254:2\n")
    chunks = [found.follow(number * 4096, 4096)[0] for number in range(7)]
    assert [(member, start // 4096) for member, start, _ in chunks] == [
        (0, 0), (1, 0), (2, 1), (0, 1), (1, 2), (2, 2), (0, 3),
    ]  # fmt: skip


def test_device_mapper_is_followed_through_its_tables() -> None:
    linear = mapping("dm 253:5 0 16 linear 254:0 2048\ndm 253:5 16 16 linear 254:1 2048\n", "253:5")
    assert linear.follow(15 * 512, 1024) == [(0, (2048 + 15) * 512, 512), (1, 2048 * 512, 512)]
    striped = mapping("dm 253:5 0 1000 striped 2 128 254:0 2048 254:1 2048\n", "253:5")
    assert striped.follow(0, 128 * KIB) == [(0, 1 << 20, 64 * KIB), (1, 1 << 20, 64 * KIB)]
    crypt = mapping(f"dm 253:5 0 1000 crypt aes-xts-plain64 {'0' * 128} 0 254:0 0\n", "253:5")
    assert crypt.follow(512, 512) == [(0, 512, 512)]
    origin = mapping("dm 253:5 0 80 snapshot-origin 253:6\ndm 253:6 0 80 linear 254:0 2048\n", "253:5")
    assert origin.follow(0, 4096) == [(0, 1 << 20, 4096)]


def test_what_the_kernel_does_not_tell_is_not_followed() -> None:
    cache = mapping("dm 253:5 0 1000 cache 254:2 254:1 254:0 128 1 writethrough smq 0\n", "253:5")
    with pytest.raises(NotFollowed, match="does not tell where dm-cache puts data on its drives"):
        cache.follow(0, 4096)
    with pytest.raises(NotFollowed, match="does not tell where device 9:0 puts"):
        mapping("").follow(0, 4096)
    loop = mapping("dm 9:0 0 80 linear 9:0 0\n")
    with pytest.raises(NotFollowed):
        loop.follow(0, 512)


@pytest.mark.parametrize(
    "line", ["md 9:0 raid0", "dm 9:0 0 x linear 254:0 0", "dm 9:0 0 8 striped 2 128 254:0", "what 1", "member x 254:0"]
)
def test_a_line_that_is_none_is_told_with_its_number(line: str) -> None:
    with pytest.raises(AgelabError, match="mapping of the disk, line 5: not as expected"):
        mapping(f"{line}\n")


def test_runs_are_counted_on_the_drives() -> None:
    file = FileMap("a", 1, 128 * KIB, 128 * KIB, 1, (Extent(0, 0, 128 * KIB, 0),))
    found = ExtentMap(4096, "fiemap", (file,))
    values = {
        one.metric: one.value
        for one in measures.drive_measures(found, mapping("md 9:0 raid0 65536 2 0:254:0 0:254:1\n"))
    }
    assert values == {"drive_extents": 2, "drive_layout_score": round(30 / 31, 6)}
    [one, _] = measures.drive_measures(found, mapping(""))
    assert one.value is None and "does not tell where device 9:0 puts" in str(one.not_measured)
    [one, _] = measures.drive_measures(found, None, "dmsetup failed")
    assert one.not_measured == "dmsetup failed"
