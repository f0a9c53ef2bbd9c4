"""ccache for kernels that are built: trees share one if they run the same commands while they are built.

Whatever is built can write anything into the ccache that it is given, so it decides what is found there later. So trees
share one that differ in nothing but code which is compiled into the kernel and not run here: they have the same
makefiles, scripts, programs and shared headers, and the same words in their configurations.
"""

import os
import re
from pathlib import Path

from agelab.base import atomic, git
from agelab.base.errors import naming_disk_errors
from agelab.base.hashing import key_of
from agelab.kernel.build_inputs import BuildInputs
from agelab.kernel.source_tree import SourceTree, git_output

KEPT = 4
"""Caches that a repository keeps: those that were used last."""
_PLACES = (
    "block",
    "drivers/block",
    "drivers/md",
    "drivers/nvdimm",
    "drivers/nvme",
    "fs",
    "io_uring",
    "kernel",
    "mm",
)
"""Directories whose code is compiled into the kernel, and is not a part of a program that is run while it is built."""
_CODE = re.compile(rf"100644 blob [0-9a-f]+\t(?P<path>({'|'.join(_PLACES)})/[\w/+.-]+\.[ch])")
_RUNS = ("hostprogs", "hostcc", "hostcxx", "hostlibs", "userprogs", "bpftool")
"""Words of a makefile for programs that are run, whatever lies below it."""
_BPF = "kernel/bpf/"
"""It lends bpftool its disassembler."""
_SWITCH = re.compile(r"\s*(#.*)?|CONFIG_\w+=([ymn]|\d+)")
"""A line of configuration that no makefile could take for a command."""


def of(inputs: BuildInputs) -> Path:
    """Return the ccache directory of a build. The caller holds the lock of its repository."""
    source = inputs.source
    lines = [line for line in inputs.config_text.split("\n") if not _SWITCH.fullmatch(line)]
    top = source.cache_dir / "ccaches"
    own = top / key_of([_what_may_run(source), lines])[:16]
    directory = own / "ccache"  # what is built can give it any time, and not to the one around it
    with naming_disk_errors(source.cache_dir):
        directory.mkdir(parents=True, exist_ok=True)
    os.utime(own)
    for old in sorted(top.iterdir(), key=lambda path: path.stat().st_mtime_ns)[:-KEPT]:
        atomic.remove(old)
    return directory


def _what_may_run(source: SourceTree) -> list[str]:
    """List the files of a tree that may have a command run in a build, with mode and content."""
    words = [word for run in _RUNS for word in ("-e", run)]
    argv = ["grep", "-a", "-i", "-l", "-z", *words, source.tree, "--", *_PLACES, ":!*.c", ":!*.h"]
    named = git.run(source.cache_dir / "git", argv, ok=(0, 1)).stdout.split("\0")
    run = (_BPF, *(f"{name.partition(':')[2].rpartition('/')[0]}/" for name in named if name))
    found = []
    for line in git_output(source.cache_dir, ["ls-tree", "-r", "-z", source.tree]).split("\0"):
        code = _CODE.fullmatch(line)
        if not code or code["path"].startswith(run):
            found.append(line)
    return found
