"""The options of a run: one table, from which the command line, make, the docs and every list of exceptions come.

They are checked here as far as that goes without the scenario; ``agelab.runner.request.request`` reads it and checks
the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from agelab.analysis.decision import require_form
from agelab.base.errors import InputError, unknown
from agelab.base.places import layout_names
from agelab.base.sanitize import require_utf_8
from agelab.base.types import Defaults, LayoutName, ScaleName
from agelab.machine import qemu
from agelab.machine.disk import DriveSpec, parse_list
from agelab.machine.vm.guest import Clock
from agelab.results.conditions import NOT_TIMED
from agelab.results.result import RunPlan
from agelab.runner.plan.block_change import BlockChange
from agelab.runner.plan.steps import DriveFailure
from agelab.scenario.control_file import require_device
from agelab.scenario.jobs import AUTO, Jobs, parse_jobs
from agelab.scenario.machine import BandEnd
from agelab.scenario.option_matrix import parse_matrix
from agelab.scenario.seeds import Seeds
from agelab.scenario.unstated import reading_names

BootKind = Literal["saved", "full"]
Design = Literal["crossed", "paired"]
SourceState = Literal["pristine", "scattered"]
Affects = Literal["cells", "digits", "shown", "data", "effort", "nothing"]
"""What an option changes: which cells there are; digits; digits, and a result shows it of each cell; digits, and the
hash of the data tells; how long a cell takes, but no digit; nothing of a result."""
Level = Literal["bisect", "calibrate", "sweep", "run"]
"""The first of these that takes an option: those behind it take it, too. ``agelab age`` and ``plan`` take what
``calibrate`` takes."""
LOOKS = (5, 7, 10, 14, 20)
"""Run seeds after which it is looked whether a question is decided, where they are added until it is."""
MAX_SEEDS = 10_000
"""Seeds in one range."""
MAX_VCPUS, MAX_VIRTUAL_VCPUS = 255, 4
"""Limits of QEMU's machine, and of those that take turns in the virtual clock."""
ASIDE = ("directory", "name", "of_plan")
"""Fields that are no options."""


@dataclass(frozen=True)
class Option:
    """What is known of a run's option beside its type and its default."""

    help: str = ""
    """Empty for what no command line sets by itself."""
    affects: Affects = "digits"
    level: Level = "run"
    metavar: str | None = None
    flag: str = ""
    """The option's name, where it is not that of the field."""
    make: str | None = None
    """make's variable, where it is not called as the option; empty where there is none."""
    replayed: bool | None = None
    """Whether a replay takes it from the capsule; None: where it shapes digits."""
    here: str = ""
    """Why the cells cannot run on other hosts with it."""
    of_coordinator: bool = False
    """Says nothing of a cell: who puts the run together decides it, not a worker."""
    is_path: bool = False
    """Names a file of the user's."""
    common: bool = False
    """Stands among the first in a verb's help."""

    @property
    def is_replayed(self) -> bool:
        return self.affects in ("digits", "shown", "data") if self.replayed is None else self.replayed


def _refusing(check: Callable[[Any], object]) -> Callable[[Any], Any]:
    """Turn a check that raises InputError into a validator, so that pydantic collects the errors of all fields."""

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except InputError as error:
            raise ValueError(error) from error

    return checked


def _checked(check: Callable[[Any], object]) -> AfterValidator:
    """Validate the text of an option that is given, and keep it as it is."""

    def kept(text: str | None) -> str | None:
        if text is not None:
            check(text)
        return text

    return AfterValidator(_refusing(kept))


def _one_kernel(value: Any) -> Any:
    """Take the one kernel of a list. Raises InputError for several."""
    if not isinstance(value, tuple | list):
        return value
    if len(value) != 1:
        raise InputError(f"--kernel: {len(value)} kernels: only agelab run takes several")
    return value[0]


def _numbers(value: Any, called: str, example: str, bits: int) -> Any:
    """Read seeds: ``1,2,3``, ``1-3`` or a number; each stands there once."""
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    if isinstance(value, str):
        numbers = []
        try:
            for word in value.split(","):
                first, dash, last = word.partition("-")
                run = range(int(first), int(last if dash else first) + 1)
                if not 0 < len(run) <= MAX_SEEDS:
                    raise ValueError
                numbers += run
        except ValueError:
            raise ValueError(f"{called}s are whole numbers separated by commas, like {example}") from None
    if not all(isinstance(number, int) for number in numbers):
        return value
    if not numbers or len(set(numbers)) != len(numbers) or min(numbers) < 0 or max(numbers) >= 2**bits:
        raise ValueError(f"each {called} once, from 0 to 2**{bits} - 1")
    return tuple(numbers)


def _minutes(value: float | None) -> float | None:
    if value is not None and not 0 < value < 10**6:
        raise ValueError("must be a number of minutes above 0")
    return value


def _share(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise ValueError("a share is above 0 and at most 1, like 0.05")
    return value


def _drives(value: Any, other: ValidationInfo) -> Any:
    """Read drives: ``model:none`` or ``file:a.img,file:b.img``, relative to the options' directory."""
    if isinstance(value, list | tuple) and all(isinstance(drive, str) for drive in value) and value:
        value = ",".join(value)
    if not isinstance(value, str):
        return () if value is None else value
    try:
        return parse_list(value, Path(other.data.get("directory", "")))
    except InputError as error:
        raise ValueError(error) from error


def _serials(value: Any) -> Any:
    """Read serial numbers of drives: ``A1,B2``."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",")) if value else ()
    return tuple(value or ()) if isinstance(value, list | None) else value


def _matrix(text: str) -> None:
    try:
        parse_matrix(text)
    except ValueError as error:
        raise InputError(f"--options: {error}") from error


def _layout(name: Any) -> Any:
    """Check that there is such a layout."""
    if isinstance(name, str) and name not in layout_names():
        raise unknown("layout", name, layout_names())
    return name


def _device(path: str) -> str:
    """Check the path under which scripts find the disk; an empty one is none."""
    if path:
        require_device(path)
    return path


def _control_file(path: str) -> None:
    if not path:
        raise InputError("--control: name a file (docs/reference/files.md)")


class RunOptions(BaseModel):
    """The options of a run, under the names that they have on the command line.

    Lists are taken as on the command line, too: ``seeds="1,2"``, ``disks="model:none"``. Every error is an InputError.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str | None = Field(default=None, description="scenario, scenario-variant, or a scenario file")
    directory: str = Field(default_factory=lambda: str(Path.cwd()), description="relative paths start here; absolute")
    of_plan: bool = Field(
        default=False,
        exclude=True,
        description="set for options of a plan that was read: it may not say what is written to",
    )
    kernel: Annotated[
        str,
        BeforeValidator(_refusing(_one_kernel)),
        Option(
            "The guest's kernel: a version (6.1), or another spec (docs/kernels.md).",
            common=True, affects="shown", level="calibrate", replayed=False,
        ),
    ] = "debian:6.1"  # fmt: skip
    filesystem: Annotated[
        str | None,
        Option(
            "Run only the variants of these filesystems: ext4,xfs.",
            common=True, affects="cells", level="calibrate", make="FS",
        ),
    ] = None  # fmt: skip
    options: Annotated[
        str | None,
        _checked(_matrix),
        Option(
            "mkfs and mount options: every combination is a variant (docs/howto/own-scenario.md).",
            affects="shown", level="bisect", metavar="FS:OPTION,...;...",
        ),
    ] = None  # fmt: skip
    seeds: Annotated[
        tuple[int, ...],
        BeforeValidator(partial(_numbers, called="run seed", example="1,2,3 or 1-3", bits=31)),
        Option(
            "Run seeds, each a repetition: 1,2,3 or 1-3. agelab run also takes auto: as many as decide a question "
            "(docs/compare.md).",
            common=True, affects="cells", level="calibrate",
        ),
    ] = (1,)  # fmt: skip
    until_decided: Annotated[bool, Option(affects="cells", here="--seeds auto decides after each look")] = Field(
        default=False, description='set by seeds="auto": seeds are added'
    )
    trace: Annotated[bool, Option("Also run the experiments under strace.", level="calibrate")] = False
    scale: Annotated[
        ScaleName | None,
        Option(
            "The study's sizes (paper: a control file's default), or shrunk ones (quick: a scenario's).",
            common=True, affects="shown", level="bisect",
        ),
    ] = None  # fmt: skip
    corpus: Annotated[
        str | None,
        Option(
            "Your own ISO image, directory or tarball in place of the seeded data (docs/corpus.md).",
            common=True, affects="data", level="bisect", is_path=True,
        ),
    ] = None  # fmt: skip
    log: Annotated[
        str | None,
        Option(
            "Your own operation log in place of the scenario's histories (docs/operations.md).",
            affects="data", level="bisect", is_path=True,
        ),
    ] = None  # fmt: skip
    corpora: Annotated[
        tuple[int, ...],
        BeforeValidator(partial(_numbers, called="corpus seed", example="1,2 or 1-2", bits=63)),
        Option(
            "Corpus seeds, each with its own data and operations: 1,2 or 1-2 (docs/compare.md).",
            affects="cells", level="bisect",
        ),
    ] = (1,)  # fmt: skip
    design: Annotated[
        Design,
        Option(
            "crossed: every run seed with every corpus; paired: the first with the first, and so on (docs/compare.md).",
            affects="cells", level="calibrate",
        ),
    ] = "crossed"  # fmt: skip
    defaults: Annotated[
        Defaults | None,
        Option(
            "mkfs and mount as in the study's days (period) or as now (today).",
            affects="shown", level="bisect",
        ),
    ] = None  # fmt: skip
    layout: Annotated[
        LayoutName | None,
        BeforeValidator(_refusing(_layout)),
        Option(
            "single, raid0, raid1, ...: a file of scenarios/layouts, in place of the study's (docs/layouts.md).",
            affects="cells", level="bisect", replayed=True,
        ),
    ] = None  # fmt: skip
    clock: Annotated[
        Clock | None,
        Option(
            "virtual (the same digits every time) or wall (real time; real disks imply it).",
            affects="shown", level="bisect",
        ),
    ] = None  # fmt: skip
    disks: Annotated[
        tuple[DriveSpec, ...],
        BeforeValidator(_drives),
        Option(
            "Drives in place of the machine's: model:<name>, model:none (bare memory), file:<path>, block:<device>, "
            "pci:<address>; two with a comma (docs/drives.md, docs/real-disks.md).",
            common=True, affects="shown", level="bisect",
        ),
    ] = ()  # fmt: skip
    erase: Annotated[
        tuple[str, ...],
        BeforeValidator(_serials),
        Option(
            "Serials of real disks whose content may be lost, comma-separated (docs/real-disks.md).",
            affects="nothing", level="bisect",
        ),
    ] = ()  # fmt: skip
    boot: Annotated[
        BootKind,
        Option(
            "Start guests as copies of one that has booted (saved), or boot each in full (docs/design.md).",
            affects="effort", level="calibrate", replayed=True,
        ),
    ] = "saved"  # fmt: skip
    vcpus: Annotated[
        int,
        Option(
            "The guest's processors. In the virtual clock several take turns, and times then mean nothing "
            "(docs/howto/tests.md).",
            affects="shown", level="bisect",
        ),
    ] = 1  # fmt: skip
    schedule: Annotated[
        int,
        Option(
            "Preempt the guest at moments that this number and the run seed draw; times then mean nothing "
            "(docs/howto/tests.md). 0: never.",
            level="calibrate",
        ),
    ] = Field(default=0, ge=0, lt=2**31)  # fmt: skip
    machine: Annotated[
        str | None, Option("Another machine than the scenario's (docs/machines.md).", affects="shown", level="bisect")
    ] = None
    machine_band: Annotated[
        BandEnd | None,
        Option(
            "Take the lowest (low) or highest cost of an instruction in the machine's band (docs/machines.md).",
            affects="shown", level="bisect",
        ),
    ] = None  # fmt: skip
    block: Annotated[
        str | None,
        _checked(BlockChange.parse),
        Option(
            "The block layer and write-back, in place of the machine's: scheduler, its parameters, requests, "
            "read_ahead_kib, dirty_percent, ... (docs/drives.md).",
            affects="shown", level="bisect", metavar="KEY=VALUE,...",
        ),
    ] = None  # fmt: skip
    source: Annotated[
        SourceState | None,
        Option(
            "State of the disk that a study copied from: as one copy lays it, or scattered (docs/drives.md).",
            affects="shown", level="bisect",
        ),
    ] = None  # fmt: skip
    instead: Annotated[
        str | None,
        Option(
            "Other readings of what the study leaves open: names in the scenario's unstated (docs/howto/why.md).",
            affects="shown", level="bisect", metavar="NAME,...",
        ),
    ] = None  # fmt: skip
    jobs: Annotated[
        Jobs,
        PlainValidator(parse_jobs),
        Option(
            "Guests at a time, also within a cell; auto: as many as fit. In the wall clock cells disturb each other.",
            common=True, affects="nothing", level="bisect", of_coordinator=True,
        ),
    ] = 1  # fmt: skip
    control: Annotated[
        str | None,
        _checked(_control_file),
        Option(
            "A control file: the tests of a user's own scripts (docs/reference/files.md).",
            affects="shown", make="", is_path=True, here="a control file has its journal here",
        ),
    ] = None  # fmt: skip
    proceed: Annotated[
        bool, Option("Continue where a control file's journal ends.", affects="cells", flag="--continue", make="")
    ] = False
    device: Annotated[
        str,
        AfterValidator(_refusing(_device)),
        Option("Give a control file's scripts the disk under this path, too.", affects="shown", make=""),
    ] = ""
    fail: Annotated[
        str | None,
        _checked(DriveFailure.parse),
        Option(
            "Let a modelled drive of a RAID fail at this moment; agelab replaces it after the last step "
            "(docs/layouts.md).",
            metavar="DRIVE@STEP[:N][+SECONDS]",
        ),
    ] = None  # fmt: skip
    ask: Annotated[
        str | None,
        _checked(require_form),
        Option(
            "With --seeds auto: worst:STEP:METRIC, best:STEP:METRIC or A:B:STEP:METRIC in place of the scenario's "
            "question (docs/compare.md).",
            affects="cells", metavar="QUESTION",
        ),
    ] = None  # fmt: skip
    budget: Annotated[
        float | None,
        AfterValidator(_minutes),
        Option(
            "With --seeds auto: add no seeds that would end after so many minutes.", affects="cells", metavar="MINUTES"
        ),
    ] = None
    disk: Annotated[
        str | None,
        Option(
            "Start from a stored disk (its key) instead of making one (docs/howto/cache.md).",
            here="a stored disk is this store's",
        ),
    ] = None  # fmt: skip
    keep_disk: Annotated[
        bool,
        Option(
            "Keep each cell's disk as its steps leave it (docs/howto/cache.md).",
            affects="effort", here="--keep-disk keeps disks in this store",
        ),
    ] = False  # fmt: skip
    curve: Annotated[
        bool, Option("Also map the disk at points of the history, at which the steps stop (docs/aging.md).")
    ] = False
    timing: Annotated[
        bool,
        Option(
            "Also record the host's time for each boot; the digits stay the same.",
            affects="nothing", here="--timing takes this host's time",
        ),
    ] = False  # fmt: skip
    blocks: Annotated[
        bool,
        Option(
            "Record the requests to the modelled drives, in an extra pass (docs/operations.md).",
            affects="effort", here="--blocks keeps its records beside the cell",
        ),
    ] = False  # fmt: skip
    profile: Annotated[
        bool,
        Option(
            "Sample kernel and program stacks of each step, in an extra pass (docs/howto/profile.md).",
            affects="effort", here="--profile keeps its stacks beside the cell",
        ),
    ] = False  # fmt: skip
    fresh: Annotated[
        bool,
        Option(
            "Run every cell, also those whose results are known (docs/howto/cache.md).",
            affects="nothing", level="sweep",
        ),
    ] = False  # fmt: skip
    verify: Annotated[
        float | None,
        AfterValidator(_share),
        Option(
            "Run this share of the known cells again, and compare: 0.05 (docs/howto/cache.md).",
            affects="nothing", level="sweep", metavar="SHARE", of_coordinator=True,
        ),
    ] = None  # fmt: skip
    trial: Annotated[
        bool,
        Option(
            "See whether the scenario works: run one small cell, each step once.",
            common=True, flag="--check", make="CHECK",
        ),
    ] = False  # fmt: skip
    measure: Annotated[bool, Option()] = Field(default=True, description="go on when the disk is made")

    @field_validator(
        *("filesystem", "ask", "options", "fail", "block", "scale", "corpus", "log", "defaults", "layout"),
        *("clock", "machine", "machine_band", "source", "instead", "disk"),
        mode="before",
    )
    @classmethod
    def _empty_is_not_given(cls, value: Any) -> Any:
        return None if value == "" else value

    @model_validator(mode="wrap")
    @classmethod
    def _one_kind_of_error(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, dict) and data.get("seeds") == AUTO:
            data = {**data, "seeds": tuple(range(1, LOOKS[0] + 1)), "until_decided": True}
        try:
            return handler(data)
        except ValidationError as error:
            raise _input_error(error) from error

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        for value in dict(self).values():
            require_utf_8(str(value))
        for conflict in CONFLICTS:
            conflict(self)
        return self

    # ---- what follows from them ----

    @property
    def guest_clock(self) -> Clock:
        """The clock of the run: the wall's for real disks."""
        return self.clock or ("wall" if self.real_disks else "virtual")

    @property
    def in_wall_clock(self) -> bool:
        return self.guest_clock == "wall"

    @property
    def takes_turns(self) -> bool:
        """Whether the virtual clock has several processors."""
        return self.vcpus > 1 and not self.in_wall_clock

    @property
    def suite_of_qemu(self) -> str:
        """The suite whose QEMU runs the guests."""
        return qemu.SUITE_OF_SEVERAL if self.takes_turns else qemu.SUITE

    @property
    def not_timed(self) -> str:
        """Why its times are none; empty where they are some machine's."""
        if self.takes_turns:
            return f"{NOT_TIMED}: the clock counts the instructions of {self.vcpus} processors, which take turns"
        return f"{NOT_TIMED}: the guest's schedule is shaken, and its clock jumps" if self.schedule else ""

    @property
    def repetitions(self) -> tuple[Seeds, ...]:
        """The two seeds of each cell of a variant and layout."""
        if self.design == "paired":
            return tuple(map(Seeds, self.corpora, self.seeds))
        return tuple(Seeds(corpus, run) for corpus in self.corpora for run in self.seeds)

    @property
    def real_disks(self) -> list[DriveSpec]:
        """The drives that are real disks or files."""
        return [drive for drive in self.disks if drive.real]

    @property
    def failure(self) -> DriveFailure | None:
        """The drive that fails, if one is to."""
        return None if self.fail is None else DriveFailure.parse(self.fail)

    @property
    def block_change(self) -> BlockChange | None:
        """What is changed of the block layer and of write-back."""
        return None if self.block is None else BlockChange.parse(self.block)

    @property
    def changes(self) -> tuple[str, ...]:
        """The words of what is changed of the machine and of the scenario, sorted."""
        words = [word.replace(" ", "") for word in (self.block or "").split(",") if word]
        words += [f"source={self.source}"] if self.source else []
        return tuple(sorted([*words, *(f"instead={name}" for name in reading_names(self.instead))]))

    def given(self, *fields: str) -> list[str]:
        """Return those of the fields that are not as they are by themselves."""
        return [name for name in fields if getattr(self, name) != type(self).model_fields[name].default]

    # ---- others ----

    def changed(self, **fields: Any) -> Self:
        """Return the options with other values of these fields, checked again."""
        return type(self)(**{**dict(self), **fields})

    def of_seeds(self, seeds: tuple[int, ...], corpora: tuple[int, ...]) -> Self:
        """Return the options of these seeds, crossed, and of no more."""
        alone = {"design": "crossed", "until_decided": False, "ask": None, "budget": None}
        return self.changed(seeds=seeds, corpora=corpora, **alone)

    def of_worker(self) -> Self:
        """Return the options of a plan as a host takes them that runs cells of another's run."""
        decided = {name: value.default for name, value in type(self).model_fields.items() if name in OF_COORDINATOR}
        return self.changed(**decided, of_plan=True)

    def require_shareable(self) -> None:
        """Raise InputError for a run whose cells no other host can run."""
        why = [OPTIONS[name].here for name in self.given(*OPTIONS)]
        why += ["real disks are this host's"] if self.real_disks else []
        why += ["the wall clock is one host's"] if self.in_wall_clock else []
        if reasons := [reason for reason in why if reason]:
            raise InputError(f"the cells cannot run on other hosts: {reasons[0]}")

    def require_asked(self) -> None:
        """Raise InputError for options of a plan that name what is written to: only a command line may."""
        if self.of_plan and (written := [*map(str, self.real_disks), *filter(None, [self.control])]):
            raise InputError(
                f"the plan names {written[0]}, which would be written to: only a command line may name it",
                hint="begin a run of your own",
            )

    def asked_again(self, disks: str | None, erase: str, command: str) -> Self:
        """Return options of a plan whose real disks the command line names, too, with what it says may be erased.

        Raises InputError, with ``command``, where it names none or others.
        """
        given = parse_list(disks) if disks else ()
        if given and not self.real_disks:
            raise InputError(f"--disks {disks}: the plan has no real disks: leave it out")
        if given != self.disks and self.real_disks:
            raise InputError(
                f"the plan writes to {','.join(map(str, self.disks))}: what is written to must be named on the "
                "command line" + (f", and --disks {disks} is another" if given else ""),
                hint=f"if all that it holds may be lost: {command}",
            )
        return self.changed(erase=erase, of_plan=bool(self.control))

    # ---- as words, and in a plan ----

    def to_plan(self) -> dict[str, Any]:
        """Return the options as plan.json keeps them under ``command``.

        ``digits`` are those given that shape digits and that a result does not show otherwise, ``effort`` those that
        change how long a cell takes.
        """
        words = {name: _word(getattr(self, name)) for name in OPTIONS}
        words |= {"disks": ",".join(map(str, self.disks)) or None, "erase": ",".join(self.erase)}
        given = self.given(*OPTIONS)
        return {
            "directory": self.directory,
            "name": self.name or self.control,
            "options": words,
            "digits": {name: words[name] for name in given if OPTIONS[name].affects == "digits"},
            "effort": {name: words[name] for name in given if OPTIONS[name].affects in ("data", "effort")},
        }

    @classmethod
    def from_plan(cls, plan: RunPlan) -> Self:
        """Return the options of a run of this agelab or an older one; options younger than the run have their defaults.

        Raises InputError where the plan does not say them, or says what this agelab does not know.
        """
        if not plan.repeatable:
            raise InputError(f"{plan.run} does not say what was asked for", hint="begin a new run")
        return cls.from_words(plan.command).changed(of_plan=True)

    @classmethod
    def from_words(cls, command: Mapping[str, Any]) -> Self:
        """Return the options that ``to_plan`` gave. Raises InputError as ``from_plan`` does."""
        words = command["options"]
        if strange := [name for name, value in words.items() if name not in OPTIONS.keys() | FORMER and value]:
            raise InputError(f"the run was begun with {option(strange[0])}, which this agelab does not know")
        known = {name: value for name, value in words.items() if name in OPTIONS}
        name = None if words.get("control") else command["name"]
        return cls(directory=command["directory"], name=name, **known)

    def set_options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as ``to_plan`` has them."""
        words = self.to_plan()["options"]
        words |= {"seeds": AUTO} if self.until_decided else {}
        return {name: words[name] for name in self.given(*OPTIONS) if name != "until_decided"}

    def arguments(self) -> list[str]:
        """Return the arguments of ``agelab run`` (``agelab age`` where nothing is measured) that ask for the same."""
        implied = () if self.measure else ("keep_disk",)
        given = {name: word for name, word in self.set_options().items() if OPTIONS[name].help and name not in implied}
        words = ([option(name)] if word is True else [option(name), str(word)] for name, word in given.items())
        return [*([self.name] if self.name else []), *(part for words in words for part in words)]

    def named_again(self) -> list[str]:
        """Return the arguments that name real disks once more, and what may be erased."""
        disks = ["--disks", ",".join(map(str, self.disks))] if self.real_disks else []
        return [*disks, *(["--erase", ",".join(self.erase)] if self.erase else [])]


OPTIONS: Mapping[str, Option] = {
    name: about
    for name, field in RunOptions.model_fields.items()
    for about in field.metadata
    if isinstance(about, Option)
}
"""The table: each option by its field of RunOptions."""
FORMER = frozenset({"prove_all"})
"""Options of older agelabs without a meaning by now, which their runs name."""
NOT_REPLAYED = frozenset(name for name, of in OPTIONS.items() if of.is_path or not of.is_replayed)
"""Options that a replay does not take from the capsule: paths of another host, and what shapes no digit."""
PATHS = frozenset(name for name, of in OPTIONS.items() if of.is_path)
OF_COORDINATOR = frozenset(name for name, of in OPTIONS.items() if of.of_coordinator)


def option(field: str) -> str:
    """Return the option of the command line that sets a field."""
    flag = OPTIONS[field].flag if field in OPTIONS else ""
    return flag or (field if field in ASIDE else f"--{field.replace('_', '-')}")


def options_of(level: Level) -> dict[str, Option]:
    """Return the options of the command line that so much of it takes."""
    levels = get_args(Level)
    taken = levels[: levels.index(level) + 1]
    return {name: of for name, of in OPTIONS.items() if of.help and of.level in taken}


def make_variable(field: str) -> str:
    """Return make's variable for a field; empty where there is none."""
    of = OPTIONS[field]
    return field.upper() * bool(of.help) if of.make is None else of.make


def choices(field: str) -> tuple[str, ...]:
    """Return the words that a field takes; empty where there are others."""
    annotation = RunOptions.model_fields[field].annotation
    return next((get_args(part) for part in (annotation, *get_args(annotation)) if _is_literal(part)), ())


def _is_literal(annotation: Any) -> bool:
    return bool(get_args(annotation)) and all(isinstance(word, str) for word in get_args(annotation))


def _word(value: Any) -> Any:
    """Return a field's value as a word of the command line."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _input_error(error: ValidationError) -> InputError:
    """Return the errors of all fields as one, a line for each."""
    errors = [_field_error(item) for item in error.errors(include_url=False)]
    return InputError("\n".join(map(str, errors)), hint=errors[0].hint if len(errors) == 1 else "")


def _field_error(item: ErrorDetails) -> InputError:
    field, value = str(item["loc"][0]), item["input"]
    if item["type"] == "extra_forbidden":
        return unknown("option of a run", field, list(RunOptions.model_fields))
    if item["type"] == "literal_error":
        return unknown(option(field), str(value), choices(field))
    cause = item.get("ctx", {}).get("error")
    if isinstance(cause, ValueError) and isinstance(cause.args[0], InputError):
        return cause.args[0]
    why = str(cause) if cause else item["msg"][:1].lower() + item["msg"][1:]
    return InputError(f"{option(field)} {value!r}: {why}")


# ---- what does not go together, whatever the scenario is ----


@dataclass(frozen=True)
class OptionConflict:
    """Options that have no place beside another one."""

    when: str
    """A field or property that is set."""
    others: tuple[str, ...]
    """Fields that must not be given then."""
    why: str
    """``{other}`` stands for the option that is, ``{field}`` for its field, ``{asked}`` for all options."""
    hint: str = ""

    def __call__(self, asked: RunOptions) -> None:
        if getattr(asked, self.when) and (given := asked.given(*self.others)):
            why = self.why.format(other=option(given[0]), field=given[0], asked=asked)
            raise InputError(why, hint=self.hint)


def _scenario_or_control_file(asked: RunOptions) -> None:
    """Refuse neither of both, and what goes with a control file alone."""
    if asked.control is None and (given := asked.given("proceed", "device")):
        raise InputError(f"{option(given[0])} goes with --control")
    if asked.control is None and not asked.name:
        raise InputError("name a scenario, or a control file with --control", hint="agelab run --help")


def _seeds_of_design(asked: RunOptions) -> None:
    """Refuse seeds that do not go in pairs."""
    if asked.design == "paired" and len(asked.corpora) != len(asked.seeds):
        raise InputError(
            f"--design paired: {len(asked.seeds)} run seeds and {len(asked.corpora)} corpora do not go in pairs",
            hint="name as many of each, or leave --design out: then every run seed goes with every corpus",
        )


def _seeds_until_decided(asked: RunOptions) -> None:
    """Refuse a question where no seeds are added for it, and seeds that cannot be."""
    if not asked.until_decided and (given := asked.given("ask", "budget")):
        raise InputError(f"{option(given[0])} goes with --seeds auto")
    names = {"control": "--control", "design": "--design paired", "measure": "agelab age"}
    if asked.until_decided and (given := asked.given(*names)):
        raise InputError(f"--seeds auto does not go with {names[given[0]]}")


def _one_corpus(asked: RunOptions) -> None:
    """Refuse several corpora where they mean nothing."""
    same = {
        "log": "the operations of --log are",
        "control": "the data of a control file are",
        "disk": "what lies on the stored disk is",
    }
    if len(asked.corpora) > 1 and (given := asked.given(*same)):
        raise InputError(
            f"--corpora {','.join(map(str, asked.corpora))}: {same[given[0]]} the same for every corpus seed: name one"
        )


def _clock_of_disks(asked: RunOptions) -> None:
    """Refuse the virtual clock of a real disk, and more processors than a clock has."""
    if asked.clock == "virtual" and asked.real_disks:
        real = asked.real_disks[0]
        raise InputError(
            f"--clock virtual: {real.kind}:{real.name} runs in real time",
            hint="real disks take --clock wall, which is their default; modelled ones take either",
        )
    if not 1 <= asked.vcpus <= (MAX_VCPUS if asked.in_wall_clock else MAX_VIRTUAL_VCPUS):
        raise InputError(
            f"--vcpus {asked.vcpus}: the virtual clock has 1 to {MAX_VIRTUAL_VCPUS} processors, the wall clock 1 to "
            f"{MAX_VCPUS}"
        )


def _real_disk_as_it_is(asked: RunOptions) -> None:
    """Refuse to share, keep or fork a real disk."""
    if asked.real_disks and asked.jobs not in (1, AUTO):
        raise InputError(f"--jobs {asked.jobs}: a real disk serves one cell at a time")
    if asked.real_disks and (copied := asked.given("disk", "keep_disk", "curve")):
        # agelab age has no --keep-disk: it always keeps
        which = f"{option(copied[0])}: " if asked.measure else ""
        raise InputError(f"{which}{asked.real_disks[0]} is a real disk, which can be neither kept nor forked")


CONFLICTS: tuple[Callable[[RunOptions], None], ...] = (
    _scenario_or_control_file,
    OptionConflict("control", ("log",), "--log replaces a scenario's histories: leave --control or --log out"),
    OptionConflict("control", ("name",), "--control replaces a scenario: leave {asked.name} out"),
    OptionConflict("trial", ("control",), "--check: a control file's tests run as they are: leave it out"),
    OptionConflict("trial", ("until_decided",), "--check runs one cell, which decides nothing: leave --check out"),
    OptionConflict("control", ("instead",), "--instead: a control file leaves nothing open: leave it out"),
    OptionConflict(
        "control", ("filesystem", "options", "seeds"), "a control file names its {field}: leave --{field} out"
    ),
    OptionConflict(
        "control",
        ("disk", "keep_disk", "curve"),
        "the disks of a control file's tests are neither kept nor forked: leave {other} out",
    ),
    _seeds_of_design,
    _seeds_until_decided,
    _one_corpus,
    _clock_of_disks,
    OptionConflict(
        "in_wall_clock",
        ("machine_band",),
        "--machine-band {asked.machine_band}: in the wall clock this host decides what an instruction takes",
    ),
    _real_disk_as_it_is,
    OptionConflict(
        "in_wall_clock", ("verify",), "--verify {asked.verify:g}: in the wall clock the same thing run twice differs"
    ),
    OptionConflict(
        "verify",
        ("fresh", "keep_disk", "timing"),
        "--verify {asked.verify:g}: with {other} every cell runs: leave one of them out",
    ),
    OptionConflict(
        "in_wall_clock", ("schedule",), "--schedule {asked.schedule}: in the wall clock the host decides it"
    ),
    OptionConflict(
        "in_wall_clock",
        ("blocks",),
        "--blocks: it records the requests to modelled drives, and in the wall clock there are none",
        "leave --blocks out; a real disk's requests: blktrace",
    ),
    OptionConflict(
        "in_wall_clock",
        ("profile",),
        "--profile: only the virtual clock takes samples that repeat",
        "leave --profile out, or --clock wall and the real disks",
    ),
    OptionConflict(
        "fail",
        ("disk", "keep_disk", "curve", "control"),
        "{asked.failure}: the disk is made, loses a drive and is rebuilt: leave {other} out",
    ),
    OptionConflict("disk", ("keep_disk", "curve"), "--disk starts from a finished disk: {other} has nothing to do"),
)
"""Each raises InputError; the first that does is told."""
