"""How many cells run at a time, as a user says it: a number, or ``auto``."""

from typing import Any, Final, Literal

from agelab.base.sanitize import parse_digits

Jobs = int | Literal["auto"]
AUTO: Final = "auto"
"""As many as the host can run."""
MAX_JOBS = 256
JOBS_WANTED = f"1 to {MAX_JOBS} cells at a time, or {AUTO}"


def parse_jobs(given: Any) -> Jobs:
    """Return a number of jobs, given as such or as text. Raises ValueError."""
    if given == AUTO:
        return AUTO
    jobs = parse_digits(given, MAX_JOBS) if isinstance(given, str) else given
    if not isinstance(jobs, int) or isinstance(jobs, bool) or not 1 <= jobs <= MAX_JOBS:
        raise ValueError(JOBS_WANTED)
    return jobs
