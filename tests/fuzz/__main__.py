"""``python -m tests.fuzz TARGET``: so many inputs, made by libFuzzer (atheris) from the target's seeds.

What is fuzzed is compiled anew with counters at its branches, so that inputs which reach something new are kept and
changed further. Ends with 0 where no input raised, hung or took all memory; else the input lies in the directory that
is named, and ``python -m tests.fuzz TARGET FILE`` runs it again.
"""

import argparse
import hashlib
import importlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import atheris

SECONDS = 10
"""Limits of one input."""
MEMORY_MIB = 2048
MEMORY = Path("/dev/shm")
"""A directory in memory, where there is one."""
INSTRUMENTED = ["agelab", "tomllib", "tarfile"]
WORD = re.compile(rb"[A-Za-z][A-Za-z_-]{2,40}")
"""Seeds that libFuzzer itself puts into other places."""


def main() -> None:
    """Fuzz a target, or run inputs again."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("target", choices=names)
    parser.add_argument("inputs", nargs="*", type=Path, help="files to run, in place of made-up inputs")
    parser.add_argument("--runs", type=int, default=100_000, help="inputs to make up")
    parser.add_argument("--seed", type=int, default=1, help="of the fuzzer: the same inputs each time")
    options = parser.parse_args()
    if options.inputs:
        for path in options.inputs:
            loaded(options.target).one(path.read_bytes())
        return
    sys.exit(abs(fuzz(options.target, options.runs, options.seed)))


def loaded(name: str) -> Any:
    """Return a target whose branches, and those of what it reads with, are counted."""
    with atheris.instrument_imports(include=INSTRUMENTED):
        return importlib.import_module(f"tests.fuzz.{name}")


def fuzz(name: str, runs: int, seed: int) -> int:
    """Make up so many inputs for a target, and return libFuzzer's exit status."""
    target, found = loaded(name), Path(tempfile.mkdtemp(prefix=f"agelab-fuzz-{name}-"))
    with tempfile.TemporaryDirectory(prefix="agelab-fuzz-", dir=MEMORY if MEMORY.is_dir() else None) as made:
        corpus = Path(made, "corpus")
        corpus.mkdir()
        for one in target.seeds():
            (corpus / hashlib.sha1(one).hexdigest()).write_bytes(one)
        print(f"{name}: what fails is kept in {found}", flush=True)
        known = sorted({word for one in target.seeds() for word in WORD.findall(one)})
        Path(made, "words").write_text("".join(f'"{word.decode()}"\n' for word in known))
        # keep_seed: also those that reach nothing new; of a parser that is compiled no branch is counted.
        words = [f"-dict={made}/words", f"-runs={runs}", f"-seed={seed}", "-keep_seed=1"]
        words += [f"-timeout={SECONDS}", "-max_len=16384"]
        words += [f"-rss_limit_mb={MEMORY_MIB}", "-print_final_stats=1", f"-artifact_prefix={found}/"]
        child = os.fork()  # libFuzzer ends its process without a word to Python
        if not child:
            tempfile.tempdir = made
            atheris.Setup([sys.argv[0], *words, str(corpus)], target.one)
            atheris.Fuzz()
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not list(found.iterdir()):
        found.rmdir()
    return ended


if __name__ == "__main__":
    main()
