"""A measurement in a program's output, and the machine's time for the guest's."""

import math
from dataclasses import dataclass, replace

from agelab.results.result import MAX_MAGNITUDE
from agelab.scenario.units import time_power

DIGITS = 9
"""Significant digits of a number that was scaled."""
SHOWN = 60
"""Characters of an output that a reason quotes."""


class UnreadableOutput(Exception):
    """An output is not what its reader expects. The message is the reason, in one line."""


@dataclass(frozen=True)
class Reading:
    """One number, in its metric's unit and in the guest's time."""

    metric: str
    value: float | None
    part: str = ""
    """The part of the program that measured it, as a job of fio; empty for the whole."""
    not_measured: str | None = None
    """The reason where there is no value."""

    def of_part(self, part: str) -> "Reading":
        """Return it as one of a part's."""
        return replace(self, part=part)

    def in_machine_time(self, unit: str, dilation: float) -> float | None:
        """Return the value as the machine's clock has it: ``dilation`` of its seconds pass in one of the guest's."""
        power = time_power(unit)
        if self.value is None or power == 0 or dilation == 1:
            return self.value
        scaled = self.value * dilation if power > 0 else self.value / dilation
        return rounded(scaled)


def rounded(value: float) -> float:
    """Return a number with as many digits as are kept."""
    return float(f"{value:.{DIGITS}g}")


def checked(value: float) -> float:
    """Return a number that a sample can hold. Raises ValueError for any other."""
    if not math.isfinite(value) or abs(value) > MAX_MAGNITUDE:
        raise ValueError(f"{value:g} is no number that a result can hold")
    return value


def quoted(text: str) -> str:
    """Return the beginning of an output, for a reason."""
    shown = " ".join(text.split())
    return repr(shown[:SHOWN]) if shown else "nothing"
