"""The filesystem beside the disk under test: filled once, in a guest of its own, and kept as a stored disk."""

import shlex
from dataclasses import replace

from agelab.base import atomic, readers
from agelab.base.errors import AgelabError, Notify
from agelab.machine.disk import parse
from agelab.machine.image import tools
from agelab.machine.vm.hypervisor import Hypervisor
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute.cell import CellRunner
from agelab.runner.execute.guests import GuestLauncher, RunGuests
from agelab.runner.execute.phases import CellGoals
from agelab.runner.plan.cell_spec import NOTHING_BROUGHT, CellSpec
from agelab.runner.plan.guest_plan import unsupported
from agelab.runner.prepare.prepare import PreparedRun
from agelab.runner.request.request import RunRequest
from agelab.scenario import selection
from agelab.scenario.disk_use import DiskUse, Scatter
from agelab.scenario.history import Logged, Pulled
from agelab.scenario.scenario import Scenario, Variant
from agelab.scenario.step import Action
from agelab.store import stored_disk
from agelab.store.artefacts import Store
from agelab.store.stored_disk import DiskRecipe, StoredDisk


def disk_recipe(spec: CellSpec, kernel: str, scale: str | None, command: str) -> DiskRecipe:
    """Return the recipe of the disk that a cell makes; ``command`` makes it again."""
    return DiskRecipe(
        makes=spec.scenario.makes,
        scenario=spec.scenario.name,
        scale=scale,
        variant=spec.variant.name,
        filesystem=spec.filesystem.name,
        layout=spec.layout,
        defaults=spec.defaults,
        machine=spec.machine.name,
        drives=spec.disk.drive_specs,
        kernel=kernel,
        run_seed=spec.run_seed,
        corpus_seed=spec.corpus_seed,
        sizes=tuple(spec.disk.memory_disks[place] for place in spec.disk.member_places),
        command=command,
    )


def making_command(request: RunRequest, spec: CellSpec, verb: str = "age") -> str:
    """Return the command that makes the disk of one cell again."""
    history = spec.history
    log = history.log if isinstance(history, Logged) else None
    pulled = history.repository if isinstance(history, Pulled) else ""
    options = request.options.changed(
        kernel=request.kernel,
        scale=request.scale,
        machine=spec.machine.plain_name,
        layout=spec.layout,
        defaults=spec.defaults,
        corpus=pulled or (str(request.corpus) if request.corpus else None),
        log=log,
        trace=False,
        erase=(),
        jobs=1,
        keep_disk=False,
        disk=None,
        fail=None,
    )
    seeds = ((spec.run_seed,), (spec.corpus_seed,))
    if request.name.endswith(".toml"):
        options = options.changed(filesystem=spec.filesystem.name).of_seeds(*seeds)
    elif not request.control:
        variant = spec.variant.plain_name if log else spec.variant.name
        options = options.changed(name=f"{spec.scenario.name}-{variant}", filesystem=None).of_seeds(*seeds)
    return shlex.join(["agelab", verb, *options.arguments()])


COPY = Action(name="copy", run='cp -a "$SOURCE/." .', sync=True, deadline=100_000, origin="inferred")


def scattering(how: Scatter) -> Action:
    """Return the step in which the corpus is copied so that it lies scattered."""
    run = (
        'PYTHONPATH=/run/agelab exec python3 -SB -m harness.scatter "$SOURCE" . --seed "$CORPUS_SEED" '
        f"--places {how.places.value} --at-a-time {how.at_a_time.value} --piece {how.piece_kib.value << 10}"
    )
    return Action(name="scatter", run=run, sync=True, deadline=100_000, origin="inferred")


def companion_scenario(whole: Scenario) -> Scenario:
    """Return the scenario that makes the filesystem beside another's disk, on bare memory: nothing is timed."""
    beside = whole.beside
    assert beside is not None and whole.corpus is not None
    place = beside.partition.model_copy(update={"drive": 0, "at": "outer"})
    return whole.model_copy(
        update={
            "name": f"{whole.name}-beside",
            "corpus": whole.corpus.model_copy(update={"held_in_ram": False}),
            "disk": DiskUse(mib=beside.mib, partitions=(place,), drives=("model:none",)),
            "beside": None,
            "variants": (Variant(name=beside.filesystem, filesystem=beside.filesystem),),
            "makes": "prepared",
            "steps": (scattering(beside.scattered) if beside.scattered else COPY,),
            "experiments": (),
            "traces": (),
            "tests": (),
            "control": None,
            "measures": (),
            "curve": None,
            "ratios": (),
        }
    )


def companion_cell(spec: CellSpec) -> CellSpec:
    """Return the cell that makes the filesystem beside the disk of ``spec``.

    It is made on the machine itself, not at an end of its band or with another block layer: cells that differ in
    these have the same one beside them.
    """
    assert spec.companion is not None
    made = companion_scenario(spec.scenario)
    return replace(
        spec,
        scenario=made,
        variant=made.variants[0],
        filesystem=spec.companion,
        companion=None,
        is_companion=True,
        machine=selection.machine(spec.machine.plain_name),
        run_seed=0,
        layout="single",
        drives=(parse("model:none"),),
        claims=(),
        clock="virtual",
        vcpus=spec.vcpus if spec.clock == "virtual" else 1,
        accelerator="tcg",
        failure=None,
        member_bytes=(),
        key_seed=None,
        scripts={},
        brought=NOTHING_BROUGHT,
    )


def obtain(prepared: PreparedRun, hypervisor: Hypervisor, store: Store, progress: Notify) -> dict[int, StoredDisk]:
    """Get the filesystem beside a run's disks under test, of each corpus seed, from the store, or make it now.

    It is made in the virtual clock. Raises AgelabError where it cannot be made, HostError where the stored one is
    damaged.
    """
    first = {spec.corpus_seed: number for number, spec in reversed([*enumerate(prepared.specs)])}
    return {seed: _obtain(prepared, number, hypervisor, store, progress) for seed, number in sorted(first.items())}


def _obtain(prepared: PreparedRun, number: int, hypervisor: Hypervisor, store: Store, progress: Notify) -> StoredDisk:
    """Get the filesystem beside the disk of the cell of that number."""
    spec, image, corpus = prepared.specs[number], prepared.image, prepared.corpora[number]
    assert spec.companion is not None
    own = companion_cell(spec)
    keep = disk_recipe(own, image.kernel.spec, None, making_command(prepared.request, spec, "run"))
    shared = RunGuests.of(prepared, hypervisor, store, progress)
    with atomic.temp_dir(store.cache("beside")) as work:
        run = RunDirectory(work)
        programs = tools.obtain_filesystem_tools(own.filesystem.tools, store, progress)
        launcher = GuestLauncher(run.cell_directory(0), own, corpus, shared, None, programs)
        readable_by = readers.of_made(corpus.image.parent, image.artefact.directory)
        goals = CellGoals(keep_as=keep, measure=False, readable_by=readable_by)
        runner = CellRunner(run, 0, launcher, goals, lambda _: None)
        what = f"the {spec.companion.name} beside the disk under test"
        if why := unsupported(own, image):
            raise AgelabError(f"{what}: {why}")
        key = stored_disk.key(runner.boots.disk_inputs)
        with store.lock(f"beside-{key}"):
            if store.find(stored_disk.KIND, key):
                disk = stored_disk.find(store, key)
                disk.verify()
                return disk
            progress(f"filling {what}")
            end = runner.carry_out()
        if end.status is not Status.OK or end.disk is None:
            raise AgelabError(f"{what}: {end.status}: {end.reason}")
        return stored_disk.find(store, end.disk)
