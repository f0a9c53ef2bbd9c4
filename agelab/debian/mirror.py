"""The Debian mirrors that the host's apt is configured to use."""

import re

from agelab.base import process
from agelab.base.errors import HostError
from agelab.debian.packages import host_suite

_RELEASE_URI = re.compile(r"'(?P<base>[^']+?)/dists/(?P<suite>[^']+?)/InRelease'")


def mirrors() -> tuple[str, str | None]:
    """Return the addresses of the host's Debian mirror and of its security mirror (None if it has none)."""
    codename = host_suite()
    # --print-uris also works on a host whose lists were never fetched.
    printed = process.run(["apt-get", "update", "--print-uris"]).stdout
    found = [(match["base"], match["suite"]) for match in _RELEASE_URI.finditer(printed)]
    bases = [base for base, suite in found if suite == codename]
    if not bases:
        raise HostError(
            f"the host's apt sources name no mirror for {codename}",
            hint="agelab builds its guests from the mirror in /etc/apt/sources.list",
        )
    # A third party's suite may have the name of Debian's; only Debian has updates for it.
    main = next((base for base in bases if (base, f"{codename}-updates") in found), bases[0])
    return main, next((base for base, suite in found if suite == f"{codename}-security"), None)
