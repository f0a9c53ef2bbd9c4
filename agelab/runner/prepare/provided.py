"""What comes with a request in place of what would be made: the parts of a run that a capsule carries."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agelab.corpus import Corpus
from agelab.image import Image
from agelab.runner.prepare.run_manifest import RunManifest


@dataclass(frozen=True)
class ProvidedParts:
    """Parts that are there already. Guests run them; nothing of them runs on this host."""

    image: Image
    module: Path | None
    """The modelled drive's, of that image's kernel."""
    programs: Mapping[str, Path]
    """The guest's own, by their names."""
    corpora: Mapping[str, Corpus]
    """By history; of a scenario with a corpus it has no name."""
    made: RunManifest
    """What all of it was made of."""
