"""A kernel's configuration: fragments put together, and what came of them.

Format: Documentation/kbuild/kconfig.rst of Linux (.config, KCONFIG_ALLCONFIG).
"""

import re
from collections.abc import Mapping

from agelab.errors import InputError
from agelab.kernel.recipes import DIRECTORY

NEEDED = DIRECTORY / "needed.config"
"""What every guest needs."""
SMALL = DIRECTORY / "small.config"
"""What a kernel has beside it when no other configuration is asked for."""

DISTRIBUTION = DIRECTORY / "distribution.config"
"""What a distribution's configuration is changed in."""

# As conf reads it: a comment says nothing but that an option is not set, and what follows a y or m is passed over.
_LINE = re.compile(r'# (CONFIG_\w+) is not set|(CONFIG_\w+)=(".*"|[^#]*?)(?:\s*#.*)?')


def options(text: str) -> dict[str, str]:
    """Name to value of a .config or a fragment, the last line counting; what is not set is ``n``."""
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1] or match[2]: match[3] or "n" for match in found if match}


def missing_options(text: str, wanted: str) -> dict[str, str]:
    """Of a fragment the options that a .config does not honour, to what it has; ``=m`` is honoured by ``=y``, too."""
    has = options(text)
    got = {name: (value, has.get(name, "n")) for name, value in options(wanted).items()}
    return {
        name: had
        for name, (asked, had) in got.items()
        if had not in ({asked, "y"} if asked == "m" else {asked})
    }


def check(text: str, fragments: Mapping[str, str], version: str) -> None:
    """Refuse a .config that lacks what a guest needs, or a line of the user's fragments.

    Raises InputError with every option by name.
    """
    if missing := missing_options(text, NEEDED.read_text()):
        raise InputError(
            f"the configuration lacks what a guest needs of a kernel: {', '.join(sorted(missing))}",
            hint=f"{NEEDED.name} says what for; an option may need others: make menuconfig in the tree tells which",
        )
    for name, fragment in fragments.items():
        if ignored := missing_options(text, fragment):
            said = ", ".join(f"{option} (it is {had})" for option, had in sorted(ignored.items()))
            raise InputError(
                f"{name}: Linux {version} does not take {said}",
                hint="it needs other options too, or this version has no such option",
            )
