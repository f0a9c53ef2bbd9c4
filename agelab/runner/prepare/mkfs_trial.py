"""Try the mkfs options of a matrix on an empty file: what mkfs refuses is known before the first cell.

The mkfs is that of the guest's root, confined, with no kernel and no disk of the guest. Where it does not make the
filesystem on a file without those options, it tells nothing; what it refuses, the cell finds out.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agelab.base import atomic, confine, process
from agelab.base.errors import InputError, Notify
from agelab.base.process import ProcessFailed, TimedOut
from agelab.machine.image import Image
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.disk_plans import mkfs
from agelab.runner.plan.phases import MAKING
from agelab.scenario.guest_places import UNDER_TEST, device
from agelab.store import stored_disk
from agelab.store.artefacts import Store

SECONDS = 300.0
UNPACK = ("unsquashfs", "-no-progress", "-no-xattrs", "-quiet", "-excludes")
DEVICE_NODES = "dev"
"""What of the root is not unpacked: only root may make device nodes."""
QUIET = "-q"
"""An option with which some mkfs do not even say what is wrong."""
LONGEST = 300
"""Characters of mkfs's words to quote."""
Trial = tuple[tuple[str, ...], int]
"""A command, and the bytes of the disk."""


def try_options(specs: Sequence[CellSpec], image: Image, store: Store, progress: Notify) -> tuple[CellSpec, ...]:
    """Return the cells; those whose options mkfs refuses know its words (``refused``).

    Raises InputError for options that are refused in every combination, with a line for each of them.
    """
    chosen = {spec.variant.name: spec for spec in specs if spec.variant.chosen_mkfs_options}
    if not chosen:
        return tuple(specs)
    progress(f"trying {len(chosen)} combinations of mkfs options")
    with atomic.temp_dir(store.cache("trials")) as directory:
        root = directory / "root"
        process.run([*UNPACK, "-d", str(root), str(image.root), DEVICE_NODES])
        (root / DEVICE_NODES).mkdir(exist_ok=True)
        trials = _Trials(root, directory / "disk")
        refused = {name: why for name, spec in chosen.items() if (why := trials.refusal(spec))}
    words = {name: set(spec.variant.chosen_mkfs_options) for name, spec in chosen.items()}
    seen = {word for name in chosen if name not in refused for word in words[name]}
    lines = []
    for name, why in refused.items():
        if words[name] - seen:
            lines.append(f"options of {name}: mkfs refuses them: {why}")
            seen |= words[name]
    if lines:
        raise InputError("\n".join(lines))
    return tuple(replace(spec, refused=refused.get(spec.variant.name, "")) for spec in specs)


class _Trials:
    """What mkfs answers in an unpacked root, on a file of its own for each command."""

    def __init__(self, root: Path, disk: Path) -> None:
        self.root = root
        self.disk = disk
        self.answers: dict[Trial, tuple[bool, str]] = {}

    def refusal(self, spec: CellSpec) -> str:
        """Return mkfs's words against a variant's options; empty where it takes them, or tells nothing on a file."""
        plain = replace(spec, variant=spec.variant.model_copy(update={"chosen_mkfs_options": ()}))
        takes_files, usual = self._answer(plain)
        taken, output = self._answer(spec) if takes_files else (True, "")
        own = [line.strip() for line in output.splitlines() if line.strip() and line not in usual.splitlines()]
        return "" if taken else (own[0][:LONGEST] if own else "it says nothing")

    def _answer(self, spec: CellSpec) -> tuple[bool, str]:
        trial = (tuple(mkfs(spec, MAKING)), spec.disk_bytes)
        if trial not in self.answers:
            self.answers[trial] = self._ask(*trial)
        return self.answers[trial]

    def _ask(self, command: tuple[str, ...], size: int) -> tuple[bool, str]:
        """Return whether mkfs takes it, and what it says."""
        stored_disk.make_hole(self.disk, size)
        confined = confine.command(
            command,
            system=("--ro-bind", str(self.root), "/"),
            read_only={},
            writable={device(UNDER_TEST): self.disk},
            environment={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
            directory="/",
        )
        try:
            return True, process.run(confined, log=self.disk.with_name("said"), timeout=SECONDS).stderr
        except ProcessFailed as error:
            confine.raise_unconfined(error, "mkfs")
            if not error.stderr.strip() and QUIET in command:
                return False, self._ask(tuple(word for word in command if word != QUIET), size)[1]
            return False, error.stderr
        except TimedOut:
            return True, ""  # it was not refused so far
        finally:
            self.disk.unlink(missing_ok=True)
