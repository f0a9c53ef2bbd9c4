"""Find kernels that have what another one lacks: Debian's kernels in the store, and agelab's recipes."""

from collections.abc import Sequence

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.kernel import recipes
from agelab.kernel.config import NEEDED, SMALL
from agelab.kernel.guest_needs import MODULE_OPTIONS, set_options
from agelab.kernel.modinfo import canonical_name
from agelab.kernel.modules import CONFIG, MissingModule, MissingOption, Modules
from agelab.kernel.provenance import identity
from agelab.kernel.stored_kernel import Kernel
from agelab.kernel.versions import sort_key
from agelab.store.artefacts import Store


def why_not(kernel: Modules, modules: Sequence[str], wanted: Sequence[str]) -> str:
    """Say what a kernel lacks of these modules and options (without ``CONFIG_``); nothing where it has all."""
    try:
        kernel.closure(modules)
        kernel.require(wanted)
    except (MissingModule, MissingOption) as error:
        return str(error)
    return ""


def kernels_with(kernel: Kernel, modules: Sequence[str], wanted: Sequence[str], store: Store) -> list[str]:
    """Name the kernels that have these modules and options, the newest first, as ``--kernel`` takes them.

    Recipes follow: those that switch on all that ``kernel`` lacks.
    """
    stored = []
    for artefact in store.all("kernel"):
        release, version = identity(artefact)
        if "package" in artefact.manifest.inputs and not why_not(
            Modules.of(release, artefact.directory), modules, wanted
        ):
            stored.append((sort_key(version), release))
    lacking = _lacking(kernel, modules, wanted)
    made = [name for name in recipes.list_recipes() if _makes(name, lacking)]
    return [release for _, release in sorted(stored, reverse=True)] + [f"recipe:{name}" for name in made]


def _lacking(kernel: Kernel, modules: Sequence[str], wanted: Sequence[str]) -> set[str]:
    there = kernel.modules
    absent = {MODULE_OPTIONS.get(canonical_name(name), name) for name in modules if not there.has(name)}
    config = kernel.directory / CONFIG
    known = set_options(fileio.read_text(config)) if config.exists() else {}
    return absent | {option for option in wanted if option not in known}


def _makes(recipe: str, lacking: set[str]) -> bool:
    """Return True where a recipe is made for one of these options, and its configuration has the rest."""
    try:
        built = recipes.parse(f"recipe:{recipe}")
    except InputError:  # a patch is not there
        return False
    own, rest = "\n".join(built.lines), built.base or SMALL
    known = set_options("\n".join([fileio.read_text(NEEDED), fileio.read_text(rest), own])).keys()
    return not lacking.isdisjoint(set_options(own)) and lacking <= known
