"""What is inside the images of corpora."""

import subprocess
from pathlib import Path

from agelab.data.corpus.artefact import Corpus


def unpacked(corpus: Corpus, directory: Path) -> Path:
    argv = ["xorriso", "-no_rc", "-osirrox", "on", "-indev", f"stdio:{corpus.image}", "-extract", "/"]
    subprocess.run([*argv, str(directory)], check=True, capture_output=True)
    return directory
