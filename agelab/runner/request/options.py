"""The options of a run, checked as far as that goes without the scenario.

``agelab.runner.request.resolve`` reads the scenario and checks the rest.
"""

from collections.abc import Mapping
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
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from agelab.disk import DriveSpec
from agelab.errors import InputError, unknown
from agelab.model.base import Defaults, LayoutName, ScaleName
from agelab.model.jobs import AUTO, Jobs, parse_jobs
from agelab.model.machine import BandEnd
from agelab.model.result import RunPlan
from agelab.model.sanitize import require_utf_8
from agelab.model.seeds import Seeds
from agelab.runner.plan.block_change import BlockChange
from agelab.runner.plan.drive_failure import DriveFailure
from agelab.runner.plan.power_cut import PowerCut
from agelab.runner.request import option_values
from agelab.vm.guest import Clock

MAX_VCPUS = 255
"""Limit of QEMU's machine."""
BootKind = Literal["saved", "full"]
Design = Literal["crossed", "paired"]
SourceState = Literal["pristine", "scattered"]
IN_MORE = (
    "disk",
    "keep_disk",
    "curve",
    "timing",
    "blocks",
    "profile",
    "fresh",
    "check",
    "measure",
    "prove_all",
    "ask",
    "budget",
)
"""Options that a plan keeps under ``more``; the others are its ``words``."""
ASIDE = ("directory", "name")
"""Fields that are no options."""
DIFFERENT_NAMES = {"proceed": "--continue"}
"""Options of the command line that are not called as their field."""


def option(field: str) -> str:
    """Return the option of the command line that sets a field."""
    return DIFFERENT_NAMES.get(field, field if field in ASIDE else f"--{field.replace('_', '-')}")


class RunOptions(BaseModel):
    """The options of a run, under the names that they have on the command line.

    Lists are taken as on the command line, too: ``seeds="1,2"``, ``disks="model:none"``. Every error is an InputError.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str | None = Field(default=None, description="scenario, scenario-variant, or a scenario file")
    directory: str = Field(
        default_factory=lambda: str(Path.cwd()), description="relative paths start here; absolute"
    )
    kernel: Annotated[str, BeforeValidator(option_values.refusing(option_values.one_kernel))] = "debian:6.1"
    filesystem: str | None = Field(default=None, description="only variants of these, comma-separated")
    options: Annotated[str | None, AfterValidator(option_values.refusing(option_values.options))] = Field(
        default=None,
        description="FILESYSTEM:OPTION,...;... of mkfs and mount: every combination is a variant",
    )
    seeds: Annotated[
        tuple[int, ...], BeforeValidator(option_values.seeds), AfterValidator(option_values.distinct_seeds)
    ] = (1,)
    until_decided: bool = Field(default=False, description='set by seeds="auto": seeds are added')
    ask: Annotated[str | None, AfterValidator(option_values.refusing(option_values.question))] = Field(
        default=None, description="the question that decides it; None: the scenario's"
    )
    budget: Annotated[float | None, AfterValidator(option_values.minutes)] = Field(
        default=None, description="minutes after which no seeds are added"
    )
    trace: bool = False
    scale: ScaleName | None = Field(default=None, description="None: paper for a control file, else quick")
    corpus: str | None = Field(default=None, description="the user's own data in place of the seeded ones")
    log: str | None = Field(default=None, description="an operation log in place of the scenario's histories")
    corpora: Annotated[
        tuple[int, ...],
        BeforeValidator(option_values.corpora),
        AfterValidator(option_values.distinct_corpora),
    ] = Field(default=(1,), description="corpus seeds: which files, and which of them are deleted")
    design: Design = Field(
        default="crossed", description="every run seed with every corpus, or the first with the first, ..."
    )
    defaults: Defaults | None = Field(default=None, description="None: the scenario's")
    layout: Annotated[LayoutName | None, BeforeValidator(option_values.refusing(option_values.layout))] = (
        Field(default=None, description="None: every layout of each variant")
    )
    clock: Clock | None = Field(default=None, description="None: wall for real disks, else virtual")
    disks: Annotated[tuple[DriveSpec, ...], BeforeValidator(option_values.drives)] = Field(
        default=(), description="drives in place of the machine's"
    )
    erase: Annotated[tuple[str, ...], BeforeValidator(option_values.serials)] = Field(
        default=(), description="serials or tokens of real disks whose content may be lost"
    )
    boot: BootKind = Field(default="saved", description="how guests in the virtual clock begin")
    vcpus: int = 1
    machine: str | None = Field(default=None, description="None: the scenario's")
    machine_band: BandEnd | None = Field(
        default=None, description="an end of the band of what an instruction costs; None: the middle"
    )
    block: Annotated[str | None, AfterValidator(option_values.refusing(option_values.block))] = Field(
        default=None, description="KEY=VALUE,... in place of the machine's block layer and write-back"
    )
    source: SourceState | None = Field(
        default=None, description="how the companion disk's content lies; None: as the scenario says"
    )
    jobs: Annotated[Jobs, PlainValidator(parse_jobs)] = Field(
        default=1, description="cells at a time; auto: as many as the host can run"
    )
    control: Annotated[str | None, AfterValidator(option_values.refusing(option_values.control))] = Field(
        default=None, description="a control file in a scenario's place"
    )
    proceed: bool = Field(default=False, description="continue the control file's journal")
    device: Annotated[str, AfterValidator(option_values.refusing(option_values.device))] = Field(
        default="", description="a second path of the disk under test for a control file's scripts"
    )
    crash_at: Annotated[str | None, AfterValidator(option_values.refusing(option_values.power_cut))] = Field(
        default=None, description="STEP[:REPETITION]+SECONDS"
    )
    fail: Annotated[str | None, AfterValidator(option_values.refusing(option_values.failure))] = Field(
        default=None, description="DRIVE@STEP[:REPETITION][+SECONDS]"
    )
    disk: str | None = Field(default=None, description="key of a stored disk to start from")
    keep_disk: bool = False
    curve: bool = Field(default=False, description="map the disk at the points of the scenario's curve, too")
    timing: bool = Field(default=False, description="take the host's time of each boot, too")
    blocks: bool = Field(
        default=False,
        description="record what drives are sent in one more pass, which is no part of a result",
    )
    profile: bool = Field(
        default=False, description="sample stacks in one more pass, which is no part of a result"
    )
    fresh: bool = Field(
        default=False, description="run each cell, also where one with its key has ended before"
    )
    check: Annotated[float | None, AfterValidator(option_values.share)] = Field(
        default=None, description="share of the cells found by their keys that run again, to be compared"
    )
    measure: bool = Field(default=True, description="False: make the disk and measure nothing on it")
    prove_all: bool = Field(
        default=True, description="the image proves every filesystem, not only those that are measured"
    )

    @field_validator("scale", "defaults", "layout", "clock", "machine_band", "source", mode="before")
    @classmethod
    def _empty_is_not_given(cls, value: Any) -> Any:
        """Take an empty word, also of an older plan, as an option that is not given."""
        return None if value == "" else value

    @model_validator(mode="wrap")
    @classmethod
    def _one_kind_of_error(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, dict) and data.get("seeds") == AUTO:
            data = {**data, "seeds": tuple(range(1, option_values.LOOKS[0] + 1)), "until_decided": True}
        try:
            return handler(data)
        except ValidationError as error:
            raise _input_error(error) from error

    @property
    def guest_clock(self) -> Clock:
        """The clock of the run: the wall's for real disks."""
        return self.clock or ("wall" if self.real_disks else "virtual")

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
    def power_cut(self) -> PowerCut | None:
        """The power cut that is asked for."""
        return None if self.crash_at is None else PowerCut.parse(self.crash_at)

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
        """The words of what is changed of the machine, sorted."""
        words = [word.replace(" ", "") for word in (self.block or "").split(",") if word]
        return tuple(sorted([*words, *([f"source={self.source}"] if self.source else [])]))

    def changed(self, **fields: Any) -> Self:
        """Return the options with other values of these fields, checked again."""
        return type(self)(**{**dict(self), **fields})

    def of_seeds(self, seeds: tuple[int, ...], corpora: tuple[int, ...]) -> Self:
        """Return the options of these seeds, crossed, and of no more."""
        alone = {"design": "crossed", "until_decided": False, "ask": None, "budget": None}
        return self.changed(seeds=seeds, corpora=corpora, **alone)

    @model_validator(mode="after")
    def _scenario_or_control_file(self) -> Self:
        for value in dict(self).values():
            require_utf_8(str(value))
        if self.control is not None:
            self._fit_control_file()
        elif self.proceed or self.device:
            raise InputError(f"{option('proceed' if self.proceed else 'device')} goes with --control")
        elif not self.name:
            raise InputError("name a scenario, or a control file with --control", hint="agelab run --help")
        return self

    def _fit_control_file(self) -> None:
        """Refuse what a control file decides itself, or has no place for."""
        if self.log:
            raise InputError(
                "--log stands in the place of a scenario's histories: leave --control or --log out"
            )
        if self.name:
            raise InputError(f"--control stands in a scenario's place: leave {self.name} out")
        said = {"filesystem": self.filesystem, "options": self.options, "seeds": self.seeds != (1,)}
        if decided := [field for field, given in said.items() if given]:
            raise InputError(
                f"a control file says itself which {decided[0]} there are: leave --{decided[0]} out"
            )
        if kept := self._given("disk", "keep_disk", "curve"):
            raise InputError(
                f"the disks of a control file's tests are neither kept nor forked: leave {kept[0]} out"
            )

    @model_validator(mode="after")
    def _seeds_of_design(self) -> Self:
        if self.design == "paired" and len(self.corpora) != len(self.seeds):
            raise InputError(
                f"--design paired: {len(self.seeds)} run seeds and {len(self.corpora)} corpora do not go in pairs",
                hint="name as many of each, or leave --design out: then every run seed goes with every corpus",
            )
        return self

    @model_validator(mode="after")
    def _seeds_until_decided(self) -> Self:
        """Refuse a question where no seeds are added for it, and seeds that cannot be."""
        if not self.until_decided and (given := [name for name in ("ask", "budget") if getattr(self, name)]):
            raise InputError(f"--{given[0]} goes with --seeds auto")
        why = {
            "--control": self.control,
            "--design paired": self.design == "paired",
            "agelab age": not self.measure,
        }
        if self.until_decided and (not_with := [name for name, value in why.items() if value]):
            raise InputError(f"--seeds auto does not go with {not_with[0]}")
        return self

    @model_validator(mode="after")
    def _one_corpus(self) -> Self:
        """Refuse several corpora where they mean nothing."""
        same = {
            "log": "the operations of --log are",
            "control": "the data of a control file are",
            "disk": "what lies on the stored disk is",
        }
        if len(self.corpora) > 1 and (given := [field for field in same if getattr(self, field)]):
            raise InputError(
                f"--corpora {_word(self.corpora)}: {same[given[0]]} the same with each: name one"
            )
        return self

    @model_validator(mode="after")
    def _clock_of_disks(self) -> Self:
        if self.clock == "virtual" and self.real_disks:
            real = self.real_disks[0]
            raise InputError(
                f"--clock virtual: {real.kind}:{real.name} has a time of its own",
                hint="real disks take --clock wall, which is their default; modelled ones take either",
            )
        return self

    @model_validator(mode="after")
    def _band_of_clock(self) -> Self:
        if self.machine_band and self.guest_clock == "wall":
            raise InputError(
                f"--machine-band {self.machine_band}: in the wall clock an instruction takes what it takes this host"
            )
        return self

    @model_validator(mode="after")
    def _processors_of_clock(self) -> Self:
        if not 1 <= self.vcpus <= (1 if self.guest_clock == "virtual" else MAX_VCPUS):
            raise InputError(
                f"--vcpus {self.vcpus}: the virtual clock has one processor, the wall clock 1 to {MAX_VCPUS}"
            )
        return self

    @model_validator(mode="after")
    def _real_disk_as_it_is(self) -> Self:
        """Refuse to share, keep or fork a real disk, and to cut its power."""
        if not self.real_disks:
            return self
        real = self.real_disks[0]
        if self.jobs not in (1, AUTO):
            raise InputError(f"--jobs {self.jobs}: a real disk serves one cell at a time")
        if self.power_cut:
            raise InputError(
                f"{self.power_cut}: {real} is a real disk: only a modelled one, or bare memory, can lose its power here"
            )
        if copied := self._given("disk", "keep_disk", "curve"):
            said = f"{copied[0]}: " if self.measure else ""  # agelab age has no --keep-disk: it always keeps
            raise InputError(f"{said}{real} is a real disk, which can be neither kept nor forked")
        return self

    @model_validator(mode="after")
    def _something_to_check(self) -> Self:
        """Refuse to check found cells where none is looked for."""
        if self.check is None:
            return self
        if self.guest_clock == "wall":
            raise InputError(f"--check {self.check:g}: in the wall clock the same thing run twice differs")
        if running := self._given("fresh", "keep_disk", "timing"):
            raise InputError(
                f"--check {self.check:g}: with {running[0]} every cell runs: leave one of them out"
            )
        return self

    @model_validator(mode="after")
    def _blocks_of_modelled_drives(self) -> Self:
        """Refuse to record where no drive is modelled."""
        if self.blocks and self.guest_clock == "wall":
            raise InputError(
                "--blocks: it records what modelled drives are sent, and in the wall clock there are none",
                hint="leave --blocks out; a real disk's requests: blktrace",
            )
        return self

    @model_validator(mode="after")
    def _profile_of_clock(self) -> Self:
        """Refuse a profile where the same samples could not be taken twice."""
        if self.profile and self.guest_clock == "wall":
            raise InputError(
                "--profile: samples are taken by the virtual clock, and in the wall clock none of them would repeat",
                hint="leave --profile out, or --clock wall and the real disks",
            )
        return self

    @model_validator(mode="after")
    def _one_use_of_disk(self) -> Self:
        """Refuse two uses of a disk: it is looked at after a power cut, kept, or started from."""
        if self.fail and (other := self._given("crash_at", "disk", "keep_disk", "curve", "control")):
            raise InputError(
                f"{self.failure}: the disk is made, loses a drive and is rebuilt: leave {other[0]} out"
            )
        if self.power_cut and (other := self._given("disk", "keep_disk", "curve")):
            raise InputError(
                f"{self.power_cut}: the disk is made, loses its power and is looked at: leave {other[0]} out"
            )
        if self.disk is not None and (other := self._given("keep_disk", "curve")):
            raise InputError(f"--disk starts from a disk that is made already: {other[0]} has nothing to do")
        return self

    def _given(self, *fields: str) -> list[str]:
        """Return the options of those fields that are set."""
        return [option(field) for field in fields if getattr(self, field)]

    def to_plan(self) -> dict[str, Any]:
        """Return the options as plan.json keeps them under ``command``."""
        said = {field: _word(getattr(self, field)) for field in type(self).model_fields if field not in ASIDE}
        said |= {"disks": ",".join(map(str, self.disks)) or None, "erase": ",".join(self.erase)}
        return {
            "directory": self.directory,
            "name": self.name or self.control,
            "words": {field: value for field, value in said.items() if field not in IN_MORE},
            "more": {field: value for field, value in said.items() if field in IN_MORE},
        }

    @classmethod
    def from_plan(cls, plan: RunPlan) -> Self:
        """Return the options of a run of this agelab or an older one; options younger than the run have their defaults.

        Raises InputError where the plan does not say them, or says what this agelab does not know.
        """
        if not plan.repeatable:
            raise InputError(f"{plan.run} does not say what was asked for", hint="begin a new run")
        return cls.from_words(*(plan.command[name] for name in ("directory", "name", "words", "more")))

    @classmethod
    def from_words(
        cls, directory: str, name: str | None, words: Mapping[str, Any], more: Mapping[str, Any]
    ) -> Self:
        """Return the options that ``to_plan`` gave. Raises InputError as ``from_plan`` does."""
        said = {**words, **more}
        if (seed := said.pop("corpus_seed", None)) is not None:  # of a plan with one alone
            said["corpora"] = str(seed)
        known = {field for field in cls.model_fields if field not in ASIDE}
        if strange := [field for field, value in said.items() if field not in known and value]:
            raise InputError(
                f"the run was asked for with {option(strange[0])}, which this agelab does not know"
            )
        fields = {field: value for field, value in said.items() if field in known}
        return cls(directory=directory, name=None if said.get("control") else name, **fields)

    def set_options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as ``to_plan`` has them."""
        mine, plain = ({**said["words"], **said["more"]} for said in (self.to_plan(), _PLAIN.to_plan()))
        if mine.pop("until_decided"):
            mine["seeds"] = AUTO
        return {field: value for field, value in mine.items() if value != plain[field]}

    def arguments(self) -> list[str]:
        """Return the arguments of ``agelab run`` (``agelab age`` where nothing is measured) that ask for the same."""
        implied = ("measure", "prove_all", *(() if self.measure else ("keep_disk",)))
        said = {field: value for field, value in self.set_options().items() if field not in implied}
        words = (
            [option(field)] if value is True else [option(field), str(value)] for field, value in said.items()
        )
        return [*([self.name] if self.name else []), *(part for one in words for part in one)]


_PLAIN = RunOptions(name="any", directory="/")


def _word(value: Any) -> Any:
    """Return a field's value as a word of the command line."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _input_error(error: ValidationError) -> InputError:
    """Return the errors of all fields as one, a line for each."""
    found = [_field_error(item) for item in error.errors(include_url=False)]
    return InputError("\n".join(map(str, found)), hint=found[0].hint if len(found) == 1 else "")


def _field_error(item: ErrorDetails) -> InputError:
    field, value = str(item["loc"][0]), item["input"]
    if item["type"] == "extra_forbidden":
        return unknown("option of a run", field, list(RunOptions.model_fields))
    if item["type"] == "literal_error":
        choices, _ = get_args(RunOptions.model_fields[field].annotation)
        return unknown("set of defaults" if field == "defaults" else field, str(value), get_args(choices))
    cause = item.get("ctx", {}).get("error")
    if isinstance(cause, ValueError) and isinstance(cause.args[0], InputError):
        return cause.args[0]
    why = str(cause) if cause else item["msg"][:1].lower() + item["msg"][1:]
    return InputError(f"{option(field)} {value!r}: {why}")
