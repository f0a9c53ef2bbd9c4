"""Event lines, as a boot hears them from its guest."""

from collections.abc import Iterator

from agelab.base.hashing import canonical_json
from agelab.evaluate import event_code
from agelab.evaluate.boot_events import BootEvents
from agelab.results.key_and_digest import digest
from agelab.results.result import Sample, Status

LINES = (
    '{"event":"ready","boot":0,"uptime":4.25,"release":"6.1.0-50-amd64","watchdog":true}',
    '{"event":"sample","step":"copy","metric":"elapsed","value":1.234567,"unit":"s","repetition":1}',
    '{"event":"sample","step":"aged/map","metric":"extents","value":null,"unit":"1","repetition":12,'
    '"not_measured":"why not"}',
    '{"event":"step","step":"copy","repetition":2}',
    '{"event":"failed","step":"read","repetition":1,"status":2,"said":"cat: a: Input/output error"}',
    '{"event":"mounted","type":"ext4","options":"rw,relatime"}',
    '{"event":"reboot","next":3}',
    '{"event":"end","status":"ok","reason":null}',
    '{"event":"end","status":"hung","reason":"step stuck, repetition 1: no end within 5000 s of guest time"}',
)


def one(data: bytes) -> None:
    """Hear each line, as it is and as the harness's own; what was measured can be kept and hashed."""
    heard, samples = BootEvents(), list[Sample]()
    for number, raw in enumerate(data.split(b"\n"), start=1):
        line = raw.decode("ascii", "replace")
        heard.hear(line, "aged", samples.append, lambda step: None)
        if line.startswith("{"):
            heard.hear(event_code.encode(number, line, heard.secret), "aged", samples.append, lambda step: None)
    digest(Status.OK, samples, {})
    for sample in samples:
        assert Sample.model_validate_json(canonical_json(sample.model_dump())) == sample


def seeds() -> Iterator[bytes]:
    """Each event that there is, and a whole boot."""
    yield from (line.encode() for line in LINES)
    yield "\n".join(LINES).encode()
    yield ("\n".join(LINES)[:-7] + "[   12.345678] BUG: unable to handle page fault\n" + LINES[1]).encode()
