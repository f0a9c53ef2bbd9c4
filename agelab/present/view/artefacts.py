"""Kernels, guest images, corpora and stored disks on a terminal and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agelab.base.errors import name_some
from agelab.base.gathered import gathered
from agelab.base.verbs import as_called
from agelab.data.corpus import Corpus
from agelab.kernel import Kernel
from agelab.kernel.debian_kernel import AvailableKernel
from agelab.kernel.stored_kernel import Provenance, release_and_version
from agelab.machine.image import Image
from agelab.present.report.blocks import Block, Column, Line, Table, facts, headings
from agelab.scenario.filesystem import Filesystem
from agelab.store.artefacts import Store
from agelab.store.stored_disk import SHORT_KEY, StoredDisk
from agelab.store.usage import Pruned, StoredItem, StoreUsage, total_size

SCHEMA = 1
MAX_NAMED = 2
"""Runs and disks to name beside an artefact."""


WHAT = {
    "buildroot": "a compiler with its libraries, unpacked",
    "corpus": "seeded data, or a history's log",
    "disk": "stored disks: agelab list disks",
    "dkms": "filesystem modules from a package's sources",
    "drive": "the modelled drive's kernel module",
    "guest": "booted guests, of which cells begin as copies",
    "image": "a root, a kernel and an initramfs, proved in a guest",
    "kernel": "kernels, unpacked or built: agelab list kernels",
    "packer": "Packer, which boots an image for its proof",
    "qemu": "QEMU and what keeps the host's clock from it",
    "root": "the guest's system, before a kernel is added",
    "schedule": "the library that shakes a guest's schedule",
    "tools": "the guest's own small programs",
    "used-drive": "the map of a used solid-state drive",
    "cache buildroots": "packages of compilers",
    "cache ccache": "what compilers have compiled",
    "cache debs": "downloaded packages",
    "cache kernels": "sources and objects of kernels that are built",
    "cache": "package lists, and what versions were resolved to; never pruned",
    "crash": "runs of agelab crash",
    "runs": "results; agelab rm removes some",
    "other": "locks, bisects, suites, the store's secret",
}
"""What a kind of things in the store is."""


def kinds(usage: StoreUsage) -> dict[str, list[StoredItem]]:
    """Group the items by kind, artefacts first."""
    in_order = sorted(usage.items, key=lambda item: (not item.is_artefact, item.kind))
    return gathered((item.kind, item) for item in in_order)


def usage_blocks(usage: StoreUsage) -> Iterator[Block]:
    """Yield number, size and last use of each kind, and the sum."""
    heads = headings(" kind", "number", "MB", " last use", "", numbers=("number", "MB"), wrapped=("",))
    rows = [
        (f" {name}", "" if number is None else str(number), _megabytes(size), _day(moment), f" {WHAT.get(name, '')}")
        for name, number, size, moment in _usage_rows(usage)
    ]
    rows.append((" all", "", _megabytes(usage.size), "", ""))
    yield Table(heads, rows)
    if total_size(item.files for item in usage.items) < sum(item.size for item in usage.items):
        yield Line("a file that several artefacts share counts in each, and once in all")
    yield from _damaged_blocks(usage)


def items_blocks(usage: StoreUsage, items: Sequence[StoredItem]) -> Iterator[Block]:
    """Yield one line for each item, the least recently used first."""
    heads = headings(" key", "MB", " last use", " named by", numbers=("MB",), wrapped=(" named by",))
    rows = []
    for item in _by_use(items):
        names = usage.named_by.get(item.path, ())
        named = name_some(names, MAX_NAMED)
        rows.append((f" {_short(item)}", _megabytes(item.size), _day(item.last_use), f" {named}"))
    yield Table(heads, rows)
    yield from _damaged_blocks(usage)


def pruned_blocks(pruned: Pruned, limit: int, *, dry_run: bool) -> Iterator[Block]:
    """Yield what was removed, how much that freed, and why the rest stays where it is more than the limit."""
    verb = "would remove" if dry_run else "removed"
    downloads: dict[str, list[int]] = {}
    for item, freed in pruned.removed:
        if item.is_artefact:
            last_use = _day(item.last_use)
            yield Line(f"{verb} {item.kind} {_short(item)}, {_megabytes(freed)} MB, last used{last_use}")
        else:
            downloads.setdefault(item.kind, []).append(freed)
    for kind, sizes in downloads.items():
        yield Line(f"{verb} {len(sizes)} of {kind}, {_megabytes(sum(sizes))} MB")
    verb = "would free" if dry_run else "freed"
    yield Line(f"{verb} {_megabytes(pruned.freed)} MB; {_megabytes(pruned.left)} MB are left")
    if pruned.left > limit:
        yield Line(f"that is more than {_megabytes(limit)} MB, and the rest stays:")
        for reason, items in pruned.kept.items():
            yield Line(f"  {_megabytes(_size(items))} MB, {len(items)} artefacts or downloads: {reason}")
        yield Line(as_called("remove stored disks with agelab disk rm, runs with agelab rm"))


def _damaged_blocks(usage: StoreUsage) -> Iterator[Block]:
    for name in usage.damaged_runs:
        yield Line(f"run {name} cannot be read: what it names is not known, so no artefact is pruned")


def usage_json(usage: StoreUsage) -> dict[str, Any]:
    rows = [
        {"kind": name, "number": number, "bytes": size, "last_use": _moment(moment)}
        for name, number, size, moment in _usage_rows(usage)
    ]
    return {
        "schema": SCHEMA, "bytes": usage.size, "kinds": rows, "damaged_runs": list(usage.damaged_runs)
    }  # fmt: skip


def items_json(usage: StoreUsage, items: Sequence[StoredItem]) -> dict[str, Any]:
    rows = [{**_item_json(item), "named_by": list(usage.named_by.get(item.path, ()))} for item in _by_use(items)]
    return {"schema": SCHEMA, "items": rows, "damaged_runs": list(usage.damaged_runs)}


def pruned_json(pruned: Pruned, limit: int, *, dry_run: bool) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "dry_run": dry_run,
        "limit": limit,
        "left": pruned.left,
        "freed": pruned.freed,
        "removed": [{**_item_json(item), "freed": freed} for item, freed in pruned.removed],
        "kept": {reason.value: {"number": len(items), "bytes": _size(items)} for reason, items in pruned.kept.items()},
    }


def _item_json(item: StoredItem) -> dict[str, Any]:
    return {
        "kind": item.kind, "key": item.name, "bytes": item.size, "last_use": _moment(item.last_use)
    }  # fmt: skip


def _usage_rows(usage: StoreUsage) -> Iterator[tuple[str, int | None, int, float | None]]:
    """Yield name, number, bytes and last use of each kind, then of what is no item; that has no number."""
    for kind, items in kinds(usage).items():
        yield kind, len(items), _size(items), max(item.last_use for item in items)
    for name, files in usage.rest.items():
        yield name, None, total_size([files]), None


def _size(items: Sequence[StoredItem]) -> int:
    return total_size(item.files for item in items)


def _by_use(items: Sequence[StoredItem]) -> list[StoredItem]:
    return sorted(items, key=lambda item: item.last_use)


def _short(item: StoredItem) -> str:
    return item.name[:SHORT_KEY] if item.is_artefact else item.name


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f}"


def _day(moment: float | None) -> str:
    """Format a moment in this host's time, with a blank before it; a damaged artefact has none."""
    if moment is None:
        return ""
    return f" {datetime.fromtimestamp(moment):%Y-%m-%d %H:%M}" if moment else " damaged"


def _moment(moment: float | None) -> str | None:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds") if moment else None


def kernel_rows(store: Store, offered: Sequence[AvailableKernel]) -> list[dict[str, Any]]:
    """List the mirror's kernels, then those that only the store has, as JSON objects."""
    stored = {artefact.key: release_and_version(artefact) for artefact in store.all("kernel")}
    keys = {named: key for key, named in stored.items()}
    rows = []
    for kernel in offered:
        key = keys.get((kernel.release, kernel.version))
        rows.append({"spec": kernel.spec, **kernel.model_dump(), "stored": key is not None, "key": key})
    there = {(kernel.release, kernel.version) for kernel in offered}
    for key, (release, version) in stored.items():
        if (release, version) not in there:
            row = {"spec": None, "release": release, "version": version, "suite": None, "headers": None}
            rows.append({**row, "stored": True, "key": key})
    return rows


def kernels_blocks(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """Yield one line for each row of ``kernel_rows``."""
    table = []
    for row in rows:
        mark = "*" if row["stored"] else " "
        where, note = row["suite"] or "the store alone", row["key"][:SHORT_KEY] if row["spec"] is None else ""
        note = "no headers: model:none alone" if row["headers"] is False else note
        table.append((f"{mark} {row['spec'] or row['release']}", row["version"], where, note))
    heads = [*headings("", ""), *headings("", "", wrapped=("",))]
    yield Table(heads, table)
    yield Line("* in the store")


def provenance_blocks(
    kernel: Kernel, source: Provenance, filesystems: Sequence[Filesystem], served: Mapping[str, str]
) -> Iterator[Block]:
    """Yield where a kernel came from, and how it serves each filesystem."""
    yield Line(f"{kernel.spec} is {kernel.release} ({kernel.version})")
    kind = source.kind.removesuffix("s")
    lines = [
        ("key", kernel.key),
        ("in", str(kernel.directory)),
        ("suite", kernel.suite or "none of Debian's"),
        *((kind, f"{file.name} {file.version}".rstrip() + f", sha256 {file.sha256}") for file in source.sources),
        ("commit", source.commit),
        *(("patch", f"{patch.name}, sha256 {patch.sha256}") for patch in source.patches),
        ("config", f"sha256 {source.config}" if source.config else "not known"),
        ("compiler", source.compiler or "not known"),
        ("banner", source.banner),
        ("options", " ".join(f"{name}={value}" for name, value in source.highlights.items())),
        *((filesystem.name, served[filesystem.name] + _serving_module(filesystem)) for filesystem in filesystems),
    ]
    for name, value in lines:
        if value:
            yield Line(f"  {name:<10} {value}")


def _serving_module(filesystem: Filesystem) -> str:
    """Name the module that serves a filesystem, where its name is another."""
    first = filesystem.modules[:1]
    return "" if first in ((), (filesystem.name,)) else f" ({first[0]})"


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    return {
        "spec": kernel.spec,
        "release": kernel.release,
        "version": kernel.version,
        "suite": kernel.suite or None,
        "key": kernel.key,
        "directory": str(kernel.directory),
    }


def images_blocks(images: Sequence[Image]) -> Iterator[Block]:
    """Yield each image with what it proved in a guest."""
    for image in images:
        yield Line(f"image {image.key[:SHORT_KEY]} of {image.kernel.release} ({image.kernel.version})")
        yield Line(f"  content  {image.content}")
        yield Line(f"  in       {image.artefact.directory}")
        for (filesystem, defaults), proof in image.proof.items():
            reason = f": {proof.reason}" if proof.reason else ""
            yield Line(f"  {filesystem:<10} {defaults:<7} {proof.status}{reason}")


def images_json(images: Sequence[Image]) -> list[dict[str, Any]]:
    return [{"key": image.key, "content": image.content, **image.description.model_dump()} for image in images]


def corpora_blocks(corpora: Sequence[Corpus]) -> Iterator[Block]:
    rows = [
        (corpus.key[:SHORT_KEY], f" {corpus.size / 1e6:8.1f} MB ", f" {corpus.files:7d} files ", corpus.description)
        for corpus in corpora
    ]
    if rows:
        heads = [*headings("", "", ""), Column("", "wrapped")]
        yield Table(heads, rows)
    else:
        yield Line(as_called("none yet; a run makes what it needs, or: agelab corpus make"))


def corpus_blocks(corpus: Corpus) -> Iterator[Block]:
    yield facts(
        {
            name.replace("_bytes", ""): f"{value} bytes" if name in ("size", "content_bytes") else value
            for name, value in corpus_json(corpus).items()
        }
    )


def corpus_json(corpus: Corpus) -> dict[str, Any]:
    """Return what is known of a corpus; sizes in bytes."""
    return {
        "key": corpus.key,
        "description": corpus.description,
        "image": str(corpus.image),
        "size": corpus.size,
        "sha256": corpus.sha256,
        "files": corpus.files,
        "content_bytes": corpus.content_bytes,
    }


def disks_blocks(disks: Sequence[StoredDisk]) -> Iterator[Block]:
    corpora = any(disk.recipe.corpus_seed not in (None, 1) for disk in disks)
    names = ("disk", "is", "from", "filesystem", "defaults", "layout", "seed", *["corpus"] * corpora, "kernel")
    heads: list[Column] = [
        *(Column(f" {name}") for name in names), *(Column(f" {name}", "right") for name in ("MB", "MB here"))
    ]  # fmt: skip
    rows = []
    for disk in disks:
        recipe = disk.recipe
        origin = f"{recipe.scenario}-{recipe.variant}, {recipe.scale}" if recipe.scenario else "import"
        seeds = [recipe.run_seed, *[recipe.corpus_seed] * corpora]
        cells = (
            disk.key[:SHORT_KEY],
            recipe.makes,
            origin,
            recipe.filesystem,
            recipe.defaults,
            recipe.layout,
            *("" if seed is None else str(seed) for seed in seeds),
        )
        sizes = (f"{size / 1e6:.0f}" for size in (sum(recipe.sizes), disk.occupied_bytes))
        rows.append([f" {cell}" for cell in (*cells, recipe.kernel or "", *sizes)])
    yield Table(heads, rows)


def disk_blocks(disk: StoredDisk) -> Iterator[Block]:
    """Yield what a disk is, then whether its content is what was stored. Raises Damaged where it is not."""
    yield facts(disk_json(disk))
    disk.verify()
    yield facts({"content": "verified: it is what was stored"})


def disk_json(disk: StoredDisk) -> dict[str, Any]:
    """Return a disk's key, its recipe and the bytes that it takes here."""
    return {"key": disk.key, **disk.recipe.model_dump(mode="json"), "occupied": disk.occupied_bytes}
