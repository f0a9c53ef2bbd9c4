"""Every question about the Debian packages of a run, asked before anything is made: a snapshot may lack some."""

from agelab import kernel as kernel_specs
from agelab.base.errors import Notify
from agelab.debian import buildroot, snapshot
from agelab.machine import qemu
from agelab.machine.disk import DriveClaim
from agelab.machine.drive import module as modules
from agelab.machine.image import packer
from agelab.machine.image import root as roots
from agelab.runner.prepare import input_data
from agelab.runner.prepare.run_manifest import module_packages, root_of
from agelab.runner.request.run_request import RunRequest, cell_requests
from agelab.store.artefacts import Store


def ask(request: RunRequest, claims: tuple[DriveClaim, ...], store: Store, progress: Notify) -> None:
    """With a snapshot, resolve all that a run is made of. Raises as making it would.

    Packages of today are asked for one after the other: a store that has the parts of a run needs no mirror.
    """
    if not snapshot.chosen():
        return
    roots.resolve_packages(*root_of(request), store)
    emulator = qemu.resolve_packages(store)
    for suite in dict.fromkeys((emulator.suite, roots.definition().suite)):
        buildroot.resolve_compiler(store, suite)
    packer.resolve_package(store)
    kernel = kernel_specs.ask_packages(request.kernel, store, progress)
    if kernel is None:
        return
    cells = cell_requests(request, input_data.shrink(request, None), claims, None)
    if any(cell.spec.has_modelled_drive for cell in cells):
        modules.resolve_packages(kernel, store, progress=progress)
    module_packages(request, kernel, store)
