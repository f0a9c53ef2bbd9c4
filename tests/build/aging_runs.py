"""Build runs of scenario aging with as many samples as real ones, without a guest."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from agelab.results import checksummed
from agelab.results.key_and_digest import digest
from agelab.results.result import RunKernel, Sample, Status
from agelab.scenario.metrics import METRICS
from tests.build import run_builder

COPIES = 12
TESTS = ("read", "random-read", "write", "list", "search", "space", "remove", "write-large", "read-large")
COUNTERS = {
    "cpu_user": 0.04, "cpu_system": 2.0, "cpu_iowait": 5.8, "cpu_idle": 0.0, "requests": 2335, "bytes_read": 272674816,
    "bytes_written": 1921024, "seeks": 308, "seek_distance": 10873, "cache_hits": 658, "flushes": 0,
    "busy_overhead": 0.7, "busy_seek": 0.4, "busy_rotation": 1.6, "busy_transfer": 4.0, "copy_late": 0.0,
    "sequential_share": 0.5, "queue_depth": 1.0, "dynamic_layout_score": 0.98, "request_size": 117599.9,
    "space_used": 275156992, "fullness": 0.71,
}  # fmt: skip
"""A step's metrics beside its time, with a value each."""
MAP = {
    "files": (1032, 1032), "unmapped_files": (0, 0), "extents": (1235, 968), "extents_per_file": (1.38, 1.08),
    "fragmented_files": (0.107, 0.017), "layout_score": (0.9948, 0.9989), "extent_length_p50": (53248, 49152),
    "locality_score": (0.195, 0.295), "locality_distance": (159744, 79872), "free_extents": (429, 4),
    "free_usable_1mib": (0.432, 1.0),
}  # fmt: skip
"""A map's metrics: on the aged disk, on the control."""
AGED_MORE = ("busy_seek", "busy_rotation", "cpu_iowait", "seeks")


def make(
    home: Path,
    slowdowns: Mapping[str, float],
    *,
    seeds: Sequence[int] = (1,),
    corpora: Sequence[int] = (1,),
    data: str = "7654",
    spread: float = 0.02,
    scenario: str = "aging",
    release: str = "6.1.0-56-amd64",
    statuses: Mapping[str, Status] = {},
    reason: str = "this kernel has none",
    pictures: Path | None = None,
    unfinished: int = 0,
    odd: Mapping[tuple[str, str], float] = {},
    on_corpora: Mapping[tuple[str, int], float] = {},
) -> str:
    """Build a run of variants with the factor by which their tests are slower on the aged disk; return its name.

    ``spread`` is how far apart seeds lie, relative to a value. ``data`` is the hash of the corpora. ``pictures`` is a
    directory with a block map for each variant. The last ``unfinished`` cells have not ended. ``odd``
    gives tests of a variant a slowdown of their own, ``on_corpora`` a variant on a corpus.
    """
    cells = run_builder.cells(
        slowdowns, seeds, corpora, kernel=release, machine="pentium4-2800",
        drives=("model:seagate-st3120026as",),
    )  # fmt: skip
    words = {"kernel": "debian:6.1", "seeds": ",".join(map(str, seeds)), "filesystem": ",".join(slowdowns)}
    run = run_builder.begin(
        home, cells, scenario=scenario,
        kernel=RunKernel(spec="debian:6.1", release=release, version="6.1.192-2"),
        provenance={"corpus_sha256": data, "model": "guest time is counted in instructions"},
        unstated=("the size of the drive and of the partition",),
        command={"directory": "/tmp", "name": scenario, "options": {**words, "curve": False}},
    )  # fmt: skip
    lines = []
    for number, cell in enumerate(cells[: len(cells) - unfinished]):
        status = statuses.get(cell.variant, Status.OK)
        measured: list[Sample] = []
        if status is Status.OK:
            drawn = Random(
                f"{cell.variant} {cell.seed} {cell.corpus_seed}"
                if cell.corpus_seed > 1
                else f"{cell.variant} {cell.seed}"
            )
            order = list(slowdowns).index(cell.variant)
            own = {test: own for (variant, test), own in odd.items() if variant == cell.variant}
            slowdown = on_corpora.get((cell.variant, cell.corpus_seed), slowdowns[cell.variant])
            measured = list(samples(slowdown, 1 + 0.15 * order, spread, drawn, own))
            rows = (sample.model_dump(exclude_none=sample.value is not None) for sample in measured)
            lines += [checksummed.sealed_line({"cell": number, **row}) for row in rows]
        ok = status is Status.OK
        run_builder.end(
            run, number, status=status, inputs={"cell": number, "data": data}, reason=None if ok else reason,
            digest=digest(status, measured, {}) if ok else None,
        )  # fmt: skip
        picture = pictures / f"{cell.variant}.svg" if pictures else None
        if picture and picture.exists():
            (run.cell_directory(number) / "maps").mkdir()
            (run.cell_directory(number) / "maps" / "block-map.svg").write_bytes(picture.read_bytes())
    (run.path / "samples.jsonl").write_bytes(b"".join(lines))
    return run.name


def samples(
    slowdown: float, size: float, spread: float, drawn: Random, odd: Mapping[str, float] = {}
) -> Iterator[Sample]:
    """Yield the samples of a cell whose tests take so many times as long; ``size`` sets it apart from others."""

    def near(value: float) -> float:
        return round(value * (1 + spread * (drawn.random() - 0.5)), 6)

    def step(name: str, seconds: float, repetition: int = 1, more: float = 1) -> Iterator[Sample]:
        yield Sample(step=name, metric="elapsed", value=near(seconds), unit="s", repetition=repetition)
        if name in ("copy", "aged/write", "control/write"):
            rate = near(47e6 / seconds)
            yield Sample(step=name, metric="throughput", value=rate, unit="B/s", repetition=repetition)
        for metric, value in COUNTERS.items():
            value *= seconds / 8 * (more if metric in AGED_MORE else 1)
            unit = METRICS[metric].unit
            yield Sample(step=name, metric=metric, value=near(value), unit=unit, repetition=repetition)

    for name in ("mkfs", "mount"):
        yield from step(name, 0.1 * size)
    for repetition in range(1, COPIES + 1):
        yield from step("copy", size * (1 + 0.02 * slowdown * repetition), repetition)
        yield from step("delete", 0.08 * size, repetition)
    yield from step("fill", 3.2 * size)
    yield from step("free", 0.8 * size)
    for number, test in enumerate(TESTS, 1):
        seconds = 8 * size / number
        aged, control = near(seconds * odd.get(test, slowdown)), near(seconds)
        yield from step(f"aged/{test}", aged, more=2 * slowdown)
        yield from step(f"control/{test}", control)
        yield Sample(step=test, metric="slowdown", value=round(aged / control, 6), unit="1")
    for metric, (old, new) in MAP.items():
        for name, value in (("aged/map", old), ("control/map", new)):
            yield Sample(step=name, metric=metric, value=near(value), unit=METRICS[metric].unit)
