"""Read the values of a run's options as the command line gives them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationInfo

from agelab.analysis.decision import require_form
from agelab.base.errors import InputError, unknown
from agelab.base.places import layout_names
from agelab.machine.disk import parse_list
from agelab.runner.plan.block_change import BlockChange
from agelab.runner.plan.drive_failure import DriveFailure
from agelab.runner.plan.power_cut import PowerCut
from agelab.scenario.control_file import require_device
from agelab.scenario.option_matrix import parse_matrix

LOOKS = (5, 7, 10, 14, 20)
"""Run seeds after which it is looked whether a question is decided, where they are added until it is."""


MAX_SEEDS = 10_000
"""Seeds in one range."""


def refusing(check: Callable[[Any], object]) -> Callable[[Any], Any]:
    """Turn a check that raises InputError into a validator, so that pydantic collects the errors of all fields."""

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except InputError as error:
            raise ValueError(error) from error

    return checked


def one_kernel(value: Any) -> Any:
    """Take the one kernel of a list. Raises InputError for several."""
    if not isinstance(value, tuple | list):
        return value
    if len(value) != 1:
        raise InputError(f"--kernel: {len(value)} kernels: only agelab run takes several")
    return value[0]


def seeds(value: Any) -> Any:
    """Read run seeds: ``1,2,3`` or ``1-3``."""
    return _numbers(value, "run seeds", "1,2,3 or 1-3")


def distinct_seeds(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Check that each run seed stands there once."""
    return _distinct(seeds, "run seed", 31)


def corpora(value: Any) -> Any:
    """Read corpus seeds: ``1,2`` or ``1-2``, or one as a number."""
    return (value,) if isinstance(value, int) else _numbers(value, "corpus seeds", "1,2 or 1-2")


def distinct_corpora(corpora: tuple[int, ...]) -> tuple[int, ...]:
    """Check that each corpus seed stands there once."""
    return _distinct(corpora, "corpus seed", 63)


def _numbers(value: Any, called: str, example: str) -> Any:
    if not isinstance(value, str):
        return tuple(value) if isinstance(value, list) else value
    found: list[int] = []
    try:
        for word in value.split(","):
            first, dash, last = word.partition("-")
            run = range(int(first), int(last if dash else first) + 1)
            if not 0 < len(run) <= MAX_SEEDS:
                raise ValueError
            found += run
    except ValueError:
        raise ValueError(f"{called} are whole numbers separated by commas, like {example}") from None
    return tuple(found)


def _distinct(numbers: tuple[int, ...], called: str, bits: int) -> tuple[int, ...]:
    if not numbers or len(set(numbers)) != len(numbers) or min(numbers) < 0 or max(numbers) >= 2**bits:
        raise ValueError(f"each {called} once, from 0 to 2**{bits} - 1")
    return numbers


def question(text: str | None) -> str | None:
    """Check the form of a question, whose metric may be a scenario's own; an empty one is none."""
    if text:
        require_form(text)
    return text or None


def minutes(value: float | None) -> float | None:
    """Check a number of minutes."""
    if value is not None and not 0 < value < 10**6:
        raise ValueError("a number of minutes above 0")
    return value


def share(value: float | None) -> float | None:
    """Check a share of the cells."""
    if value is not None and not 0 < value <= 1:
        raise ValueError("a share is more than 0 and 1 at most, like 0.05")
    return value


def drives(value: Any, other: ValidationInfo) -> Any:
    """Read drives: ``model:none`` or ``file:a.img,file:b.img``, relative to the options' directory."""
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value) and value:
        value = ",".join(value)
    if not isinstance(value, str):
        return () if value is None else value
    try:
        return parse_list(value, Path(other.data.get("directory", "")))
    except InputError as error:
        raise ValueError(error) from error


def serials(value: Any) -> Any:
    """Read serial numbers of drives: ``A1,B2``."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",")) if value else ()
    return tuple(value) if isinstance(value, list) else value


def power_cut(text: str | None) -> str | None:
    """Check where the power is cut."""
    if text is not None:
        PowerCut.parse(text)
    return text


def failure(text: str | None) -> str | None:
    """Check where a drive fails; an empty word is nowhere."""
    if text:
        DriveFailure.parse(text)
    return text or None


def block(text: str | None) -> str | None:
    """Check a change of the block layer; an empty word is none."""
    if text:
        BlockChange.parse(text)
    return text or None


def options(text: str | None) -> str | None:
    """Check a matrix of mkfs and mount options; an empty one is none."""
    if text:
        try:
            parse_matrix(text)
        except ValueError as error:
            raise InputError(f"--options: {error}") from error
    return text or None


def layout(name: Any) -> Any:
    """Check that there is such a layout; an empty word is none."""
    if name and isinstance(name, str) and name not in layout_names():
        raise unknown("layout", name, layout_names())
    return name or None


def device(path: str) -> str:
    """Check the path under which scripts find the disk; an empty one is none."""
    if path:
        require_device(path)
    return path


def control(path: str | None) -> str | None:
    """Check that a control file has a name."""
    if path == "":
        raise InputError("--control: name a file (docs/control.md)")
    return path
