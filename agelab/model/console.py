"""What a guest's console says of a kernel in trouble."""

import re

PANIC = re.compile(r"Kernel panic - not syncing: .*")
TROUBLE = re.compile(r"(BUG: |Oops: |kernel BUG at |general protection fault|agelab init: ).*")


def panic(console: str) -> str | None:
    """How a kernel that panicked says so, with the first trouble that it had; None where it did not."""
    found, trouble = PANIC.search(console), TROUBLE.search(console)
    if not found:
        return None
    return found.group().strip() + (f" ({trouble.group()})" if trouble else "")
