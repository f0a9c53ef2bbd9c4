"""Input data for scenarios: seeded stand-ins made here, and the user's own, each as one ISO 9660 image."""

from agelab.data.corpus.artefact import Corpus, CorpusSpec, make
from agelab.data.corpus.user import corpus_from_user, require_corpus

__all__ = ["Corpus", "CorpusSpec", "corpus_from_user", "make", "require_corpus"]
