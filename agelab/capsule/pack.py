"""Pack a run and everything it was made of into one file, reproducibly."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from agelab.base import fileio, readers
from agelab.base.errors import InputError
from agelab.capsule import verify as schema
from agelab.capsule.verify import (
    CORPUS_FIELDS,
    Capsule,
    CapsuleKernel,
    CapsuleManifest,
    CapsuleRequest,
    CarriedArtefacts,
    CarriedCorpus,
    open_capsule,
)
from agelab.data.corpus.artefact import Corpus
from agelab.data.corpus.artefact import load as load_corpus
from agelab.kernel import Kernel, elf, stored_kernel
from agelab.kernel.modules import BUILTIN, CONFIG, INDEX
from agelab.machine.image.assemble import DESCRIPTION, Description
from agelab.results.checksummed import read
from agelab.results.result import RunPlan
from agelab.results.run_directory import RunDirectory, map_file
from agelab.runner.prepare import run_manifest
from agelab.runner.prepare.run_manifest import ControlScripts, JobFiles, Profiles, RunManifest
from agelab.runner.request.options import PATHS
from agelab.scenario import selection
from agelab.scenario.history import Logged
from agelab.store import parcel
from agelab.store.artefacts import Artefact, Store, file_hash
from agelab.store.parcel import Content, PackedFile, Parcel

SUFFIX = ".capsule"
REPEAT = "repeat the run, then pack that"


def pack(run: RunDirectory, store: Store, path: Path, *, carry: bool = False) -> Capsule:
    """Pack a run into the file ``path``; ``carry`` adds its image, kernel, programs and corpora.

    Raises InputError for a run that cannot be packed, with the reason, and if the file cannot be written.
    """
    plan = _plan_to_pack(run)
    of = run_manifest.of_run(run)
    scenario = _scenario(run.path / run_manifest.SCENARIO, of)
    if of.brings:
        raise InputError(
            f"{run.name} brought more of its user's files into its guests than a capsule carries, "
            f"{run_manifest.MOST_KEPT >> 20} MiB",
            hint="bring fewer; a Debian package in their place (packages) can be packed",
        )
    image = _artefact(store, "image", str(plan.provenance.get("image")))
    description = Description.model_validate_json(fileio.read_bytes(image / DESCRIPTION))
    kernel = _kernel(plan, of, _artefact(store, "kernel", description.kernel.key))
    members: dict[str, Content] = {
        schema.PLAN: _json(_request(plan)),
        schema.KERNEL: _json(_capsule_kernel(kernel)),
        schema.IMAGE: fileio.read_bytes(image / DESCRIPTION),
        run_manifest.MADE_OF: _json(of),
        run_manifest.PROFILES: _json(read(run.path / run_manifest.PROFILES, Profiles)),
        run_manifest.SCENARIO: scenario,
    }
    if (run.path / run_manifest.CONTROL).exists():
        members[run_manifest.CONTROL] = _json(read(run.path / run_manifest.CONTROL, ControlScripts))
    if (run.path / run_manifest.JOBS).exists():
        members[run_manifest.JOBS] = _json(read(run.path / run_manifest.JOBS, JobFiles))
    for number, _ in enumerate(plan.cells):
        members.update(_cell_members(run, number))
    members.update(_log_members(run, plan, of, scenario.decode()))
    if carry:
        if of.modules:
            raise InputError(
                f"{run.name}: the modules of {', '.join(of.modules)} are built on each host, and not passed on",
                hint="pack it without --with-image: a replay builds them again",
            )
        members.update(_artefact_members(run, of, image, kernel, store))
    made = Parcel[CapsuleManifest](
        manifest=CapsuleManifest(capsule=2, agelab=of.agelab, run=run.name),
        files={name: PackedFile.of(members[name]) for name in sorted(members)},
    )
    files = [content for content in members.values() if isinstance(content, Path)]
    return _write_and_verify(path, made, members, readers.of_made(run.path, *files))


def _write_and_verify(
    path: Path, made: Parcel[CapsuleManifest], contents: Mapping[str, Content], readable_by: int
) -> Capsule:
    """Write the capsule and read it back, which detects damage from before it was packed."""
    with readers.whole_file(path, readable_by) as partial:
        with partial.open("wb") as file:
            parcel.write(file, made, contents)
        return replace(open_capsule(partial), path=path)


def _plan_to_pack(run: RunDirectory) -> RunPlan:
    """Return the plan of a run, or raise InputError if it cannot be packed."""
    plan = run.plan()
    real = [drive for cell in plan.cells for drive in cell.drives if not drive.startswith("model:")]
    if real:
        raise InputError(f"{run.name} ran on {real[0]}: no other machine has that disk, nothing can replay it")
    if plan.clock != "virtual":
        raise InputError(
            f"{run.name} is of the wall clock: real time is not the same twice, so a replay would prove nothing"
        )
    if run.is_running():
        raise InputError(f"{run.name} is still going on", hint="wait for its end")
    if left := run.unfinished():
        raise InputError(
            f"{run.name}: {len(left)} of {len(plan.cells)} cells have not ended: nothing to compare a replay with",
            hint=f"agelab resume {run.name}",
        )
    if not plan.repeatable:
        raise InputError(f"{run.name} was made by an older agelab: it did not record its inputs", hint="run it again")
    return plan


def _scenario(path: Path, of: RunManifest) -> bytes:
    """Return the scenario's text as it was when the run began."""
    try:
        content = fileio.read_bytes(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if of.scenario_sha256 not in (None, hashlib.sha256(content).hexdigest()):
        raise InputError(f"{path} is damaged: it is not what was written", hint=REPEAT)
    return content


def _artefact(store: Store, kind: str, key: str) -> Artefact:
    """Return an artefact of the run, read in full."""
    artefact = store.find(kind, key)
    if artefact is None:
        raise InputError(f"the store no longer has the run's {kind} {key[:12]}", hint=REPEAT)
    store.read([artefact.directory], again=True)
    return artefact


def _kernel(plan: RunPlan, of: RunManifest, artefact: Artefact) -> Kernel:
    ran = plan.kernel
    assert ran is not None, "a run that says what it is made of says its kernel"
    return Kernel(ran.spec, ran.release, ran.version, of.kernel.suite if of.kernel else "", artefact=artefact)


def _capsule_kernel(kernel: Kernel) -> CapsuleKernel:
    return CapsuleKernel(
        spec=kernel.spec,
        release=kernel.release,
        version=kernel.version,
        suite=kernel.suite,
        inputs=kernel.artefact.manifest.inputs,
        provenance=stored_kernel.provenance_of(kernel),
    )


def _request(plan: RunPlan) -> CapsuleRequest:
    """Return the plan and its options; of those that name paths on the host only whether they were given."""
    options = {n: bool(word) if n in PATHS else word for n, word in plan.command["options"].items()}
    return CapsuleRequest(plan=plan.model_copy(update={"command": {}}), options=options | {"erase": ""})


def _cell_members(run: RunDirectory, number: int) -> Iterator[tuple[str, Content]]:
    place = run.path / "cells" / str(number)
    end = run.end(number)
    assert end is not None
    if (place / schema.INPUTS).exists():
        yield f"cells/{number}/{schema.INPUTS}", fileio.read_bytes(place / schema.INPUTS)
    yield f"cells/{number}/{schema.END}", _json(end)
    rows = (sample.model_dump_json() + "\n" for sample in run.samples().get(number, []))
    yield f"cells/{number}/{schema.SAMPLES}", "".join(rows).encode()
    packed = {name: place / map_file(name) for name in end.maps}
    maps = {name: b"".join(fileio.unpacked_pieces(path, fileio.MAP)) for name, path in packed.items() if path.exists()}
    if sum(map(len, maps.values())) <= schema.MAX_MAPS_BYTES:
        for name, data in maps.items():
            yield f"cells/{number}/maps/{name}", data


def _log_members(run: RunDirectory, plan: RunPlan, of: RunManifest, text: str) -> Iterator[tuple[str, Content]]:
    if not any(source.log for source in of.sources.values()):
        return
    begun, log_option = Path(plan.command["directory"]), plan.command["options"].get("log")
    kept = run.path / run_manifest.JOBS
    jobs = read(kept, JobFiles).jobs if kept.exists() else {}
    chosen = selection.select(f"{plan.scenario}.toml", text=text, jobs=jobs).scenario
    paths = {history.name: history.log for history in chosen.histories if isinstance(history, Logged)}
    if log_option:
        paths["log"] = log_option
    for name, source in of.sources.items():
        if source.log is None:
            continue
        log = begun / paths[name]
        if not log.is_file() or file_hash(log) != source.log:
            raise InputError(f"the log {log} has changed since the run")
        yield f"logs/{name}", log


def _artefact_members(
    run: RunDirectory, of: RunManifest, image: Artefact, kernel: Kernel, store: Store
) -> Iterator[tuple[str, Content]]:
    for name in sorted(image.manifest.files):
        if name != DESCRIPTION:
            yield f"artefacts/image/{name}", image / name
    for path in (kernel.directory / name for name in (CONFIG, BUILTIN, INDEX)):
        if path.exists():
            yield f"artefacts/kernel/{path.name}", path
    for number, info in enumerate(kernel.modules.infos):
        yield f"artefacts/kernel/{number}.ko", elf.load(kernel.directory / info.path)
    inputs = [schema.CellInputs.model_validate(run.inputs(n)) for n, _ in enumerate(run.plan().cells)]
    boots = [boot for cell in inputs for boot in cell.boots]
    module = _files_by_hash(store, "drive", {boot.drive_module.module for boot in boots if boot.drive_module})
    tools = _files_by_hash(store, "tools", {sha for boot in boots for sha in (boot.tools or {}).values()})
    corpora = corpora_of(of, store)
    for path in module.values():
        yield "artefacts/drive/module.ko", path
    programs = {path.name: path for path in tools.values()}
    for number, name in enumerate(sorted(programs)):
        yield f"artefacts/tools/{number}", programs[name]
    listed = []
    for number, (history, corpus) in enumerate(sorted(corpora.items())):
        yield f"artefacts/corpora/{number}", corpus.image
        facts = {name: getattr(corpus, name) for name in CORPUS_FIELDS}
        listed.append(CarriedCorpus(history=history, **facts))
    names = [path.stem for path in module.values()]
    carried = CarriedArtefacts(module=names[0] if names else None, tools=tuple(sorted(programs)), corpora=tuple(listed))
    yield schema.ARTEFACTS, _json(carried)


def corpora_of(of: RunManifest, store: Store) -> dict[str, Corpus]:
    """Return the data of a run by history. Raises InputError if some are no longer in the store."""
    images = _files_by_hash(store, "corpus", {source.sha256 for source in of.sources.values()})
    return {
        history: load_corpus(_artefact(store, "corpus", images[source.sha256].parent.name))
        for history, source in of.sources.items()
    }


def _files_by_hash(store: Store, kind: str, hashes: set[str]) -> dict[str, Path]:
    """Return files by hash among the artefacts of a kind. Raises InputError if one is no longer in the store."""
    files = {
        sha: artefact / name
        for artefact in store.all(kind)
        for name, sha in artefact.manifest.files.items()
        if sha in hashes
    }
    if missing := hashes - set(files):
        raise InputError(f"the store has no {kind} of sha256 {min(missing)[:12]} any more", hint=REPEAT)
    return files


def _json(value: BaseModel) -> bytes:
    return value.model_dump_json(indent=1, by_alias=True).encode() + b"\n"
