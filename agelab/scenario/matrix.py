"""A matrix of values: a step that names some of its variables is done once for each combination of their values."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Annotated

from pydantic import Field, StrictFloat, StrictInt

from agelab.base.types import MAX_NAME_LENGTH
from agelab.scenario.guest_places import VARIABLES
from agelab.scenario.step import Action

MOST_COMBINATIONS = 64
"""Combinations for one step at most."""
AxisName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
Value = (
    StrictInt
    | Annotated[StrictFloat, Field(allow_inf_nan=False)]
    | Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=200)]
)
Matrix = Mapping[AxisName, Annotated[tuple[Value, ...], Field(min_length=1)]]


def problems(matrix: Matrix, taken: Iterable[str]) -> Iterator[str]:
    """Yield the variables of a matrix that have a meaning already; ``taken`` are the scenario's own."""
    for axis in matrix:
        if axis.upper() in {*taken, *VARIABLES}:
            yield f"matrix.{axis}: ${axis.upper()} has a meaning already: choose another name"


def combined(action: Action, matrix: Matrix, used: Iterable[str]) -> tuple[Action, ...]:
    """Return a step once for each combination of the axes that it uses, named after its values.

    Raises ValueError for too many, and for a value or a name that cannot be.
    """
    axes = [axis for axis in matrix if axis in used]
    if not axes:
        return (action,)
    count = math.prod(len(matrix[axis]) for axis in axes)
    if count > MOST_COMBINATIONS:
        raise ValueError(f"matrix: {count} combinations for step {action.name}: {MOST_COMBINATIONS} at most")
    steps: dict[str, Action] = {}
    for values in product(*(matrix[axis] for axis in axes)):
        step = _combination(action, dict(zip(axes, map(str, values), strict=True)))
        if steps.setdefault(step.name, step) is not step:
            raise ValueError(f"matrix: two combinations of values have one name, {step.name}: leave one of them out")
    return tuple(steps.values())


def _combination(action: Action, values: Mapping[str, str]) -> Action:
    name = action.name
    for axis, value in values.items():
        slug = re.sub(r"[^a-z0-9_]+", "-", value.lower()).strip("-")
        if not slug:
            raise ValueError(f"matrix.{axis}: {value!r} has no letter or digit to name a step by")
        name += f"-{axis}-{slug}"
    if len(name) > MAX_NAME_LENGTH:
        raise ValueError(f"matrix: {name} is a name of more than {MAX_NAME_LENGTH} characters")
    environment = {axis.upper(): value for axis, value in values.items()}
    return action.model_copy(update={"name": name, "environment": {**action.environment, **environment}})
