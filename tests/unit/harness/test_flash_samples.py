"""What a step tells of a solid-state drive's flash."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from harness import step
from harness.events import Events
from harness.plan import Step


@dataclass
class Heard:
    """Stands for the events of a guest."""

    missing: list[str] = field(default_factory=list)

    def not_measured(self, name: str, repetition: int, metric: str, unit: str, why: str) -> None:
        assert name and repetition and unit and why
        self.missing.append(metric)


@dataclass
class Named:
    """Stands for a step."""

    name: str = "copy"
    repetition: int = 1


def told(grown: dict[str, int]) -> tuple[dict[str, tuple[float, str]], list[str]]:
    """The samples by metric, and what was not measured."""
    found: dict[str, tuple[float, str]] = {}
    heard = Heard()

    def sample(metric: str, value: float, unit: str) -> None:
        found[metric] = value, unit

    step.flash(grown, sample, cast(Events, heard), cast(Step, Named()))
    return found, heard.missing


GROWN = {
    "sectors_written": 80, "flash_reads": 7, "units_programmed": 24, "units_moved": 9, "units_discarded": 2,
    "blocks_erased": 16, "gc_wait_ns": 1_500_000,
}  # fmt: skip


def test_a_solid_state_drive_tells_what_its_flash_did() -> None:
    found, missing = told(GROWN)
    assert found == {
        "flash_reads": (7, "1"),
        "flash_programmed": (24 * 4096, "B"),
        "flash_moved": (9 * 4096, "B"),
        "discarded": (2 * 4096, "B"),
        "blocks_erased": (16, "1"),
        "gc_wait": (0.0015, "s"),
        "write_amplification": (pytest.approx(2.4), "1"),
    }
    assert missing == []


def test_where_nothing_was_written_there_is_no_amplification() -> None:
    found, missing = told(GROWN | {"sectors_written": 0})
    assert "write_amplification" not in found and missing == ["write_amplification"]


def test_other_drives_tell_nothing_of_it() -> None:
    assert told({"sectors_written": 80}) == ({}, [])
