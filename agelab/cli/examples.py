"""Examples at the end of each verb's help (a test parses them all)."""

import click

EXAMPLES = {
    "agelab": """
agelab run aging-ext4 --check           # one small cell: does it work here?
agelab run aging --filesystem ext4,xfs --seeds 1-5
agelab help run
""",
    "new": """
agelab new mine.toml                    # then: agelab run mine.toml --check
agelab new mine.toml --force            # once more from the beginning
agelab list filesystems                 # what its variants may be
""",
    "run": """
agelab run aging-reiserfs               # one variant of a scenario
agelab run mine.toml --check            # one small cell of your own
agelab run aging --filesystem ext4,xfs --seeds 1-5 --jobs auto
agelab run aging-ext4 --kernel 5.10 --kernel 6.12
""",
    "plan": """
agelab plan aging                       # its cells, and the time that they take
agelab plan aging --seeds 1-5 --jobs 2
agelab plan mine.toml --slurm cells     # an array job for a cluster
""",
    "resume": """
agelab resume                           # the latest run
agelab resume 20261126 --jobs 2         # the run whose name begins so
agelab resume latest --on dask://10.0.0.1:8786
""",
    "age": """
agelab age aging-ext4                   # then: agelab list disks
agelab age aging --filesystem ext4,xfs
agelab age fullness-or-usage --seeds 1,2
""",
    "list": """
agelab list                             # the runs
agelab list scenarios
agelab list kernels --refresh           # what the mirror has now
""",
    "show": """
agelab show                             # the latest run
agelab show 20261126 --json
agelab show latest --timing
""",
    "report": """
agelab report                           # the latest run, into report.html
agelab report 20261126 -o ext4.html
agelab report latest 20261125           # two runs on one page
""",
    "profile": """
agelab run aging-ext4 --profile         # first: it takes the samples
agelab profile latest copy
agelab profile latest aged/read --against-step control/read --svg read.svg
""",
    "history": """
agelab history make profile -o log.txt --disk 1G
agelab history check log.txt
""",
    "compare": """
agelab compare latest                   # its variants with the first
agelab compare 20261125 20261126
agelab compare latest:ext4 latest:xfs --all
""",
    "sweep": """
agelab sweep 20261125 20261126
agelab sweep 20261125 20261126 --metric copy:elapsed
agelab run aging-ext4 --kernel 6.1 --kernel 6.12   # makes such runs
""",
    "bisect": """
agelab bisect --scenario aging --variant ext4 --metric copy:elapsed --good 6.1 --bad 6.12
agelab bisect --scenario docs/howto/fio-aged.toml --metric aged/fio.read:fio_read_bandwidth --good 6.1 --bad 6.12
agelab bisect --scenario mine.toml --symptom panic --good 6.1 --bad 6.12
agelab bisect --scenario aging --variant xfs --metric aged/read:elapsed --tree linux --good v6.1 --bad v6.2
""",
    "track": """
agelab track kernels.toml               # a night; the same command goes on
agelab track kernels.toml --junit track.xml
agelab track kernels.toml --pages       # measure nothing
""",
    "why": """
agelab why --claim delete-slowest
agelab why latest --claim delete-slowest --factors cpu,kernel
agelab replicate                        # which claims there are
""",
    "replicate": """
agelab replicate                        # the latest run
agelab replicate 20261125 20261126 --all
agelab replicate latest --markdown
""",
    "calibrate": """
agelab calibrate aging-ext4
agelab calibrate mine.toml --seeds 1-7
agelab calibrate mine.toml --clock wall
""",
    "test": """
agelab test ./tests --filesystem ext4,xfs --seeds 1-20
agelab test ./tests/rename.sh --filesystem xfs
agelab test ./tests --filesystem ext4 --schedule 2 --jobs auto
""",
    "crash": """
agelab crash one --filesystem ext4      # each call, with each that persists it
agelab crash "create A; append A 0 4096; fsync A" --filesystem xfs
agelab crash report latest
""",
    "debug": """
agelab debug latest:ext4 --at copy+1.234
agelab debug latest:ext4-lost-update --at 'kernel BUG at' --symbols
agelab debug latest:ext4 --at aged/read --script look.gdb
""",
    "export": """
agelab export -o samples.csv            # the latest run
agelab export 20261125 20261126 -o samples.sqlite
agelab export latest --format junit -o cells.xml
""",
    "capsule": """
agelab capsule pack                     # the latest run, into one file
agelab capsule replay theirs.capsule
agelab capsule show theirs.capsule
""",
    "mirror": """
agelab mirror make packages latest
agelab mirror make packages 20261125 20261126
""",
    "disk": """
agelab list disks
agelab disk export 3fa2 aged.img        # then: mount -o loop,ro aged.img /mnt
agelab disk import old.img --filesystem ext4
""",
    "rm": """
agelab rm latest
agelab rm 20261125-101500 20261125-1020 # names, or how they begin
agelab store prune --to 20G             # then, what no run needs any longer
""",
    "store": """
agelab store                            # by kind, with a word on each
agelab store list --kind image
agelab store prune --to 20G --dry-run
""",
    "doctor": """
agelab doctor
agelab doctor --json
agelab doctor --clean                   # remove what a killed agelab left
""",
    "kernel": """
agelab list kernels
agelab kernel fetch 6.12
agelab kernel build tree:linux@v6.10
""",
    "image": """
agelab image build --kernel 6.12
agelab image show
agelab image build --filesystem bcachefs --kernel 6.12
""",
    "corpus": """
agelab list corpora                     # the kinds
agelab corpus make --bytes 100M --seed 2
agelab corpus make --from photos
""",
    "schema": """
agelab schema scenario
agelab schema drive
agelab schema result
""",
    "worker": """
agelab worker cells/plan.json --cell 0
agelab worker cells/plan.json --cell 3 -o ended.cell
""",
    "completion": """
eval "$(agelab completion bash)"        # in ~/.bashrc
eval "$(agelab completion zsh)"         # in ~/.zshrc, after compinit
agelab completion fish > ~/.config/fish/completions/agelab.fish
""",
    "help": """
agelab help run
agelab help kernel build
agelab help
""",
}
"""Commands by the verb that they show."""


def examples(verb: str) -> str:
    r"""Return a verb's examples as a paragraph of its help; ``\b`` keeps click from joining the lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[verb].strip().splitlines())


def with_examples(command: click.Command, verb: str) -> click.Command:
    """Put the examples of a verb before the end of its help."""
    shown = examples(verb)
    if shown not in (command.epilog or ""):
        command.epilog = f"{shown}\n\n{command.epilog or ''}".rstrip()
    return command
