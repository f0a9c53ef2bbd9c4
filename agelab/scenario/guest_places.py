"""Where a guest's steps find things: the disk under test, the data, and agelab's own files."""

DEVICES = "/dev/disk"
"""The directory of the disk under test and of forks, by name (harness/drives.py)."""
UNDER_TEST = "under-test"
"""The name of a boot's only disk."""
MOUNT, BESIDE_MOUNT = "/mnt", "/run/beside"
"""The mount points of the disk under test, in which steps begin, and of the filesystem beside it."""
SOURCE, AGED_MOUNT = "/run/source", "/run/aged"
"""The mount points of the corpus, and of a disk that a control is copied from."""
GUEST = "/run/agelab"
"""The directory of agelab's files, and of those that a scenario brings."""
JOBS, BROUGHT = "jobs", "brought"
"""The directories in it: of job files, and of directories and packages that were brought."""


def device(name: str) -> str:
    """Return the path of the disk of that name."""
    return f"{DEVICES}/{name}"


VARIABLES = {
    "PATH": "/usr/bin",
    "HOME": "/",
    "LC_ALL": "C",
    "PWD": MOUNT,
    "SOURCE": SOURCE,
    "AGED": AGED_MOUNT,
    "BESIDE": BESIDE_MOUNT,
    "DEVICE": device(UNDER_TEST),
    "CORPUS_SEED": "1",
    "REPETITION": "1",
    **dict.fromkeys(("JOB", "BROUGHT", "LD_LIBRARY_PATH", "IMAGE", "REFUSES", "SAFE", "OUTPUT_DISK"), ""),
}
"""Variables of every step, which no scenario may define, with values as far as they say where something lies."""
