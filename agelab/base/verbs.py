"""The verbs of the command line, and how to type them: a hint can be pasted whether or not agelab is on the PATH."""

import re
import shlex
import shutil
import sys
from pathlib import Path

GROUPS = {
    "Run": {
        "new": "Write a scenario of your own, with a comment on every line.",
        "run": "Run a scenario, each cell in a fresh guest.",
        "plan": "Say what a run would take: its cells and their time.",
        "resume": "Run the cells of a run that have not ended.",
        "age": "Make the disks of a scenario and keep them.",
    },
    "Look": {
        "list": "List runs, scenarios, filesystems, drives, kernels, metrics, ...",
        "show": "Show one run's samples, as a table or as JSON.",
        "report": "Write runs as one page: the answer, tables, charts, doubts.",
        "profile": "Show in which kernel functions a step's processor time went.",
        "history": "Write and check operation logs.",
    },
    "Compare": {
        "compare": "Name the inputs and results in which two runs differ.",
        "sweep": "Put runs on several kernels into one table, changes marked.",
        "bisect": "Find the kernel that changed a result.",
        "track": "Follow numbers over commits night by night; find what changed them.",
        "why": "Change one factor of a claim's cells at a time: which flips it?",
        "replicate": "Put runs beside the published study that they follow.",
        "calibrate": "Measure how far chance moves the results of a scenario.",
    },
    "Test": {
        "test": "Run a suite of tests over many seeds; replay each failure.",
        "crash": "Look at each state in which a power cut can leave a filesystem.",
        "debug": "Run a cell to a moment, and open it in gdb.",
    },
    "Keep": {
        "export": "Write runs as CSV, JSON lines, SQLite, Parquet or JUnit.",
        "capsule": "Pack a run into one file; replay such a file.",
        "mirror": "Write the packages of runs as an archive for other hosts.",
        "disk": "Show, export, import and remove stored disks.",
        "rm": "Remove runs.",
        "store": "List what the store holds; prune it to a size.",
    },
    "Host": {
        "doctor": "Say what this host can do, and what to install.",
        "kernel": "Fetch, build and show guest kernels.",
        "image": "Build and show guest images.",
        "corpus": "Build and list the seeded input data.",
        "schema": "Print the JSON Schema of a scenario, drive, ..., or a result.",
        "worker": "Run one cell of a plan for several hosts.",
        "completion": "Let the shell complete verbs, options and names.",
        "help": "Show the help of a verb.",
    },
}
"""Each verb by what it is for, and what it does."""
VERBS = {verb: does for verbs in GROUPS.values() for verb, does in verbs.items()}
_COMMAND = re.compile(rf"(?<![\w./-])(?:\.venv/bin/)?agelab (?=(?:{'|'.join(VERBS)})\b)")
"""The name of the program where a command begins."""


def as_called(text: str) -> str:
    """Name the program in each command of a text as the user has called it: ``.venv/bin/agelab resume``."""
    return _COMMAND.sub(lambda _: f"{_program()} ", text)


def _program() -> str:
    """Return ``agelab`` where a shell finds it so, or where Python's own code called; else the path that was typed."""
    called, known = Path(sys.argv[0]), shutil.which("agelab")
    if called.name != "agelab" or (known and Path(known).resolve() == called.resolve()):
        return "agelab"
    return shlex.quote(sys.argv[0])
