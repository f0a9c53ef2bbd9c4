"""The command that makes a run again, from the words that its plan has kept."""

from shlex import quote
from typing import Any

from agelab import places
from agelab.model.result import RunPlan

MAKE = {
    "corpus": "CORPUS", "log": "LOG", "kernel": "KERNEL", "filesystem": "FS", "layout": "LAYOUT", "scale": "SCALE",
    "clock": "CLOCK", "defaults": "DEFAULTS", "disks": "DISKS", "erase": "ERASE", "machine": "MACHINE",
    "vcpus": "VCPUS", "seeds": "SEEDS", "jobs": "JOBS", "trace": "TRACE", "disk": "DISK", "keep_disk": "KEEP_DISK",
    "curve": "CURVE",
}  # fmt: skip
"""What ``make scenario`` knows of the options."""
UNSAID = {"seeds": "1", "vcpus": 1, "jobs": 1, "corpus_seed": 1, "kernel": "debian:6.1"}
"""What an option is without being said."""
OPTIONS = {"proceed": "--continue"}
"""Options that are not called as their word."""
OF_NO_INTEREST = ("prove_all", "measure")
"""What is no option of the run itself."""


def again(plan: RunPlan) -> str:
    """``make scenario NAME=...``, or ``agelab run ...`` for what make has no word for, and of an installed agelab.

    Empty where there is none.
    """
    command = plan.command
    name, words, more = (command.get(key) for key in ("name", "words", "more"))
    if not isinstance(words, dict) or not isinstance(more or {}, dict):
        return ""
    asked = {
        word: value
        for word, value in {**words, **(more or {})}.items()
        if value not in (None, False, "", [], ()) and UNSAID.get(word) != value and word not in OF_NO_INTEREST
    }
    if not name and "control" not in asked:
        return ""
    verb = "age" if (more or {}).get("measure") is False else "run"
    if name and verb == "run" and set(asked) <= set(MAKE) and not places.INSTALLED:
        return " ".join(
            ["make scenario", f"NAME={quote(str(name))}", *(_made(*item) for item in asked.items())]
        )
    words_of = [part for item in asked.items() for part in _option(*item)]
    program = "agelab" if places.INSTALLED else ".venv/bin/agelab"
    return " ".join([program, verb, *([quote(str(name))] if name else []), *words_of])


def _made(word: str, value: Any) -> str:
    return f"{MAKE[word]}={'1' if value is True else quote(str(value))}"


def _option(word: str, value: Any) -> list[str]:
    name = OPTIONS.get(word, f"--{word.replace('_', '-')}")
    return [name] if value is True else [name, quote(str(value))]
