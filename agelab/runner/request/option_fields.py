"""The options of a run by their names, and what follows from each by itself."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    field_validator,
)

from agelab.base.types import Defaults, LayoutName, ScaleName
from agelab.machine.disk import DriveSpec
from agelab.machine.vm.guest import Clock
from agelab.runner.plan.block_change import BlockChange
from agelab.runner.plan.drive_failure import DriveFailure
from agelab.runner.plan.power_cut import PowerCut
from agelab.runner.request import option_values
from agelab.scenario.jobs import Jobs, parse_jobs
from agelab.scenario.machine import BandEnd
from agelab.scenario.seeds import Seeds

BootKind = Literal["saved", "full"]
Design = Literal["crossed", "paired"]
SourceState = Literal["pristine", "scattered"]
ASIDE = ("directory", "name", "of_plan")
"""Fields that are no options."""
DIFFERENT_NAMES = {"proceed": "--continue"}
"""Options of the command line that are not called as their field."""


def option(field: str) -> str:
    """Return the option of the command line that sets a field."""
    return DIFFERENT_NAMES.get(field, field if field in ASIDE else f"--{field.replace('_', '-')}")


class OptionFields(BaseModel):
    """The options of a run, under the names that they have on the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str | None = Field(default=None, description="scenario, scenario-variant, or a scenario file")
    directory: str = Field(
        default_factory=lambda: str(Path.cwd()), description="relative paths start here; absolute"
    )
    of_plan: bool = Field(
        default=False,
        exclude=True,
        description="set for options of a plan that was read: it may not say what is written to",
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

    def given(self, *fields: str) -> list[str]:
        """Return the options of those fields that are set."""
        return [option(field) for field in fields if getattr(self, field)]
