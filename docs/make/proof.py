"""What a table is of, and the proof that it would be the same today (docs/design.md, "Tables of the pages").

Three hashes stand in the mark of a block. ``cells`` is of all that a checkout knows of its cells' keys: no guest, store
or network is needed to find it. ``samples`` names the runs that it was made of. ``text`` is of the code that made its
text of them. A table is of this code where cells and text are, or where the cells are and this code makes the same text
of the same samples: that takes a store which has them, and seconds.
"""

import ast
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agelab.base import places
from agelab.base.errors import AgelabError, InputError
from agelab.base.hashing import file_code_hash, key_of
from agelab.data.corpus import Corpus
from agelab.data.corpus import artefact as corpora
from agelab.data.corpus.definition import definition
from agelab.data.history import churn, profile, pulls, synthetic, traced, tree
from agelab.kernel import initramfs
from agelab.kernel.modules import Modules
from agelab.machine.drive import module as drive_module
from agelab.machine.image import root, sealed_image
from agelab.machine.qemu import emulator
from agelab.machine.vm.domain import virt_install_command
from agelab.machine.vm.guest import GuestSpec, MemoryDisk, slots_for
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import guest_plan, map_plan
from agelab.runner.plan.passes import with_keepers
from agelab.runner.plan.phases import phases
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells
from agelab.store.artefacts import file_hash
from docs.make.block import Block
from docs.make.catalogue import Table
from docs.make.page import DOCS, PROJECT, wrapped

OURS = ("agelab", "docs", "validation", "bench")
"""Where our own Python is that runs on the host."""
DIGITS, DIGITS_OF_A_RUN = 16, 8
"""Hexadecimal digits of the hashes in a page."""
FILE = Path("/file")
"""Stands for every file of a guest."""
MACHINERY = {DOCS / "make" / f"{name}.py" for name in ("block", "catalogue", "command", "make", "proof")}
"""What puts texts into pages, and shapes none of them."""
WHAT = {"page", "needs", "beyond"}
"""Fields of a table that shape nothing of it."""
OF_RUNS = {"runs", "kernels"}
"""Fields of a table that say what its cells are."""


# ---- cells ----


def cells(table: Table) -> str:
    """Return the hash of what is known of the keys of a table's cells. Raises InputError for options of no run."""
    if not table.runs:
        return ""
    return key_of([_shared(), table.runs, table.kernels, list(map(_cells, table.asked))])[:DIGITS]


@cache
def _shared() -> dict[str, Any]:
    """Return what all cells have: the guest side, and what says of the artefacts how they are made."""
    guest = [path for place in (places.IMAGES, places.PACKER) for path in place.rglob("*")]
    built_in = Modules("", FILE, (), frozenset(initramfs.BASE_MODULES))
    base = initramfs.base(built_in, b"busybox", b"init")
    own = initramfs.cell(built_in, (), {"file": b"file"}, {"program": b"program"}, {"module": b"module"})
    made = (
        corpora,
        churn,
        profile,
        pulls,
        synthetic,
        traced,
        tree,
        drive_module,
        emulator,
        root,
        sealed_image,
    )
    return {
        "harness": cell_inputs.harness_hash(),
        "drive": cell_inputs.drive_sources(),
        "qemu": emulator.sources(),
        "guest": _hashes(guest),
        "initramfs": [initramfs.BASE_MODULES, key_of((base + own).hex())],
        "recipes": [made_by.RECIPE for made_by in made],
    }


@cache
def _definitions() -> list[str]:
    """Return the hashes of what histories are made by: profiles, and corpora that they copy."""
    places_of_data = (places.CORPORA, Path(profile.__file__).parent)
    return _hashes(path for place in places_of_data for path in place.glob("*.toml"))


def names_of_cells(options: RunOptions) -> list[str]:
    """Return a hash for each cell of a run that is not made yet: what two runs plan alike has one name."""
    return [key_of([options.kernel, each]) for each in _planned(options)]


def _cells(options: RunOptions) -> str:
    return key_of(_planned(options))


@cache
def _planned(options: RunOptions) -> list[dict[str, Any]]:
    return [cell(spec) for spec in planned_cells(options)]


def cell(spec: CellSpec) -> dict[str, Any]:
    """Return what is known of the key of a cell that is planned, and what its guests are told to do."""
    corpus, history = spec.scenario.corpus, spec.history
    stand_in = Corpus("", FILE, 0, "", 0, 0, "", (), getattr(history, "points", None))
    every = map(with_keepers, phases(spec.scenario, stand_in, real=spec.disk.real, failure=spec.failure))
    workload = spec.workload
    return {
        "name": [spec.variant.name, spec.layout, spec.corpus_seed, spec.run_seed],
        "defaults": spec.defaults,
        "packages": [
            workload.packages,
            *(program.model_dump(mode="json") for program in workload.programs.values()),
        ],
        "filesystems": [
            filesystem and filesystem.model_dump(mode="json") for filesystem in (spec.filesystem, spec.companion)
        ],
        "corpus": corpus and [corpus.model_dump(mode="json"), definition(corpus.kind).model_dump(mode="json")],
        "history": history and [history.model_dump(mode="json"), _definitions()],
        "shrink": spec.shrink,
        "files": {name: key_of(data.hex()) for name, data in {**spec.scripts, **spec.brought.files}.items()},
        **cell_inputs.parts_of_files(spec),
        "modules": spec.modules,
        "plans": [guest_plan(spec, stand_in, phase) for phase in every],
        "map": map_plan(spec, ["aged"]),
        "command": _command(spec, stand_in),
        "evaluated_by": cell_inputs.evaluated_by(spec),
    }


def _command(spec: CellSpec, corpus: Corpus) -> list[str]:
    """Return the words for virt-install of a guest like the cell's."""
    virtual = spec.clock == "virtual"
    guest = GuestSpec(
        name="guest",
        emulator=FILE,
        machine=spec.machine,
        memory_mib=spec.memory_mib(corpus),
        kernel=FILE,
        initramfs=FILE,
        disks=tuple(MemoryDisk(FILE, size, written=True) for size in spec.disk.memory_disks),
        console=FILE,
        events=FILE,
        preload=(FILE,) if virtual else (),
        clock=spec.clock,
        vcpus=spec.vcpus,
        accelerator=spec.accelerator,
    )
    return [*virt_install_command(guest, ()), repr(slots_for((*guest.disks, *guest.disks)))]


# ---- text ----


def text(table: Table) -> str:
    """Return the hash of what makes a table's text. Raises InputError for files that there are not."""
    fields = table.model_dump(mode="json", exclude=WHAT | OF_RUNS)
    code = _modules(table.module, bool(table.runs))
    if table.commands:
        code |= _modules("agelab.cli.*", True)
    return key_of([fields, sorted(map(_code_hash, code)), _hashes(_named(table.of))])[:DIGITS]


def _modules(name: str, ours: bool) -> set[Path]:
    """List a maker's module and those that it imports, at once or by others; of agelab's only if ``ours``.

    A table of runs depends on all of them: rendering it again proves that a change of them is none. No sample is kept
    of the others, for which "of" names what they depend on.
    """
    modules: set[Path] = set()
    waiting = _paths([name])
    while waiting:
        path = waiting.pop()
        if path not in modules and (ours or not path.is_relative_to(places.PACKAGE)):
            modules.add(path)
            waiting += _imported(path)
    return modules


@cache
def _imported(path: Path) -> list[Path]:
    """List our own modules that a module imports."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return _paths(name for name in names if name.partition(".")[0] in OURS)


def _paths(names: Iterable[str]) -> list[Path]:
    """List the files of modules and packages, without agelab/__init__.py: it has the version, and brings everything."""
    paths = []
    for name in names:
        place = PROJECT / name.replace(".", "/")
        paths += [*place.parent.glob(f"{place.name}.py"), *place.glob("__init__.py")]
    return [path for path in paths if path not in MACHINERY and path != places.PACKAGE / "__init__.py"]


def _named(names: Iterable[str]) -> list[Path]:
    files: list[Path] = []
    for name in names:
        path = PROJECT / name
        if not path.exists():
            raise InputError(f"docs/tables.toml: a table is of {name}, which there is not")
        files += path.rglob("*") if path.is_dir() else [path]
    return files


@cache
def _code_hash(path: Path) -> str:
    return file_code_hash(path)


def _hashes(paths: Iterable[Path]) -> list[str]:
    """Hash files, wherever they lie: of our own modules what they do. Compiled and hidden ones are passed over."""
    files = [
        path for path in paths if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    ]
    return sorted(_code_hash(path) if _is_code(path) else file_hash(path) for path in files)


def _is_code(path: Path) -> bool:
    """Return True if a file is Python that runs on the host: what guests run is in their keys with its whole text."""
    return path.suffix == ".py" and path.relative_to(PROJECT).parts[0] in OURS


# ---- samples ----


def samples(runs: Sequence[RunDirectory]) -> tuple[str, ...]:
    """Return a hash for each run: of the keys and the digests of its cells."""
    return tuple(map(_samples, runs))


def _samples(run: RunDirectory) -> str:
    ends = [run.end(number) for number in range(len(run.plan().cells))]
    outcomes = [end and [end.status.value, end.reason, end.inputs_key, end.digest] for end in ends]
    return key_of([run.plan().scenario, outcomes])[:DIGITS_OF_A_RUN]


@cache
def _stored(runs: Path) -> dict[str, RunDirectory]:
    """Return the runs of a store by the hash of their samples."""
    stored = {}
    for run in run_lookup.all_runs(runs):
        try:
            stored[_samples(run)] = run
        except AgelabError:  # a damaged run
            continue
    return stored


# ---- proof ----


def is_current(table: Table, block: Block) -> bool:
    """Return True if what a block says that it is of is what there is today."""
    return bool(block.text) and (block.cells, block.text) == (cells(table), text(table))


def makes_the_same(table: Table, block: Block, runs: Path) -> bool | None:
    """Return True if today's code makes the same block and pictures of the samples that it was made of.

    None where its cells would be others, where this store has not all of its samples, or where they are not all that
    it is made of.
    """
    stored = _stored(runs)
    if block.cells != cells(table) or table.beyond or not block.samples or set(block.samples) - set(stored):
        return None
    try:
        made = table.made([stored[name] for name in block.samples])
    except AgelabError:
        return False
    same = all((DOCS / path).exists() and (DOCS / path).read_bytes() == data for path, data in made.files.items())
    return same and wrapped(made.text).strip("\n") == block.body
