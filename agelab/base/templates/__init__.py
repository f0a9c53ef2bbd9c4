"""The texts of files that agelab writes, as Jinja templates beside this file."""

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def fill(name: str, filters: Mapping[str, Callable[..., str]], /, **values: Any) -> str:
    """Return the text of a template. Nothing is escaped but by its filters: ``sh`` quotes a word for a shell."""
    environment = Environment(
        loader=PackageLoader("agelab.base"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"sh": shlex.quote, **filters}
    return environment.get_template(name).render(values)
