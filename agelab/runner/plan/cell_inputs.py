"""The inputs of a cell: all that shapes its digits, by name, so that two cells can be compared.

And what makes samples, measures and a status of what its guests have said: code and data of the host, which no key has.
A cell that was evaluated by others has perhaps other samples, or none of a metric that is new. So it stands for no cell
of today.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from agelab.base import fileio, hashing, places
from agelab.base.hashing import key_of
from agelab.data.corpus import Corpus
from agelab.kernel import Kernel
from agelab.machine.drive.module import source_files
from agelab.machine.image import Image
from agelab.machine.qemu import Emulator
from agelab.runner.plan.cell_drive import CellDrive
from agelab.runner.plan.cell_spec import CellSpec
from agelab.store.artefacts import file_hash
from agelab.store.stored_disk import StoredDisk

MANAGEMENT = ("-name", "-mon", "-sandbox", "-msg")
"""QEMU options by which libvirt manages a guest, each with one value: nothing in the guest sees them."""
LAST_COUNTS = ("-uuid", "-m")
"""QEMU options of which agelab gives its own behind libvirt's, whose words are others in each of its versions."""
EVALUATES = "agelab.evaluate"
"""The package that evaluates; the modules that it imports are a part of it."""
CARRIES_OUT = ("cell.py", "phases.py")
"""Modules of agelab/runner/execute/ that say which boots count, and give a cell a status for what its host saw."""


def harness_files() -> dict[str, bytes]:
    """Return the harness as it goes into each boot: path below /run/agelab to content."""
    return {f"harness/{path.name}": fileio.read_bytes(path) for path in sorted(places.HARNESS.glob("*.py"))}


def harness_start() -> bytes:
    """Return the guest's first program."""
    return fileio.read_bytes(places.HARNESS / "start")


def harness_hash() -> str:
    texts = {name: data.decode() for name, data in harness_files().items()}
    return key_of({**texts, "start": harness_start().decode()})


def drive_sources() -> str:
    """Return the hash of the modelled drive's sources."""
    return key_of({path.name: file_hash(path) for path in source_files()})


def collect(
    spec: CellSpec,
    image: Image,
    emulator: Emulator,
    corpus: Corpus,
    module: Path | None,
    tools: Mapping[str, Path],
    companion: StoredDisk | None,
) -> dict[str, Any]:
    """Return the inputs that all boots of a cell share. Equal inputs give equal digits.

    ``module`` is the modelled drive's kernel module, for a cell that has one; ``tools`` are the guest's own programs,
    ``companion`` is the disk beside the one under test.
    """
    return {
        "kernel": _kernel(image.kernel, spec),
        "image": image.content,
        "harness": harness_hash(),
        "corpus": {"sha256": corpus.sha256, "size": corpus.size},
        **parts_of_files(spec),
        "layout": spec.layout,
        "drive_module": {"sources": drive_sources(), "module": file_hash(module)} if module else None,
        "beside": companion.artefact.manifest.files if companion else None,
        "tools": {name: file_hash(path) for name, path in sorted(tools.items())},
        "seeds": {"run": spec.run_seed, "corpus": spec.corpus_seed},
        "qemu": emulator.identity,
    }


def _kernel(kernel: Kernel, spec: CellSpec) -> dict[str, Any]:
    """Return the kernel, with the modules that were built for it where the cell's filesystems have such."""
    facts: dict[str, Any] = {"release": kernel.release, "package": kernel.version, "key": kernel.key}
    if any(filesystem and filesystem.module_source for filesystem in (spec.filesystem, spec.companion)):
        facts["modules"] = {path.name: file_hash(path) for path in kernel.built_modules}
    return facts


def parts_of_files(spec: CellSpec) -> dict[str, Any]:
    """Return the inputs that come from data files: the machine and the drives."""
    return {"machine": spec.machine.model_dump(mode="json"), "drives": [_drive(drive) for drive in spec.disk.drives]}


def _drive(drive: CellDrive) -> dict[str, Any]:
    profile = drive.profile.model_dump(mode="json") if drive.profile else None
    token = drive.claim.token if drive.claim else None
    sizes = [part.bytes for part in drive.partitions]
    return {"drive": str(drive.spec), "bytes": sizes, "profile": profile, "token": token}


def guest_command(command: Sequence[str], places: Mapping[str, Path]) -> list[str]:
    """Return the QEMU command without the options that only manage the guest, and with names for this host's paths.

    ``places`` maps a name (``cell``) to the directory that ``{cell}`` replaces.
    """
    words, kept = iter(command), []
    overruled = {name: command.count(name) - 1 for name in LAST_COUNTS}
    for word in words:
        if overruled.get(word, 0) > 0:
            overruled[word] -= 1
            next(words)
        elif word in MANAGEMENT:
            next(words)
        elif word in ("-object", "-chardev"):
            value = next(words)
            if "masterKey0" not in value and "charmonitor" not in value:
                kept += [word, value]
        else:
            kept.append(word)
    # The longest path first: one place may lie inside another.
    for name, path in sorted(places.items(), key=lambda item: -len(str(item[1]))):
        kept = [word.replace(str(path), "{" + name + "}") for word in kept]
    return kept


@cache
def evaluating_code() -> list[str]:
    """Return the hashes of the code that evaluates, as it was when first asked for."""
    place = places.PACKAGE / "runner" / "execute"
    return [hashing.code_hash(EVALUATES), *(hashing.file_code_hash(place / name) for name in CARRIES_OUT)]


def evaluated_by(spec: CellSpec) -> str:
    """Return the hash of all that evaluates a cell: code, and the data files that say what to make of output.

    Those are the files of its filesystems and of its programs.
    """
    filesystems = [
        filesystem.model_dump(mode="json") if filesystem else None for filesystem in (spec.filesystem, spec.companion)
    ]
    workload = spec.workload
    programs = {name: program.model_dump(mode="json") for name, program in workload.programs.items()}
    metrics = {name: asdict(metric) for name, metric in workload.metrics.items()}
    return "sha256:" + key_of([evaluating_code(), filesystems, programs, metrics, spec.scenario.measures])
