"""The digest: one hash over everything that a cell measured, in guest time only."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from pydantic import TypeAdapter

from agelab.base.hashing import canonical_json, key_of
from agelab.results.result import Sample, Status

_SAMPLES = TypeAdapter(list[Sample])


def digest(status: Status, samples: Iterable[Sample], maps: Mapping[str, str]) -> str:
    """Hash samples, status and the hashes of maps, whatever the order they came in."""
    dumped = _SAMPLES.dump_python(list(samples), exclude_none=True)
    return digest_of_rows(status, map(canonical_json, dumped), maps)


def digest_of_rows(status: Status, rows: Iterable[bytes], maps: Mapping[str, str]) -> str:
    """Hash the same, from each sample's canonical JSON without what is null.

    A row has one line: made texts of JSON all at once, rows differ from it in quotes and backslashes alone.
    """
    texts = b"\n".join(sorted(rows)).replace(b"\\", rb"\\").replace(b'"', rb"\"").replace(b"\n", b'","')
    samples = b'["%s"]' % texts if texts else b"[]"
    whole = b'{"maps":%s,"samples":%s,"status":"%s"}' % (canonical_json(dict(maps)), samples, status.encode())
    return "sha256:" + sha256(whole).hexdigest()


def inputs_key(inputs: Mapping[str, Any]) -> str:
    """Hash everything that shapes a cell."""
    return "sha256:" + key_of(dict(inputs))
