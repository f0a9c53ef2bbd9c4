"""A user's program, built at a commit of its tree: confined, with packages of the guest's suite."""

import shutil
from pathlib import Path

from agelab.base import git, readers
from agelab.base.errors import Notify
from agelab.base.process import run as run_process
from agelab.bisect.track.question import OwnProgram
from agelab.debian import buildroot
from agelab.debian.buildroot import BuildRoot, Purpose, Workshop
from agelab.machine.image import root
from agelab.store.artefacts import Artefact, Store

SHELL = (
    *("binutils", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip", "mawk", "sed", "tar"),
    *("bash", "python3-minimal"),
)
"""What a build finds beside the packages that it names."""
MADE = "made"
"""The directory of the artefact that holds the file."""
RECIPE = 1
"""Raised whenever the same commit, packages and command would make another file."""


def build(program: OwnProgram, commit: str, store: Store, say: Notify) -> Path:
    """Return the file that the program's command makes of a commit.

    Raises BuildFailed where it makes none, HostError where nothing can be built here.
    """
    repository = git.at(Path(program.path).expanduser())
    assert repository, "its commits were listed"
    suite, packages = root.definition().suite, sorted({*SHELL, *program.packages})
    purpose = Purpose(f"the program at {commit[:12]}", (), {"program": RECIPE})

    def built_with(chosen: BuildRoot) -> Artefact:
        def make(directory: Path) -> None:
            shop_root = buildroot.unpacked_root(buildroot.of_packages(chosen, purpose, store, say), store)
            work, packed = directory / "work", directory / "source.tar"
            work.mkdir()
            repository.query(["archive", "--format=tar", commit], stdout=packed)
            run_process(["tar", "-C", str(work), "-xf", str(packed), "--no-same-owner"])
            packed.unlink()
            say(f"building the program at {commit[:12]}")
            shop = Workshop(shop_root, work, purpose.product)
            shop.run(["sh", "-ec", program.build])
            made = directory / MADE / Path(program.makes).name  # it may be called as anything here
            made.parent.mkdir()
            shutil.copy(shop.made(program.makes), made)
            shutil.rmtree(work)
            shop.log.unlink(missing_ok=True)

        inputs = {
            "commit": commit,
            "command": program.build,
            "makes": program.makes,
            "root": buildroot.key(chosen, purpose),
        }
        return store.obtain("program", inputs, make, readable_by=readers.of_files(repository.top))

    def resolve(refresh: bool) -> BuildRoot:
        question = {"program": suite, "packages": packages}
        return buildroot.resolve(store, suite, question, lambda archive: archive.resolve(packages), refresh=refresh)

    made = buildroot.with_packages(resolve, built_with)
    return made / MADE / Path(program.makes).name
