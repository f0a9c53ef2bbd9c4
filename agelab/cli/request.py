"""What ``run``, ``age`` and ``calibrate`` are asked: their options, and the request that comes of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agelab.cli.options import open_store

if TYPE_CHECKING:
    from agelab.disk import DriveSpec
    from agelab.errors import AgelabError
    from agelab.results.run_directory import RunDirectory
    from agelab.runner.execute.runner import RunRequest
    from agelab.runner.prepare.provided import ProvidedParts
    from agelab.runner.progress import Progress
    from agelab.scenario.control_file import ControlFile
    from agelab.scenario.selection import Selection
    from agelab.store import Store
    from agelab.vm.guest import Clock

VCPUS_MOST = 255
"""What QEMU's machine takes."""
JOBS_MOST = 256
AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])

ITS_OWN = (
    click.option(
        "--kernel",
        multiple=True,
        default=["debian:6.1"],
        show_default=True,
        help="The guest's kernel: a version (6.1), or another spec (docs/kernels.md).",
    ),
    click.option(
        "--filesystem", default=None, help="Only the variants of this filesystem, or of several: ext4,xfs."
    ),
    click.option(
        "--seeds", default="1", show_default=True, help="Run seeds, comma-separated: each is a repetition."
    ),
    click.option("--trace", is_flag=True, help="Do the experiments' passes under strace, too."),
)
"""What tells one run from others of the same question."""

SHARED = (
    click.option(
        "--scale",
        default=None,
        help="The study's sizes (paper: a control file's default), or shrunk ones (quick: a scenario's).",
    ),
    click.option(
        "--corpus", default=None, help="Your own ISO image, directory or tarball, not the seeded data."
    ),
    click.option(
        "--log",
        default=None,
        help="Your own operation log, not the scenario's histories (docs/operations.md).",
    ),
    click.option("--corpus-seed", default=1, show_default=True, help="Fixes the data and the operations."),
    click.option(
        "--defaults", default=None, help="mkfs and mount as in the study's days (period) or as now (today)."
    ),
    click.option("--layout", default=None, help="single, or raid0 over two drives, in place of the study's."),
    click.option(
        "--clock",
        default=None,
        help="virtual (the same digits every time) or wall (real time; real disks imply it).",
    ),
    click.option(
        "--disks",
        default=None,
        help="Drives in place of the machine's: model:<name>, model:none (bare memory), file:<path>, block:<device>, "
        "pci:<address>; two with a comma.",
    ),
    click.option(
        "--erase", default="", help="Serials of real disks whose content may be lost, comma-separated."
    ),
    click.option("--vcpus", default=1, show_default=True, help="The guest's processors (wall clock)."),
    click.option("--machine", default=None, help="Another machine than the scenario's."),
    click.option(
        "--jobs",
        default=1,
        show_default=True,
        help="Cells at a time. In the wall clock they disturb each other.",
    ),
)
"""What all runs of one question have in common."""

OPTIONS = (*ITS_OWN, *SHARED)


def options(command: AnyCommand) -> AnyCommand:
    """Give a command the argument and the options that say what to run."""
    for option in reversed(OPTIONS):
        command = option(command)
    return click.argument("name", metavar="SCENARIO[-VARIANT]")(command)


def shared(command: AnyCommand) -> AnyCommand:
    """Give a command the options that all runs of one question have in common."""
    for option in reversed(SHARED):
        command = option(command)
    return command


CONTROL_OPTIONS = (
    click.option(
        "--control", default=None, help="A control file: the tests of a user's own scripts (docs/control.md)."
    ),
    click.option("--continue", "proceed", is_flag=True, help="Go on where a control file's journal ends."),
    click.option("--device", default="", help="By which path a control file's scripts find the disk, too."),
)


def controlled(command: AnyCommand) -> AnyCommand:
    """Give a command the same options, and those of control files, which stand in a scenario's place."""
    for option in reversed((*OPTIONS, *CONTROL_OPTIONS)):
        command = option(command)
    return click.argument("name", metavar="[SCENARIO[-VARIANT]]", required=False)(command)


def request(
    name: str | None,
    words: "dict[str, Any]",
    chosen: "Selection | ControlFile | None" = None,
    **more: Any,
) -> "RunRequest":
    """The request of a command line: ``words`` are its options, ``more`` what they do not say.

    ``chosen`` is a scenario or a control file that has been read already, in place of those that are named.

    Raises InputError for what cannot be had.
    """
    from agelab.disk import parse_list
    from agelab.errors import InputError
    from agelab.kernel import canonical
    from agelab.runner.execute import runner
    from agelab.runner.plan.power_cut import PowerCut
    from agelab.scenario import selection
    from agelab.scenario.control_file import ControlFile

    if chosen is None:
        control = _control(name, words, more)
        log = Path(words["log"]) if words.get("log") else None
        selected = control.selection if control else selection.select(name or "", words["filesystem"], log)
    else:
        control = chosen if isinstance(chosen, ControlFile) else None
        selected = chosen.selection if isinstance(chosen, ControlFile) else chosen
    name = name or str(words["control"])
    scale: Any = words["scale"] or ("paper" if control else "quick")
    _one_of("scale", scale, [*selected.scenario.scales])
    scenario = selected.scenario if words["corpus"] else selected.scenario.at_scale(scale)
    if words["trace"] and not scenario.traces:
        which = "a control file's tests are" if control else f"scenario {scenario.name} is"
        raise InputError(f"--trace: {which} not performed under strace")
    if not words["trace"]:
        scenario = scenario.model_copy(update={"traces": ()})
    crash = None if words.get("crash_at") is None else PowerCut.parse(words["crash_at"])
    scenario = crash.of(scenario) if crash else scenario
    defaults = words["defaults"] or scenario.defaults
    _one_of("set of defaults", defaults, ["period", "today"])
    if words["layout"] is not None:
        _one_of("layout", words["layout"], ["single", "raid0"])
    drives = () if words["disks"] is None else parse_list(words["disks"])
    clock = _clock(words["clock"], drives)
    vcpus, jobs = words["vcpus"], words["jobs"]
    if not 1 <= vcpus <= (1 if clock == "virtual" else VCPUS_MOST):
        raise InputError(
            f"--vcpus {vcpus}: the virtual clock has one processor, the wall clock 1 to {VCPUS_MOST}"
        )
    if jobs != 1 and any(spec.real for spec in drives):
        raise InputError(f"--jobs {jobs}: a real disk serves one cell at a time")
    if not 1 <= jobs <= JOBS_MOST:
        raise InputError(f"--jobs {jobs}: 1 to {JOBS_MOST} cells at a time")
    if not 0 <= words["corpus_seed"] < 2**63:
        raise InputError(
            f"--corpus-seed {words['corpus_seed']}: a seed is a whole number from 0 to 2**63 - 1"
        )
    made = runner.RunRequest(
        name=name,
        selection=replace(selected, scenario=scenario),
        machine=selection.machine(words["machine"]) if words["machine"] else None,
        layout=words["layout"],
        drives=drives,
        erase=tuple(word.strip() for word in words["erase"].split(",")) if words["erase"] else (),
        clock=clock,
        vcpus=vcpus,
        kernel=canonical(words["kernel"]),
        scale=scale,
        run_seeds=_seeds(words["seeds"]),
        corpus_seed=words["corpus_seed"],
        corpus=Path(words["corpus"]) if words["corpus"] else control.data if control else None,
        control=control,
        proceed=bool(words.get("proceed")),
        device=words.get("device") or "",
        defaults=defaults,
        crash=crash,
        jobs=jobs,
        command={"directory": str(Path.cwd()), "name": name, "words": words, "more": more},
        **more,
    )
    _agree(made)
    return made


def _control(name: str | None, words: "dict[str, Any]", more: "dict[str, Any]") -> "ControlFile | None":
    """The control file that is asked for. Raises InputError for what does not go with one, or needs one."""
    from agelab.errors import InputError
    from agelab.scenario import control_file

    path = words.get("control")
    if path is None:
        wrong = [option for option in ("proceed", "device") if words.get(option)]
        if wrong:
            raise InputError(f"--{wrong[0].replace('proceed', 'continue')} goes with --control")
        if not name:
            raise InputError("name a scenario, or a control file with --control", hint="agelab run --help")
        return None
    if words.get("log"):
        raise InputError("--log stands in the place of a scenario's histories: leave --control or --log out")
    if name:
        raise InputError(f"--control stands in a scenario's place: leave {name} out")
    said = {"filesystem": words["filesystem"], "seeds": words["seeds"] != "1"}
    if itself := [option for option, given in said.items() if given]:
        raise InputError(f"a control file says itself which {itself[0]} there are: leave --{itself[0]} out")
    if kept := [option for option, given in more.items() if given]:
        raise InputError(
            f"the disks of a control file's tests are neither kept nor forked: leave --{kept[0].replace('_', '-')} out"
        )
    if not path:
        raise InputError("--control: name a file (docs/control.md)")
    if device := words.get("device"):
        control_file.require_device(device)
    return control_file.read(Path(path))


def _agree(wanted: "RunRequest") -> None:
    """Refuse what cannot be asked for together."""
    from agelab.errors import InputError

    real = [spec for spec in wanted.drives if spec.real]
    scenario = wanted.selection.scenario
    if wanted.corpus and scenario.histories:
        raise InputError(
            f"--corpus: scenario {scenario.name} has histories, no corpus", hint="your own history: --log"
        )
    if scenario.tests_at_points and (real or wanted.disk):
        why = f"{real[0]} cannot be forked" if real else "--disk starts from a disk whose history is over"
        raise InputError(f"scenario {scenario.name} measures on the way of a history: {why}")
    if scenario.experiments and (wanted.disk or wanted.keep_disk or not wanted.measure):
        raise InputError(
            f"scenario {scenario.name} prepares a disk for each of its experiments: it has no one "
            "disk to keep or to start from"
        )
    if wanted.crash and (wanted.disk or wanted.keep_disk or wanted.curve):
        option = "--disk" if wanted.disk else "--keep-disk" if wanted.keep_disk else "--curve"
        raise InputError(
            f"{wanted.crash}: the disk is made, loses its power and is looked at: leave {option} out"
        )
    if real and (wanted.crash or scenario.has_power_cuts):
        what = wanted.crash or f"scenario {scenario.name} cuts the power"
        raise InputError(
            f"{what}: {real[0]} is a real disk: only a modelled one, or bare memory, can lose its power here"
        )
    if real and (wanted.disk or wanted.keep_disk or wanted.curve):
        option = "--disk: " if wanted.disk else "--keep-disk: " if wanted.keep_disk else "--curve: "
        option = option if wanted.measure else ""  # age has not been asked to keep: it always does
        raise InputError(f"{option}{real[0]} is a real disk, which can be neither kept nor forked")
    if wanted.disk and (wanted.keep_disk or wanted.curve):
        option = "--keep-disk" if wanted.keep_disk else "--curve"
        raise InputError(f"--disk starts from a disk that is made already: {option} has nothing to do")
    if wanted.curve and scenario.tests_at_points:
        raise InputError(
            f"--curve: scenario {scenario.name} is measured at its points always: leave --curve out"
        )
    if wanted.curve and scenario.curve is None:
        raise InputError(f"--curve: scenario {scenario.name} has no [curve]")


def of_one_kernel(words: "dict[str, Any]") -> "dict[str, Any]":
    """The words of a command that takes no more than one kernel. Raises InputError for several."""
    from agelab.errors import InputError

    [spec, *more] = words["kernel"]
    if more:
        raise InputError(f"--kernel: {1 + len(more)} kernels: only agelab run takes several")
    return {**words, "kernel": spec}


def execute_all(wanted: "Sequence[RunRequest]") -> "list[RunDirectory | AgelabError]":
    """Carry out requests that differ in their kernels alone: of each its run, or why its kernel has none."""
    from agelab.runner.execute import runner
    from agelab.view.progress import shown

    with shown() as progress:
        _clear_the_way(progress)
        return runner.carry_out_all(wanted, open_store(), progress)


def execute(
    wanted: "RunRequest",
    store: "Store | None" = None,
    begun: "RunDirectory | None" = None,
    provided: "ProvidedParts | None" = None,
) -> "RunDirectory":
    """Carry it out in the store (None: the user's), or what is left of it in ``begun``, showing how it goes on."""
    from agelab.runner.execute import runner
    from agelab.view.progress import shown

    with shown() as progress:
        _clear_the_way(progress)
        return runner.carry_out(wanted, store or open_store(), progress, begun, provided)


def _clear_the_way(progress: "Progress") -> None:
    """End what agelabs that were killed have left at work; the rest that they left is in nobody's way."""
    from agelab import orphans

    for one in orphans.terminate_orphans():
        progress.stage(f"ended {one}: the agelab that had started it was killed")


def _one_of(kind: str, value: str, valid: list[str]) -> None:
    from agelab.errors import unknown

    if value not in valid:
        raise unknown(kind, value, valid)


def _clock(wanted: str | None, drives: "Sequence[DriveSpec]") -> "Clock":
    """The clock that was asked for; without a word of it real disks have the wall's."""
    from agelab.errors import InputError

    real = [spec for spec in drives if spec.real]
    clock = wanted or ("wall" if real else "virtual")
    _one_of("clock", clock, ["virtual", "wall"])
    if clock == "virtual" and real:
        raise InputError(
            f"--clock virtual: {real[0].kind}:{real[0].name} has a time of its own",
            hint="real disks take --clock wall, which is their default; modelled ones take either",
        )
    return clock  # type: ignore[return-value]


def _seeds(text: str) -> tuple[int, ...]:
    from agelab.errors import InputError

    try:
        seeds = tuple(int(word) for word in text.split(","))
    except ValueError as error:
        raise InputError(
            f"--seeds {text!r}: run seeds are whole numbers separated by commas, like 1,2,3"
        ) from error
    if len(set(seeds)) != len(seeds) or min(seeds) < 0 or max(seeds) >= 2**31:
        raise InputError(f"--seeds {text!r}: each run seed once, from 0 to 2**31 - 1")
    return seeds
