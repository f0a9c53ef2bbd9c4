"""Where the modelled disk's sectors are and how long a seek takes, a second time (tests/model/reference.py)."""

from bisect import bisect_left, bisect_right
from math import isqrt


class Geometry:
    """Where sectors are. Points of the spiral are nanoseconds of passing from sector 0 on, skews included."""

    def __init__(self, words: dict[str, str]) -> None:
        number = {name: int(value) for name, value in words.items() if value.lstrip("-").isdigit()}
        self.sectors, self.revolution = number["sectors"], number["revolution_ns"]
        self.phase, self.heads, self.cylinders = number["phase_ns"], number["heads"], number["cylinders"]
        self.curve = number["seek_min_ns"], number["seek_sqrt_ns"], number["seek_linear_ns"]
        self.settle, self.switch = number["write_settle_ns"], number["head_switch_ns"]
        self.skews = number.get("track_skew_ns", 0), number.get("cylinder_skew_ns", 0)
        self.measured = [_pair(text) for text in words.get("seek", "").split(",") if text]
        self.firsts: list[int] = []
        self.tracks: list[int] = []
        self.widths: list[int] = []
        for first, width in map(_pair, words["zones"].split(",")):
            whole = (first - self.firsts[-1]) // self.widths[-1] if self.firsts else 0
            self.tracks.append(self.tracks[-1] + whole if self.tracks else 0)
            self.firsts.append(first)
            self.widths.append(width)

    def place(self, sector: int) -> tuple[int, int]:
        """The track, and the time from its beginning to the sector's."""
        zone = bisect_right(self.firsts, sector) - 1
        track, inside = divmod(sector - self.firsts[zone], self.widths[zone])
        return self.tracks[zone] + track, inside * self.revolution // self.widths[zone]

    def begins(self, track: int) -> int:
        """The point at which a track begins: a revolution for each before it, and what lies between them."""
        borders = track // self.heads
        return track * self.revolution + (track - borders) * self.skews[0] + borders * self.skews[1]

    def turn(self, sector: int) -> int:
        """The point at which a sector begins."""
        track, angle = self.place(sector)
        return self.begins(track) + angle

    def behind(self, end: int) -> int:
        """The point at which the sector before it has passed."""
        if not end:
            return 0
        track, _ = self.place(end - 1)
        zone = bisect_right(self.firsts, end - 1) - 1
        inside = (end - 1 - self.firsts[zone]) % self.widths[zone]
        return self.begins(track) + (inside + 1) * self.revolution // self.widths[zone]

    def track_end(self, sector: int) -> int:
        """The sector behind the last of its track."""
        zone = bisect_right(self.firsts, sector) - 1
        return sector + self.widths[zone] - (sector - self.firsts[zone]) % self.widths[zone]

    def at(self, turn: int) -> int:
        """The last sector that has begun by that point; between two tracks the first of the second."""
        track = bisect_right(range(turn // self.revolution + 2), turn, key=self.begins) - 1
        angle = turn - self.begins(track)
        if angle >= self.revolution:
            track, angle = track + 1, 0
        zone = bisect_right(self.tracks, track) - 1
        width = self.widths[zone]
        begun = bisect_right(range(width), angle, key=lambda inside: inside * self.revolution // width) - 1
        return self.firsts[zone] + (track - self.tracks[zone]) * width + begun

    def seek(self, cylinders: int) -> int:
        """The measured curve; or Lee and Katz's, the share of the full stroke in 32 bits and its root in 16."""
        if not cylinders:
            return 0
        if self.measured:
            return self._measured(cylinders)
        least, root, linear = self.curve
        share = (cylinders - 1 << 32) // (self.cylinders - 2)
        return least + (root * isqrt(share) >> 16) + (linear * (share >> 8) >> 24)

    def _measured(self, cylinders: int) -> int:
        at = bisect_left(self.measured, cylinders, key=lambda point: point[0])
        if at == len(self.measured):
            return self.measured[-1][1]
        far, most = self.measured[at]
        if far == cylinders:
            return most
        near, least = self.measured[at - 1]
        return least + (most - least) * (cylinders - near) // (far - near)

    def wait(self, sector: int, now: int) -> int:
        """Until the sector comes round."""
        return (self.turn(sector) - now - self.phase) % self.revolution


def _pair(text: str) -> tuple[int, int]:
    one, other = text.split(":")
    return int(one), int(other)
