"""The verbs of the command line, and how to type them: a hint can be pasted whether or not agelab is on the PATH."""

import re
import shlex
import shutil
import sys
from pathlib import Path

VERBS = {
    "doctor": "Say what this host can do, and what to install.",
    "kernel": "Fetch, build, list and show guest kernels.",
    "image": "Build and list guest images.",
    "corpus": "Build and list the seeded input data.",
    "history": "Write and check operation logs.",
    "run": "Run a scenario, each cell in a fresh guest.",
    "resume": "Run the cells of a run that have not ended.",
    "age": "Make the disks of a scenario and keep them.",
    "disk": "List, show, export, import and remove stored disks.",
    "store": "List what the store holds; prune it to a size.",
    "list": "List runs, newest first.",
    "profile": "Show in which functions of the kernel a step's processor time went.",
    "show": "Show one run's samples, as a table or as JSON.",
    "export": "Write runs as CSV, JSON lines, SQLite, Parquet or JUnit.",
    "compare": "Name the inputs and results in which two runs differ.",
    "sweep": "Put runs on several kernels into one table, changes marked.",
    "bisect": "Find the kernel that changed a result.",
    "track": "Follow numbers over commits or packages night by night; find what changed them.",
    "crash": "Look at each state in which a power cut can leave a filesystem.",
    "test": "Run a suite of tests over many seeds; replay each failure.",
    "capsule": "Pack a run into one file; replay such a file.",
    "mirror": "Write the packages of runs as an archive for other hosts and later years.",
    "replicate": "Put runs beside the published study that they follow, claim by claim.",
    "why": "Run a claim's cells again, one factor changed at a time: which flips it?",
    "plan": "Say what a run would take: its cells and their time.",
    "worker": "Run one cell of a plan for several hosts.",
    "report": "Write runs as one page: the answer, tables, charts, doubts.",
    "calibrate": "Measure how far chance moves the results of a scenario.",
    "schema": "Print the JSON Schema of a scenario, drive, ..., or a result.",
}
"""Each verb, and what it does."""
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
