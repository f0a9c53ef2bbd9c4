"""plan.json of a run: its cells, and everything that tells its inputs from another run's."""

import hashlib
from collections.abc import Sequence
from typing import Any

from agelab.base.errors import InputError
from agelab.base.hashing import key_of
from agelab.data.history import artefact
from agelab.debian import snapshot
from agelab.machine.vm import host
from agelab.machine.vm.guest import Clock
from agelab.results.conditions import EFFORT, Conditions, text
from agelab.results.result import Cell, DefinedMetric, RunKernel, RunPlan
from agelab.runner.plan.cell_inputs import drive_sources, harness_hash
from agelab.runner.plan.cell_spec import CellSpec, cell_of
from agelab.runner.plan.unhonoured import unhonoured
from agelab.runner.prepare import input_data
from agelab.runner.prepare.prepare import PreparedRun
from agelab.scenario.scenario import Scenario

MODELS: dict[tuple[Clock, bool], str] = {
    ("virtual", False): "guest time is counted in instructions; caches and pipelines are not modelled",
    ("wall", True): "real time, on this host's processor",
    ("wall", False): "real time of an emulated processor (no KVM here): it says little about this host's",
}
"""How the times of a run are to be read, by its clock and by whether KVM runs the guest."""
OF_THE_HOST = EFFORT | {"host"}
"""Conditions in which a run may go on that was begun with others: what changes no digit."""


def run_plan(name: str, prepared: PreparedRun) -> RunPlan:
    request, specs, image, corpora = prepared.request, prepared.specs, prepared.image, prepared.corpora
    options, scenario = request.options, request.selection.scenario
    cells = tuple(cell_of(spec, image.kernel.release) for spec in specs)
    kernel = RunKernel(spec=image.kernel.spec, release=image.kernel.release, version=image.kernel.version)
    content = {corpus.sha256: corpus.description for corpus in corpora}
    return RunPlan(
        run=name,
        scenario=scenario.name,
        scale=request.scale_name,
        clock=options.guest_clock,
        cells=cells,
        kernel=kernel,
        provenance={
            "kernel": str(kernel),
            "image": image.key,
            "image_content": image.content,
            "corpus": "; ".join(content.values()),
            "corpus_sha256": "; ".join(content),
            "harness": harness_hash(),
            "scenario": scenario_hash(scenario),
            "profiles": profiles_hash(specs),
            **_brought(specs),
            "vcpus": options.vcpus,
            **({"snapshot": dated.name} if (dated := snapshot.chosen()) else {}),
            "qemu": prepared.emulator.version,
            "host": host.description(),
            "accelerator": cells[0].accelerator,
            "disks": "in the host's memory" if prepared.disks_in_memory else "files of the host",
            "model": options.not_timed or _model(options.guest_clock, cells, prepared.jobs),
        },
        histories={
            name: artefact.read_report(corpus).model_dump(mode="json", by_alias=True)
            for name, corpus in input_data.named_data(specs, corpora).items()
            if scenario.histories
        },
        unstated=tuple(one.says for one in scenario.unstated),
        metrics={
            name: DefinedMetric(unit=metric.unit, meaning=metric.meaning, better=metric.better)
            for name, metric in request.selection.workload.metrics.items()
        },
        unhonoured=unhonoured(specs),
        command=options.to_plan(),
    )


def scenario_hash(scenario: Scenario) -> str:
    """Return the hash of what all cells of a scenario share."""
    return key_of(scenario.model_dump(mode="json", exclude={"variants", "traces"}))


def profiles_hash(specs: Sequence[CellSpec]) -> str:
    """Return the hash of the data files that these cells follow, and of the modelled drive."""
    return key_of([_profiles(spec) for spec in specs])


def _brought(specs: Sequence[CellSpec]) -> dict[str, str]:
    """Return the hash of the files that the scenario brings into its guests, if it brings any."""
    files = specs[0].brought.files if specs else {}
    if not files:
        return {}
    return {"brought": key_of({name: hashlib.sha256(data).hexdigest() for name, data in files.items()})}


def refuse_other_inputs(begun: RunPlan, now: RunPlan) -> None:
    """Raise InputError where a run that was begun would be resumed with other inputs."""
    cells = ((plan.cells or (None,))[0] for plan in (begun, now))
    before, after = (Conditions.of(plan, cell) for plan, cell in zip((begun, now), cells, strict=True))
    if changed := before.differences(after, OF_THE_HOST):
        raise InputError(
            f"{begun.run} was begun with other inputs ({text(changed)}): its finished and remaining cells would "
            "not be comparable",
            hint="begin a new run",
        )


def _profiles(spec: CellSpec) -> list[Any]:
    """Return the data files in which cells of one scenario differ."""
    drives = [drive.profile.model_dump(mode="json") if drive.profile else None for drive in spec.disk.drives]
    models = (spec.filesystem, spec.machine)
    variant = spec.variant.model_dump(mode="json")
    layout = [spec.disk.layout.model_dump(mode="json")] if spec.disk.layout.make else []
    return [variant, *(model.model_dump(mode="json") for model in models), *layout, *drives, drive_sources()]


def _model(clock: Clock, cells: Sequence[Cell], jobs: int) -> str:
    together = min(jobs, len(cells))
    disturbed = clock == "wall" and together > 1
    model = MODELS[clock, cells[0].accelerator == "kvm"]
    return model + (f"; {together} cells at a time, which disturbed each other" if disturbed else "")
