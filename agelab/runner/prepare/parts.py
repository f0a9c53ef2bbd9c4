"""The parts that a run's guests are made of: made, or found in the store; or carried by a capsule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from agelab import kernel as kernel_specs
from agelab.base.errors import InputError, Notify
from agelab.base.process import SideBySide
from agelab.data.corpus import Corpus, require_corpus
from agelab.debian import buildroot, snapshot
from agelab.kernel import Kernel, guest_needs
from agelab.machine import dkms, qemu
from agelab.machine import image as images
from agelab.machine.disk import DriveClaim
from agelab.machine.drive import module as modules
from agelab.machine.image import Image, packer, tools
from agelab.machine.image import root as roots
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.prepare import input_data, mkfs_trial
from agelab.runner.prepare.run_manifest import RunManifest, collect, filesystems_of, module_packages, root_of
from agelab.runner.request.request import RunRequest, cell_requests
from agelab.scenario.filesystem import Filesystem
from agelab.store.artefacts import Store


@dataclass(frozen=True)
class MadeParts:
    """Parts that are found in the store, or made now; CarriedParts answers to the same calls."""

    request: RunRequest
    store: Store
    say: Notify

    def require(self, claims: tuple[DriveClaim, ...]) -> None:
        """Tell what is lacking, as far as it can be told before anything is made. Raises as making it would."""
        if self.request.corpus:
            require_corpus(self.request.corpus)
        ask_packages(self.request, claims, self.store, self.say)
        roots.resolve_packages(*root_of(self.request), self.store)

    def begin(self, beside: SideBySide, *, common: bool) -> None:
        """Begin to make what does not wait for the kernel; with ``common`` the programs of every guest."""
        definition, filesystems = root_of(self.request)
        chosen = roots.resolve_packages(definition, filesystems, self.store)
        beside.begin(partial(roots.identity, definition, chosen, self.store, self.say))
        if common:
            beside.begin(partial(tools.obtain, self.store, self.say))

    def kernel(self) -> Kernel:
        """Return the kernel, with the modules of its filesystems."""
        self.say(f"kernel {self.request.kernel}")
        kernel = kernel_specs.resolve(self.request.kernel, self.store, progress=self.say)
        return dkms.with_modules(kernel, filesystems_of(self.request), self.store, self.say)

    def own_corpus(self) -> Corpus | None:
        """Return the user's own source data."""
        return input_data.user_corpus(self.request, self.store, self.say)

    def corpora(self, specs: Sequence[CellSpec], own: Corpus | None) -> list[Corpus]:
        """Return the corpus, or the history's log, that each of these cells reads."""
        return input_data.corpora(self.request, specs, own, self.store, self.say)

    def image(self, kernel: Kernel, specs: Sequence[CellSpec]) -> tuple[Image, Sequence[CellSpec]]:
        """Return the guests' image, and the cells, which know whether mkfs refuses their options."""
        selected = self.request.selection
        image = images.build(
            kernel,
            self.store,
            root_of(self.request)[1],
            proved=filesystems_made(specs),
            packages=self.request.packages,
            suite=selected.scenario.suite,
            programs={program.name: program.proof for program in selected.workload.programs.values() if program.proof},
            progress=self.say,
        )
        return image, mkfs_trial.try_options(specs, image, self.store, self.say)

    def module(self, kernel: Kernel) -> Path:
        """Return the modelled drive's kernel module."""
        return modules.obtain(kernel, self.store, self.say)

    def programs(self, spec: CellSpec, *, common: bool) -> dict[str, Path]:
        """Return the programs of a cell's guest: those of every guest where ``common``, and its filesystem's."""
        general = tools.obtain(self.store, self.say) if common else {}
        return {**general, **tools.obtain_filesystem_tools(spec.filesystem.tools, self.store, self.say)}

    def manifest(
        self,
        specs: Sequence[CellSpec],
        image: Image,
        corpora: Sequence[Corpus],
        answers: Mapping[str, JsonValue],
        *,
        modelled: bool,
    ) -> RunManifest:
        """Return what the parts were made of, with the ``answers`` to package questions since the preparation began.

        ``modelled`` says that there is a module of a modelled drive.
        """
        return collect(self.request, specs, image.kernel, corpora, self.store, answers, modelled=modelled)


@dataclass(frozen=True)
class CarriedParts:
    """Parts that a capsule carries. Guests run them; the host runs none."""

    served: Image
    drive: Path | None
    """The modelled drive's module, for the image's kernel."""
    tools: Mapping[str, Path]
    """Programs for the guest, by name."""
    data: Mapping[str, Corpus]
    """By history; "" for the corpus of a scenario without histories."""
    made: RunManifest

    def require(self, claims: tuple[DriveClaim, ...]) -> None:
        """Nothing is asked for."""

    def begin(self, beside: SideBySide, *, common: bool) -> None:
        """Nothing is made."""

    def kernel(self) -> Kernel:
        return self.served.kernel

    def own_corpus(self) -> Corpus | None:
        return self.data[""]

    def corpora(self, specs: Sequence[CellSpec], own: Corpus | None) -> list[Corpus]:
        return [input_data.carried_data(self.data, spec.variant.history, spec.corpus_seed) for spec in specs]

    def image(self, kernel: Kernel, specs: Sequence[CellSpec]) -> tuple[Image, Sequence[CellSpec]]:
        return self.served, specs

    def module(self, kernel: Kernel) -> Path:
        if self.drive is None:
            why = "the modelled drive's module is not in the capsule"
            raise InputError(why, hint="pack the run again --with-image")
        return self.drive

    def programs(self, spec: CellSpec, *, common: bool) -> dict[str, Path]:
        general = tools.programs(tools.source_files()) if common else ()
        names = (*general, *spec.filesystem.tools)
        return {name: path for name, path in self.tools.items() if name in names}

    def manifest(
        self,
        specs: Sequence[CellSpec],
        image: Image,
        corpora: Sequence[Corpus],
        answers: Mapping[str, JsonValue],
        *,
        modelled: bool,
    ) -> RunManifest:
        return self.made


Parts = MadeParts | CarriedParts
"""Where the parts of one run come from."""


def ask_packages(request: RunRequest, claims: tuple[DriveClaim, ...], store: Store, progress: Notify) -> None:
    """With a snapshot, resolve all that a run is made of. Raises as making it would.

    Packages of today are asked for one after the other: a store that has the parts of a run needs no mirror.
    """
    if snapshot.chosen():
        ask_all_packages(request, claims, store, progress)
        packer.resolve_package(store)


def ask_all_packages(request: RunRequest, claims: tuple[DriveClaim, ...], store: Store, progress: Notify) -> None:
    """Resolve all packages that are in the keys of a run's cells. Raises as making it would."""
    roots.resolve_packages(*root_of(request), store)
    qemu.resolve_packages(store, request.options.suite_of_qemu)
    for suite in dict.fromkeys((qemu.SUITE, roots.definition().suite)):
        buildroot.resolve_compiler(store, suite)
    kernel = kernel_specs.ask_packages(request.kernel, store, progress)
    if kernel is None:
        return
    cells = cell_requests(request, request.shrink(None), claims, None)
    if any(cell.spec.has_modelled_drive for cell in cells):
        modules.resolve_packages(kernel, store, progress=progress)
    module_packages(request, kernel, store)


def filesystems_made(specs: Sequence[CellSpec]) -> list[Filesystem]:
    """Return each filesystem that these cells make: under test, and beside it."""
    made = [filesystem for spec in specs for filesystem in (spec.filesystem, spec.companion) if filesystem]
    return list({filesystem.name: filesystem for filesystem in made}.values())


def tell_lacking(kernel: Kernel, specs: Sequence[CellSpec], store: Store, say: Notify) -> None:
    """Say of each filesystem that the kernel lacks which kernels have it."""
    for filesystem in filesystems_made(specs):
        if filesystem.module_source:  # what cannot be built has been told
            continue
        if why := guest_needs.why_not(kernel.modules, filesystem.modules, filesystem.kernel_config):
            kernels = guest_needs.kernels_with(kernel, filesystem.modules, filesystem.kernel_config, store)
            these = f"these have it: {', '.join(kernels)}" if kernels else "no kernel in the store has it"
            say(f"{filesystem.name}: {why}; {these}")
