"""Read fio's JSON (fio(1), --output-format=json): bandwidth, rate and latencies of each job and direction.

What fio did not measure is not measured, never 0: each latency object says by its ``N`` how many times it holds.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agelab.evaluate.program_output.reading import Reading, UnreadableOutput, checked, quoted, rounded
from agelab.scenario.workload import GuestProgram

NANOSECONDS = 1e-9
MAX_JOBS = 200
PERCENTILES = {"p50": "50.000000", "p99": "99.000000", "p999": "99.900000"}
"""Ending of a metric, to fio's name of the percentile."""
DIRECTIONS = ("read", "write", "trim", "mixed")
"""Results of a job; ``mixed`` is all of them together (unified_rw_reporting)."""
UNNAMED = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
MAX_NAME = 60
OF_NO_DISK = ("null", "cpuio", "net", "netsplice", "rdma", "http", "exec")
"""Engines that read and write no file."""
ERROR_LINE = re.compile(r"^fio: pid=\d+, err=(\d+)/(?:file:\S+, )?(.{1,200})", re.MULTILINE | re.ASCII)
"""What fio prints as a job ends early: the number of the error, the function, and the error in words."""
ALL = "all"
"""The part that stands for the clones of a job (numjobs) together."""
NO_LATENCY = "fio measured no latency (gtod_reduce, disable_lat and disable_clat switch it off; some engines have none)"
OF_EACH = "fio has the percentiles of each clone alone: group_reporting=1 in the job file has those of all"


def read(program: GuestProgram, text: str) -> list[Reading]:
    """Return the measurements of each job, and of a job's clones together; of one that failed, why there are none.

    Raises UnreadableOutput for what is no such JSON, or has no job that did anything.
    """
    readings: list[Reading] = []
    clones: dict[str, list[Mapping[str, Any]]] = {}
    names: set[str] = set()
    document = _document(text)
    for job in _jobs(document, text):
        name = _name(job)
        part = _unlike(name, names)
        try:
            options = {**_options(document, "global options"), **_options(job, "job options")}
            if why := _no_numbers(job, part, text, options):
                readings.append(Reading(_bandwidth_of(options), None, part, why))
                continue
            readings += [reading.of_part(part) for reading in _of_job(job)]
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise UnreadableOutput(f"fio's result of job {part} is not as expected: {error!r:.80}") from None
        clones.setdefault(name, []).append(job)
    for name, jobs in clones.items():
        if len(jobs) > 1:
            part = _unlike(f"{name[: MAX_NAME - len(ALL) - 1]}-{ALL}", names)
            readings += [reading.of_part(part) for reading in _of_clones(jobs)]
    if not readings:
        raise UnreadableOutput("no job of fio read, wrote, trimmed or synced anything")
    if unknown := sorted({reading.metric for reading in readings} - set(program.metrics)):
        raise UnreadableOutput(f"program {program.name} has no metric {unknown[0]!r}")
    return readings


def _jobs(document: Mapping[str, Any], text: str) -> Sequence[Mapping[str, Any]]:
    jobs = document.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise UnreadableOutput(f"fio printed no result of a job: {quoted(text)}")
    if len(jobs) > MAX_JOBS:
        raise UnreadableOutput(f"fio printed results of {len(jobs)} jobs; {MAX_JOBS} are read at most")
    if not all(isinstance(job, dict) for job in jobs):
        raise UnreadableOutput("fio printed a job that is no object")
    return jobs


def _document(text: str) -> Mapping[str, Any]:
    """Return the last JSON object: with --status-interval fio prints one each time, the result in the end.

    fio's notes stand before, between and behind them. An object's first line alone has a brace at its beginning.
    """
    start = max(text.rfind("\n{") + 1, 0)
    try:
        raw = json.JSONDecoder().raw_decode(text, start)[0] if text[start : start + 1] == "{" else None
    except (ValueError, RecursionError) as error:
        raise UnreadableOutput(f"fio's JSON cannot be read: {error!s:.80}") from None
    if not isinstance(raw, dict):
        raise UnreadableOutput(f"fio printed no JSON: {quoted(text)}")
    return raw


def _name(job: Mapping[str, Any]) -> str:
    """Return a job's name as a part of a step's; what a path or a table could misread becomes a dash."""
    return UNNAMED.sub("-", str(job.get("jobname", "")))[:MAX_NAME].strip("-") or "job"


def _unlike(name: str, names: set[str]) -> str:
    """Return the name, with a number where there is one such already, and remember it."""
    unlike, number = name, 1
    while unlike in names:
        number += 1
        unlike = f"{name}-{number}"
    names.add(unlike)
    return unlike


def _options(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    options = holder.get(name)
    return options if isinstance(options, dict) else {}


def _no_numbers(job: Mapping[str, Any], part: str, text: str, options: Mapping[str, Any]) -> str:
    """Return why a job has no numbers of a disk, an error in fio's own words; empty where it has."""
    if job.get("error"):
        number = str(job["error"])[:10]
        words = next((match[2] for match in ERROR_LINE.finditer(text) if match[1] == number), "")
        return f"fio's job {part} ended with error {number}" + (f": {words}" if words else "")
    engine = options.get("ioengine")
    return f"ioengine={engine} works on no disk" if engine in OF_NO_DISK else ""


def _bandwidth_of(options: Mapping[str, Any]) -> str:
    """Return the metric that stands for all of a job that has no numbers."""
    way = str(options.get("rw", ""))
    return f"fio_{next((name for name in ('write', 'trim') if name in way), 'read')}_bandwidth"


def _of_job(job: Mapping[str, Any]) -> Iterator[Reading]:
    for direction in DIRECTIONS:
        done = job.get(direction)
        if isinstance(done, dict) and done.get("total_ios"):
            yield from _amounts(direction, done)
            yield from _latencies(f"fio_{direction}_latency", _Times.of(done, "lat_ns"), _Times.of(done, "clat_ns"))
    count, times = _syncs(job)
    if count:
        yield Reading("fio_sync_count", count)
        yield from _latencies("fio_sync_latency", times, times)


def _syncs(job: Mapping[str, Any]) -> "tuple[float, _Times]":
    """Return how many fsyncs and fdatasyncs a job did, and their times: fio counts an fdatasync among these alone."""
    synced = job.get("sync")
    if not isinstance(synced, dict):
        return 0, _Times(0, {})
    times = _Times.of(synced, "lat_ns")
    return times.count or _number(synced.get("total_ios", 0)), times


def _amounts(direction: str, done: Mapping[str, Any]) -> Iterator[Reading]:
    yield Reading(f"fio_{direction}_bandwidth", _number(done["bw_bytes"]))
    yield Reading(f"fio_{direction}_iops", rounded(_number(done["iops"])))
    yield Reading(f"fio_{direction}_bytes", _number(done["io_bytes"]))


@dataclass(frozen=True)
class _Times:
    """A latency object of fio, in nanoseconds."""

    count: float
    """How many times it holds: its ``N``."""
    values: Mapping[str, Any]

    @classmethod
    def of(cls, done: Mapping[str, Any], name: str) -> "_Times":
        """Return it; an empty one where there is none. Raises TypeError for what is no count."""
        values = done.get(name)
        if not isinstance(values, dict):
            return cls(0, {})
        return cls(_number(values.get("N", 0)), values)

    def seconds(self, name: str) -> float:
        """Return one of its figures. Raises KeyError and TypeError."""
        return rounded(_number(self.values[name]) * NANOSECONDS)

    @property
    def percentiles(self) -> Mapping[str, Any]:
        """Those that the job was asked for (percentile_list, clat_percentiles, lat_percentiles)."""
        listed = self.values.get("percentile")
        return listed if self.count and isinstance(listed, dict) else {}


def _latencies(metric: str, whole: _Times, completed: _Times) -> Iterator[Reading]:
    """Yield mean and maximum of the whole times, and percentiles of those that have them."""
    for ending, name in (("mean", "mean"), ("max", "max")):
        if whole.count:
            yield Reading(f"{metric}_{ending}", whole.seconds(name))
        else:
            yield Reading(f"{metric}_{ending}", None, not_measured=NO_LATENCY)
    listed = completed.percentiles or whole.percentiles
    for ending, name in PERCENTILES.items():
        if name in listed:
            yield Reading(f"{metric}_{ending}", rounded(_number(listed[name]) * NANOSECONDS))
        else:
            yield Reading(f"{metric}_{ending}", None, not_measured=_no_percentile(ending, listed, whole, completed))


def _no_percentile(ending: str, listed: Mapping[str, Any], whole: _Times, completed: _Times) -> str:
    percent = float(PERCENTILES[ending])
    if listed:
        return f"the job's percentile_list has no {percent:g}"
    if whole.count or completed.count:
        return "the job asks fio for no percentiles"
    return NO_LATENCY


def _of_clones(jobs: Sequence[Mapping[str, Any]]) -> Iterator[Reading]:
    """Yield what the clones of a job did together, as fio's group_reporting does: over the longest run time."""
    for direction in DIRECTIONS:
        done = [each for job in jobs if isinstance(each := job.get(direction), dict) and each.get("total_ios")]
        milliseconds = max((_number(each.get("runtime", 0)) for each in done), default=0)
        if not done or not milliseconds:
            continue
        moved = sum(_number(each["io_bytes"]) for each in done)
        count = sum(_number(each["total_ios"]) for each in done)
        yield Reading(f"fio_{direction}_bandwidth", int(moved * 1000 // milliseconds))
        yield Reading(f"fio_{direction}_iops", rounded(count * 1000 / milliseconds))
        yield Reading(f"fio_{direction}_bytes", moved)
        yield from _latencies_of_all(f"fio_{direction}_latency", [_Times.of(each, "lat_ns") for each in done])
    syncs = [_syncs(job) for job in jobs]
    if count := sum(number for number, _ in syncs):
        yield Reading("fio_sync_count", count)
        yield from _latencies_of_all("fio_sync_latency", [times for _, times in syncs])


def _latencies_of_all(metric: str, parts: Sequence[_Times]) -> Iterator[Reading]:
    count = sum(part.count for part in parts)
    if not count:
        yield Reading(f"{metric}_mean", None, not_measured=NO_LATENCY)
        return
    total = sum(part.count * _number(part.values["mean"]) for part in parts if part.count)
    yield Reading(f"{metric}_mean", rounded(total / count * NANOSECONDS))
    yield Reading(f"{metric}_max", max(part.seconds("max") for part in parts if part.count))
    yield Reading(f"{metric}_p99", None, not_measured=OF_EACH)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    return checked(value)
