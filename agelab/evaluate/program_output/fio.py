"""Read fio's JSON (fio(1), --output-format=json): bandwidth, rate and latencies of each job and direction."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agelab.evaluate.program_output.reading import Reading, UnreadableOutput, checked, quoted, rounded
from agelab.scenario.workload import GuestProgram

NANOSECONDS = 1e-9
MAX_JOBS = 200
PERCENTILES = {"p50": "50.000000", "p99": "99.000000", "p999": "99.900000"}
"""Ending of a metric, to fio's name of the percentile."""
UNNAMED = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
MAX_NAME = 60


def read(program: GuestProgram, text: str) -> list[Reading]:
    """Return the measurements of each job. Raises UnreadableOutput for what is no such JSON, or has no job."""
    jobs = _document(text).get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise UnreadableOutput(f"fio printed no result of a job: {quoted(text)}")
    if len(jobs) > MAX_JOBS:
        raise UnreadableOutput(f"fio printed results of {len(jobs)} jobs; {MAX_JOBS} are read at most")
    found: list[Reading] = []
    names: set[str] = set()
    for job in jobs:
        if not isinstance(job, dict):
            raise UnreadableOutput("fio printed a job that is none")
        if job.get("error"):
            raise UnreadableOutput(f"fio's job {_name(job)} ended with error {quoted(str(job['error']))}")
        part = _unlike(_name(job), names)
        try:
            found += [Reading(metric, checked(value), part) for metric, value in _of_job(job)]
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise UnreadableOutput(f"fio's result of job {part} is not as expected: {error!r:.80}") from None
    if not found:
        raise UnreadableOutput("no job of fio read, wrote or synced anything")
    if unknown := sorted({one.metric for one in found} - set(program.metrics)):
        raise UnreadableOutput(f"program {program.name} has no metric {unknown[0]!r}")
    return found


def _document(text: str) -> Mapping[str, Any]:
    """Return the JSON object; fio prints its notes before it."""
    start = re.search(r"^\{", text, re.MULTILINE)
    try:
        raw = json.JSONDecoder().raw_decode(text, start.start())[0] if start else None
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
    found, number = name, 1
    while found in names:
        number += 1
        found = f"{name}-{number}"
    names.add(found)
    return found


def _of_job(job: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for direction in ("read", "write"):
        done = job.get(direction)
        if not isinstance(done, dict) or not done.get("total_ios"):
            continue
        yield f"fio_{direction}_bandwidth", _number(done["bw_bytes"])
        yield f"fio_{direction}_iops", rounded(_number(done["iops"]))
        yield f"fio_{direction}_bytes", _number(done["io_bytes"])
        yield f"fio_{direction}_latency_mean", rounded(_number(done["lat_ns"]["mean"]) * NANOSECONDS)
        yield f"fio_{direction}_latency_max", rounded(_number(done["lat_ns"]["max"]) * NANOSECONDS)
        yield from _percentiles(f"fio_{direction}_latency", done.get("clat_ns"), PERCENTILES)
    synced = job.get("sync")
    if isinstance(synced, dict) and synced.get("total_ios"):
        yield "fio_sync_count", _number(synced["total_ios"])
        yield "fio_sync_latency_mean", rounded(_number(synced["lat_ns"]["mean"]) * NANOSECONDS)
        yield from _percentiles("fio_sync_latency", synced["lat_ns"], {"p99": PERCENTILES["p99"]})


def _percentiles(metric: str, times: object, wanted: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Yield those percentiles that a job was asked for (percentile_list)."""
    listed = times.get("percentile") if isinstance(times, dict) else None
    for ending, name in wanted.items():
        if isinstance(listed, dict) and name in listed:
            yield f"{metric}_{ending}", rounded(_number(listed[name]) * NANOSECONDS)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    return value
