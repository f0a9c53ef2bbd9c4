"""What a cell leaves: what its guest said, its samples, and how it ended."""

from enum import Enum, StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from agelab.base.types import Defaults, Frozen, JsonDetails, Label, Text, is_empty
from agelab.scenario.metrics import Metric
from agelab.scenario.seeds import CellName, Seeds
from agelab.scenario.step import StepId


class Ending(Enum):
    """Reason why a domain has ended."""

    STOPPED = "stopped"
    """The guest powered off or reset itself (a panic resets)."""
    WATCHDOG = "watchdog"
    """The hardware watchdog fired: nothing ran in the guest any more."""
    CRASHED = "crashed"
    """QEMU itself ended (a full host filesystem kills it with SIGBUS), was destroyed, or got a signal."""
    DAEMON_LOST = "lost"
    """The libvirt daemon ended, so the guest was ended too."""
    OUTPUT_LOST = "unheard"
    """The host's disk was full and part of the output is lost (agelab.runner.execute.guests)."""
    TIMEOUT = "timeout"
    """The timeout in host time expired."""
    SILENT = "silent"
    """QEMU hung before the guest's kernel ran: the guest said nothing for as long as a boot may take."""
    PAUSED = "paused"
    """The timeout expired while somebody on the host had paused the guest."""
    OUTPUT_TOO_LARGE = "flooded"
    """The guest wrote more than the limit (agelab.machine.vm.guest_output)."""


SCHEMA = 1
MAX_MAGNITUDE = 1 << 64
"""Maximum absolute value, enough for any count or time; excludes NaN."""
MOMENT = "%Y-%m-%dT%H:%M:%SZ"
"""Format of a moment, in UTC."""
Count = Annotated[int, Field(ge=0, le=MAX_MAGNITUDE)]
"""A count reported by a guest."""


class Status(StrEnum):
    """Status of a cell at its end."""

    OK = "ok"
    FAILED = "failed"
    PANICKED = "panicked"
    HUNG = "hung"
    UNSUPPORTED = "unsupported"
    INTERRUPTED = "interrupted"


class Sample(Frozen):
    """A measured value, or the reason why there is none."""

    step: Label = Field(description="step of the scenario after its phase: aged/read")
    metric: Label = Field(description="a name of agelab.scenario.metrics")
    value: Annotated[float | int, Field(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)] | None = Field(
        description="in the metric's unit; null where nothing was measured"
    )
    unit: Label = Field(description="unit of the metric")
    repetition: Count = Field(default=1, description="repetition of the step, from 1")
    not_measured: Text | None = Field(default=None, description="reason for a missing value")
    caveat: Text | None = Field(
        default=None, description="why the value says less than its name: it is not of this disk"
    )

    @property
    def step_id(self) -> StepId:
        """The step's name in parts."""
        return StepId.parse(self.step)


class StuckTask(Frozen):
    """A task still running when its step's time was over."""

    pid: Count = Field(description="process id in the guest")
    name: Label = Field(description="name of its program")
    state: Label = Field(description="as in proc(5): D is blocked in the kernel")
    waits_in: Label = Field(description="kernel function it waits in, where known")
    stack: tuple[Label, ...] = Field(description="kernel stack, innermost call first")


class Cell(Frozen):
    """Identity of a cell within its run."""

    variant: Label = Field(description="variant of the scenario")
    filesystem: Label = Field(description="a file of scenarios/filesystems")
    layout: Label = Field(description="a file of scenarios/layouts, like single or raid0")
    kernel: Label = Field(description="output of uname -r")
    machine: Label = Field(
        description="a file of scenarios/machines; at an end of its band with :low or :high behind it, "
        "and with what --block and --source change: pentium4-2800+scheduler=bfq"
    )
    drives: tuple[Label, ...] = Field(description="drives under test, as specs: model:seagate-st3120026as")
    defaults: Defaults = Field(description="defaults of mkfs and mount: the studies' or today's")
    seed: Count = Field(description="run seed")
    corpus_seed: Count = Field(default=1, description="corpus seed: which files, and which of them are deleted")
    accelerator: Label = Field(default="tcg", description="what ran the guest: kvm, or tcg (QEMU's emulation)")

    @property
    def seeds(self) -> Seeds:
        """Both of its seeds: what it repeats of cells that are otherwise alike."""
        return Seeds(self.corpus_seed, self.seed)

    @property
    def name(self) -> CellName:
        """What tells it from the other cells of its run."""
        return self.variant, self.layout, self.seeds

    @property
    def label(self) -> str:
        """Variant and layout: ``ext4, raid0``."""
        return f"{self.variant}, {self.layout}"

    @property
    def short_label(self) -> str:
        """Variant, and the layout unless it is single."""
        return self.variant if self.layout == "single" else self.label


class CellOrigin(Frozen):
    """Where a reused cell was measured."""

    run: Label = Field(description="name of the run that measured it")
    host: Label = Field(description="host of that run: system, processors")
    ended: Label = Field(description="when the cell ended there, in UTC: 2026-11-24T12:40:11Z")

    def __str__(self) -> str:
        return f"{self.run}, {self.ended}, on {self.host}"


class End(Frozen):
    """End record of a cell, written when the cell is finished."""

    status: Status = Field(description="status at the end")
    reason: Text | None = Field(default=None, description="why it is not ok")
    stuck: tuple[StuckTask, ...] = Field(default=(), description="tasks of a hung cell that did not end")
    inputs_key: Label | None = Field(default=None, description="hash of everything that determines the digits")
    digest: Label | None = Field(default=None, description="hash of all samples; none in the wall clock")
    disk: Label | None = Field(default=None, description="key of the stored disk that it kept or started from")
    maps: dict[str, str] = Field(default={}, description="files from the map boot: name -> sha256")
    measured: str | None = Field(default=None, description="hash of the samples in any clock, to detect damage")
    pictures: dict[str, str] = Field(default={}, description="what was drawn of the maps: file -> sha256")
    host_seconds: float = Field(
        ge=0,
        le=MAX_MAGNITUDE,
        description="duration on the host; of a reused cell on the host that measured it",
    )
    ended: Label | None = Field(default=None, description="when it was written, in UTC")
    host: Label | None = Field(default=None, description="host that ran it, where that is not the run's own")
    evaluated_by: Label | None = Field(
        default=None, description="hash of the host's code and data that made samples of what the guest said"
    )
    reused: CellOrigin | None = Field(
        default=None, description="where a cell was measured that was found by its key and not run; else null"
    )
    disputes: Label | None = Field(
        default=None, description="digest of an earlier cell with this key, where that is another one"
    )

    @property
    def why(self) -> str:
        """Why it is not ok, in one line."""
        return " ".join((self.reason or "").split())


class RunKernel(Frozen):
    """The kernel that a run's cells boot."""

    spec: Label = Field(description="as requested: debian:6.1")
    release: Label = Field(description="output of uname -r: 6.1.0-50-amd64")
    version: Label = Field(description="version of the package or source: 6.1.192-2")

    def __str__(self) -> str:
        return f"{self.spec} = {self.release} ({self.version})"


class DefinedMetric(Frozen):
    """A metric that the scenario or one of its programs defines."""

    unit: Label = Field(description="unit of its values")
    meaning: Label = Field(description="what is measured")
    better: Literal["lower", "higher"] | None = Field(description="better direction, null for neither")

    @property
    def metric(self) -> Metric:
        """The metric as the registry has its own."""
        return Metric(self.unit, self.meaning, self.better)


class RunPlan(Frozen):
    """Plan of a run, written before its first cell."""

    run: Label = Field(description="name of the run: time and scenario")
    scenario: Label = Field(description="scenario of the run")
    scale: Label = Field(
        description="quick, paper, corpus (the sizes follow a user's own data), or check (agelab run --check)"
    )
    clock: Label = Field(description="virtual or wall")
    cells: tuple[Cell, ...] = Field(description="all cells planned")
    kernel: RunKernel | None = Field(default=None, description="null where the run does not record it")
    provenance: JsonDetails = Field(description="origin of everything used: image, harness, QEMU, corpus, drives, host")
    histories: dict[Label, JsonDetails] = Field(
        default={},
        description="what each history is, and how well it matches the request; NAME@2: of corpus seed 2",
    )
    unstated: tuple[Label, ...] = Field(default=(), description="what the study leaves open, or is not reproduced")
    metrics: dict[Label, DefinedMetric] = Field(
        default={}, description="metrics that the scenario and its programs define, by name"
    )
    unhonoured: dict[Label, Label] = Field(
        default={},
        exclude_if=is_empty,
        description="by variant, the option that its cells ran without, a colon, and why: discard on a modelled drive",
    )
    command: dict[str, Any] = Field(
        default={},
        description="the command, for agelab resume: directory, name and options; digits are those of "
        "them that shape digits and that a result does not show otherwise, effort those that cost time",
    )

    @property
    def repeatable(self) -> bool:
        """True if the command is complete enough to be repeated."""
        kinds = {"directory": str, "name": str, "options": dict}
        return all(isinstance(self.command.get(name), kind) for name, kind in kinds.items())

    @property
    def jobs(self) -> object:
        """Cells at a time, as its command says; None where it does not."""
        words = self.command.get("options")
        return words.get("jobs") if isinstance(words, dict) else None

    @property
    def emulated(self) -> bool:
        """True if the times are those of an emulated processor in real time, so of no real machine."""
        return self.clock == "wall" and any(cell.accelerator != "kvm" for cell in self.cells)


class CellRecord(Cell, End):
    """A cell of a result: identity, end and samples."""

    measured: str | None = Field(default=None, exclude=True)
    pictures: dict[str, str] = Field(default={}, exclude=True)
    host: str | None = Field(default=None, exclude=True)
    host_seconds: float = Field(default=0, exclude=True)
    ended: str | None = Field(default=None, exclude=True)
    samples: tuple[Sample, ...] = Field(description="in order of measurement")


class ResultDocument(RunPlan):
    """Output of ``agelab show --json`` for a run."""

    version: Literal[1] = Field(alias="schema", description="version of this format")
    cells: tuple[CellRecord, ...] = Field(description="all cells, unfinished ones included (interrupted)")
    command: dict[str, Any] = Field(default={}, exclude=True)


MAX_STUCK_TASKS = 64
"""Maximum number of stuck tasks that a guest may report."""


class HarnessReady(Frozen):
    """The harness has started; ``uptime`` is guest seconds since boot."""

    event: Literal["ready"]
    boot: Count
    uptime: float
    release: Label
    watchdog: bool


class SampleSent(Sample):
    """A sample."""

    event: Literal["sample"]

    def sample(self, step: str) -> Sample:
        """Return the sample under a step name with its phase, which the guest does not know."""
        fields = self.model_dump(exclude={"event"})
        return Sample.model_validate({**fields, "step": step})


class StepBegun(Frozen):
    """A repetition of a step, or mkfs or mount, begins."""

    event: Literal["begin"]
    step: Label
    repetition: Count


class StepDone(Frozen):
    """A repetition of a step has ended, and its samples have been sent."""

    event: Literal["step"]
    step: Label
    repetition: Count


class StepFailed(Frozen):
    """A step's command ended with a status that the scenario does not expect."""

    event: Literal["failed"]
    step: Label
    repetition: Count
    status: Count
    said: Text


class Mounted(Frozen):
    """Type and options of the mount at the end of the boot, where the host does not know them."""

    event: Literal["mounted"]
    type: Label
    options: Label


class PowerIsCut(Frozen):
    """The power is cut during this step; the next boot begins with the step after it."""

    event: Literal["cut"]
    step: Label
    repetition: int
    uptime: float
    at: int
    """The time of the drives, in nanoseconds."""
    next: int
    survived: str
    """Content of the directory that survives the cut, as left by the steps."""


class FilesystemChecked(Frozen):
    """Output of a filesystem check or repair, or of a failed mount, after a power cut."""

    event: Literal["checked"]
    step: str
    status: int
    said: str


class RebootRequested(Frozen):
    """The boot ends here; the next one begins with this step."""

    event: Literal["reboot"]
    next: Count


class CellEnded(Frozen):
    """The cell has ended; the last event."""

    event: Literal["end"]
    status: Literal["ok", "failed", "hung"]
    reason: Text | None
    stuck: tuple[StuckTask, ...] = Field(default=(), max_length=MAX_STUCK_TASKS)


Event = Annotated[
    HarnessReady
    | SampleSent
    | StepBegun
    | StepDone
    | StepFailed
    | Mounted
    | PowerIsCut
    | FilesystemChecked
    | RebootRequested
    | CellEnded,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
