"""The verbs of the command line, and how to type them: a hint can be pasted whether or not agelab is on the PATH."""

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple


class Verb(NamedTuple):
    """What a verb does, in a line, and commands that show it (a test parses them all)."""

    does: str
    examples: str


_TEXTS = {
    "Run": {
        "new": """Write a scenario of your own, with a comment on every line.
agelab new mine.toml                    # then: agelab run mine.toml --check
agelab new mine.toml --force            # once more from the beginning
agelab list filesystems                 # what its variants may be
""",
        "run": """Run a scenario, each cell in a fresh guest.
agelab run aging-reiserfs               # one variant of a scenario
agelab run mine.toml --check            # one small cell of your own
agelab run aging --filesystem ext4,xfs --seeds 1-5 --jobs auto
agelab run aging-ext4 --kernel 5.10 --kernel 6.12
""",
        "plan": """Say what a run would take: its cells and their time.
agelab plan aging                       # its cells, and the time that they take
agelab plan aging --seeds 1-5 --jobs 2
agelab plan mine.toml --slurm cells     # an array job for a cluster
""",
        "resume": """Run the cells of a run that have not ended.
agelab resume                           # the latest run
agelab resume 20261126 --jobs 2         # the run whose name begins so
agelab resume latest --on dask://10.0.0.1:8786
""",
        "age": """Make the disks of a scenario and keep them.
agelab age aging-ext4                   # then: agelab list disks
agelab age aging --filesystem ext4,xfs
agelab age fullness-or-usage --seeds 1,2
""",
    },
    "Look": {
        "list": """List runs, scenarios, filesystems, drives, kernels, metrics, ...
agelab list                             # the runs
agelab list scenarios
agelab list kernels --refresh           # what the mirror has now
""",
        "show": """Show one run's samples, as a table or as JSON.
agelab show                             # the latest run
agelab show 20261126 --json
agelab show latest --timing
""",
        "report": """Write runs as one page: the answer, tables, charts, doubts.
agelab report                           # the latest run, into report.html
agelab report 20261126 -o ext4.html
agelab report latest 20261125           # two runs on one page
""",
        "profile": """Show in which kernel functions a step's processor time went.
agelab run aging-ext4 --profile         # first: it takes the samples
agelab profile latest copy
agelab profile latest aged/read --against-step control/read --svg read.svg
""",
        "history": """Write and check operation logs.
agelab history make profile -o log.txt --disk 1G
agelab history check log.txt
""",
    },
    "Compare": {
        "compare": """Name the inputs and results in which two runs differ.
agelab compare latest                   # its variants with the first
agelab compare 20261125 20261126
agelab compare latest:ext4 latest:xfs --all
""",
        "sweep": """Put runs on several kernels into one table, changes marked.
agelab sweep 20261125 20261126
agelab sweep 20261125 20261126 --metric copy:elapsed
agelab run aging-ext4 --kernel 6.1 --kernel 6.12   # makes such runs
""",
        "bisect": """Find the kernel that changed a result.
agelab bisect --scenario aging --variant ext4 --metric copy:elapsed --good 6.1 --bad 6.12
agelab bisect --scenario docs/howto/fio-aged.toml --metric aged/fio.read:fio_read_bandwidth --good 6.1 --bad 6.12
agelab bisect --scenario mine.toml --symptom panic --good 6.1 --bad 6.12
agelab bisect --scenario aging --variant xfs --metric aged/read:elapsed --tree linux --good v6.1 --bad v6.2
""",
        "track": """Follow numbers over commits night by night; find what changed them.
agelab track kernels.toml               # a night; the same command goes on
agelab track kernels.toml --junit track.xml
agelab track kernels.toml --pages       # measure nothing
""",
        "why": """Change one factor of a claim's cells at a time: which flips it?
agelab why --claim delete-slowest
agelab why latest --claim delete-slowest --factors cpu,kernel
agelab replicate                        # which claims there are
""",
        "replicate": """Put runs beside the published study that they follow.
agelab replicate                        # the latest run
agelab replicate 20261125 20261126 --all
agelab replicate latest --markdown
""",
        "calibrate": """Measure how far chance moves the results of a scenario.
agelab calibrate aging-ext4
agelab calibrate mine.toml --seeds 1-7
agelab calibrate mine.toml --clock wall
""",
    },
    "Test": {
        "test": """Run a suite of tests over many seeds; replay each failure.
agelab test ./tests --filesystem ext4,xfs --seeds 1-20
agelab test ./tests/rename.sh --filesystem xfs
agelab test ./tests --filesystem ext4 --schedule 2 --jobs auto
""",
        "crash": """Look at each state in which a power cut can leave a filesystem.
agelab crash one --filesystem ext4      # each call, with each that persists it
agelab crash "create A/new; append A/new 0 4096; fsync A/new" --filesystem xfs
agelab crash save.c --filesystem btrfs --check check.sh
agelab crash report latest
""",
        "debug": """Run a cell to a moment, and open it in gdb.
agelab debug latest:ext4 --at copy+1.234
agelab debug latest:ext4-lost-update --at 'kernel BUG at' --symbols
agelab debug latest:ext4 --at aged/read --script look.gdb
""",
    },
    "Keep": {
        "export": """Write runs as CSV, JSON lines, SQLite, Parquet or JUnit.
agelab export -o samples.csv            # the latest run
agelab export 20261125 20261126 -o samples.sqlite
agelab export latest --format junit -o cells.xml
""",
        "capsule": """Pack a run into one file; replay such a file.
agelab capsule pack                     # the latest run, into one file
agelab capsule replay theirs.capsule
agelab capsule show theirs.capsule
""",
        "mirror": """Write the packages of runs as an archive for other hosts.
agelab mirror make packages latest
agelab mirror make packages 20261125 20261126
""",
        "disk": """Show, export, import and remove stored disks.
agelab list disks
agelab disk export 3fa2 aged.img        # then: mount -o loop,ro aged.img /mnt
agelab disk import old.img --filesystem ext4
""",
        "rm": """Remove runs.
agelab rm latest
agelab rm 20261125-101500 20261125-1020 # names, or how they begin
agelab store prune --to 20G             # then, what no run needs any longer
""",
        "store": """List what the store holds; prune it to a size.
agelab store                            # by kind, with a word on each
agelab store list --kind image
agelab store prune --to 20G --dry-run
""",
    },
    "Host": {
        "doctor": """Say what this host can do, and what to install.
agelab doctor
agelab doctor --json
agelab doctor --clean                   # remove what a killed agelab left
""",
        "kernel": """Fetch, build and show guest kernels.
agelab list kernels
agelab kernel fetch 6.12
agelab kernel build tree:linux@v6.10
""",
        "image": """Build and show guest images.
agelab image build --kernel 6.12
agelab image show
agelab image build --filesystem bcachefs --kernel 6.12
""",
        "corpus": """Build and list the seeded input data.
agelab list corpora                     # the kinds
agelab corpus make --bytes 100M --seed 2
agelab corpus make --from photos
""",
        "schema": """Print the JSON Schema of a scenario, drive, ..., or a result.
agelab schema scenario
agelab schema drive
agelab schema result
""",
        "worker": """Run one cell of a plan for several hosts.
agelab worker cells/plan.json --cell 0
agelab worker cells/plan.json --cell 3 -o ended.cell
""",
        "completion": """Let the shell complete verbs, options and names.
eval "$(agelab completion bash)"        # in ~/.bashrc
eval "$(agelab completion zsh)"         # in ~/.zshrc, after compinit
agelab completion fish > ~/.config/fish/completions/agelab.fish
""",
        "help": """Show the help of a verb.
agelab help run
agelab help kernel build
agelab help
""",
    },
}
"""What a verb does, in a line, and below it commands that show it. A new one has its text here, and its command in
the module of its name in ``agelab/cli/``."""
GROUPS = {group: {verb: Verb(*text.split("\n", 1)) for verb, text in texts.items()} for group, texts in _TEXTS.items()}
"""Each verb by what it is for."""
VERBS = {verb: about for verbs in GROUPS.values() for verb, about in verbs.items()}
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
