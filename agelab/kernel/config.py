"""Kernel configurations: parse them, and check that options were honoured.

Format: Documentation/kbuild/kconfig.rst of Linux (.config, KCONFIG_ALLCONFIG).
"""

import re
from collections.abc import Mapping

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.kernel.recipes import DIRECTORY

NEEDED = DIRECTORY / "needed.config"
"""Options that every guest needs."""
SMALL = DIRECTORY / "small.config"
"""Options of the small configuration, which is the default."""
DISTRIBUTION = DIRECTORY / "distribution.config"
"""Changes to a distribution's configuration."""

# As conf reads it: the one comment with a meaning is "is not set", also with text behind it (up to Linux 6.8), and text
# after a value is ignored.
_LINE = re.compile(r'# (CONFIG_\w+) is not set.*|(CONFIG_\w+)=(".*"|[^#]*?)(?:\s*#.*)?')


# Lines that conf reads as they are meant. Behind a number it takes nothing, before an option neither.
_READ = re.compile(
    r"(#.*|\s+#(?! CONFIG_\w+ is not set).*|"
    r'CONFIG_\w+=(-?(0[xX])?[0-9a-fA-F]+|([ymn]|"([^"\\]|\\.)*")(\s*#.*)?))?'
)


def options(text: str) -> dict[str, str]:
    """Map name to value in a .config or a fragment. The last line of a name counts; "is not set" is ``n``."""
    found: dict[str, str] = {}
    for match in filter(None, (_LINE.fullmatch(line.strip()) for line in text.split("\n"))):
        name = match[1] or match[2]
        found.pop(name, None)  # of a choice the last option counts
        found[name] = match[3] or "n"
    return found


def text_of(found: Mapping[str, str]) -> str:
    """Return the lines of options, as conf writes them."""
    lines = (f"# {name} is not set" if value == "n" else f"{name}={value}" for name, value in found.items())
    return "".join(f"{line}\n" for line in lines)


def require_readable(name: str, text: str) -> None:
    """Raise InputError for a line of a .config or a fragment that conf would drop."""
    for number, line in enumerate(text.split("\n"), 1):
        if not _READ.fullmatch(line.rstrip()):
            raise InputError(
                f"{name}, line {number}: Linux would drop {line.strip()[:80]!r}",
                hint='write CONFIG_A=y, m, n, 5, 0x5 or "text", or # CONFIG_A is not set, with nothing before it, '
                "and nothing behind a number",
            )


def missing_options(text: str, wanted: str) -> dict[str, str]:
    """Map the options of a fragment that a .config does not honour to its values; ``=m`` is also honoured by ``=y``."""
    has = options(text)
    got = {name: (value, has.get(name, "n")) for name, value in options(wanted).items()}
    return {
        name: had
        for name, (asked, had) in got.items()
        if had not in ({asked, "y"} if asked == "m" else {asked})
    }


def check(text: str, fragments: Mapping[str, str], version: str) -> None:
    """Raise InputError when a .config lacks options that guests need or that the user's fragments set."""
    if missing := missing_options(text, fileio.read_text(NEEDED)):
        raise InputError(
            f"the configuration lacks options that a guest needs: {', '.join(sorted(missing))}",
            hint=f"{NEEDED.name} says what for; an option may need others: make menuconfig in the tree tells which",
        )
    for name, fragment in fragments.items():
        if ignored := missing_options(text, fragment):
            listed = ", ".join(f"{option} (it is {had})" for option, had in sorted(ignored.items()))
            raise InputError(
                f"{name}: Linux {version} does not accept {listed}",
                hint="it needs other options too, or this version has no such option",
            )
