"""The ledger: which host has found which digest for which key, in lines that are signed by whoever says so.

A line is what one person attests of one run of theirs. Lines of any number of people make a ledger, in any order.
Signatures are OpenSSH's: ``ssh-keygen -Y``.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from agelab.base import fileio, places, process
from agelab.base.errors import HostError, InputError
from agelab.base.hashing import canonical_json
from agelab.base.process import ProcessFailed
from agelab.base.types import Frozen, Label
from agelab.results.result import MOMENT
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import seeds_text

NAMESPACE = "agelab-ledger"
"""What the signatures are for: one of another purpose does not count here."""
SCHEMA = 1
KEEPER = re.compile(r"(SHA256:\S+)")
Hash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class AttestedCell(Frozen):
    """A cell that was measured."""

    cell: Label = Field(description="scenario, variant, layout and run seed, to be read")
    inputs_key: Hash
    evaluated_by: Hash = Field(description="of the code that made samples of what the guest said")
    digest: Hash
    ended: Label | None = Field(description="when, in UTC; null where the run does not say")


class Statement(Frozen):
    """What somebody attests of one run."""

    of_schema: Literal[1] = Field(alias="schema")
    run: Label
    host: Label
    agelab: Label = Field(description="its version")
    qemu: Label
    attested: Label = Field(description="when, in UTC")
    cells: tuple[AttestedCell, ...] = Field(min_length=1)

    @property
    def content(self) -> bytes:
        """The bytes that are signed."""
        return canonical_json(self.model_dump(mode="json", by_alias=True))


class LedgerLine(Frozen):
    """A statement, and its signature."""

    statement: Statement
    signature: Annotated[str, Field(max_length=fileio.FORM)]


@dataclass(frozen=True)
class FoundDigest:
    """One host's digest of one key, and who signed it."""

    cell: AttestedCell
    run: str
    host: str
    signer: str
    """Fingerprint of the key that signed, or the name that a file of signers gives it."""


@dataclass
class LedgerCheck:
    """What the lines of ledgers say together."""

    findings: dict[str, list[FoundDigest]] = field(default_factory=dict)
    """By inputs key."""
    refused: list[str] = field(default_factory=list)
    """Lines whose signature is wrong, each with its place and the reason: they do not count."""
    strangers: list[str] = field(default_factory=list)
    """Lines that are signed, but by none of the signers who are to count, each with its place."""

    @property
    def hosts(self) -> dict[str, int]:
        """Inputs key to how many hosts have found it: hosts that look alike count once for each who signs."""
        return {key: len({(one.host, one.signer) for one in found}) for key, found in self.findings.items()}

    @property
    def disagreements(self) -> dict[str, list[FoundDigest]]:
        """The findings of each key for which the same code has found more than one digest."""
        return {key: found for key, found in self.findings.items() if _disagree(found)}


def _disagree(found: Sequence[FoundDigest]) -> bool:
    digests = {(one.cell.evaluated_by, one.cell.digest) for one in found}
    return len(digests) > len({code for code, _ in digests})


def attest(run: RunDirectory, key: Path) -> str:
    """Return the line that attests the cells which a run has measured, signed with the key in a file.

    Cells that were reused, ran on a worker, or came in a run of somebody else were measured elsewhere, and are left
    out. Raises InputError where nothing is left, or the key does not sign.
    """
    plan, begun_here = run.plan(), run.has_own_plan
    cells = []
    for number, cell in enumerate(plan.cells):
        end = run.end(number)
        measured_here = end and not end.reused and not end.host and begun_here and run.is_own(number)
        if end and measured_here and end.inputs_key and end.digest and end.evaluated_by:
            name = f"{plan.scenario}, {cell.label}, {seeds_text([cell.seeds], [one.seeds for one in plan.cells])}"
            told = end.model_dump(include={"inputs_key", "evaluated_by", "digest", "ended"})
            cells.append(AttestedCell(cell=name, **told))
    if not cells:
        raise InputError(
            f"{run.name} has no cell to attest: it takes one of the virtual clock that ended in this store, "
            "and was not reused",
            hint="run them here: agelab run ... --fresh",
        )
    said = {name: str(plan.provenance.get(name, "not stated")) for name in ("host", "qemu")}
    statement = Statement(
        schema=SCHEMA,
        run=run.name,
        agelab=version("agelab"),
        attested=datetime.now(UTC).strftime(MOMENT),
        cells=tuple(cells),
        **said,
    )
    line = LedgerLine(statement=statement, signature=_sign(statement.content, key))
    return line.model_dump_json(by_alias=True)


def check(files: Iterable[Path], signers: Path | None = None) -> LedgerCheck:
    """Put the lines of ledgers together. With ``signers`` (ALLOWED SIGNERS of ssh-keygen) only their lines count.

    Raises InputError for files that hold anything else than such lines, all of these at once.
    """
    if signers and not signers.is_file():
        raise InputError(f"--signers {signers}: there is no such file")
    found, wrong = LedgerCheck(), list[str]()
    for path in files:
        for place, text in _lines(path):
            try:
                line = line_of(place, text)
            except InputError as error:
                wrong.append(str(error))
                continue
            keeper = _told(["check-novalidate"], line, KEEPER)
            if keeper is None:
                found.refused.append(f"{place}: it is not signed so")
                continue
            signer = _name_among(signers, line) if signers else keeper
            if signer is None:
                found.strangers.append(f"{place}: nobody whom the signers name has signed it")
                continue
            for cell in line.statement.cells:
                finding = FoundDigest(cell, line.statement.run, line.statement.host, signer)
                found.findings.setdefault(cell.inputs_key, []).append(finding)
    if wrong:
        raise InputError("\n".join(wrong), hint="a ledger is made of the lines that agelab attest prints")
    return found


def own_findings(path: Path = places.LEDGER) -> dict[tuple[str, str], set[str]]:
    """Return the digests of agelab's own ledger by inputs key and by what evaluated them; none without the file.

    It is as much part of agelab as the code that reads it, so signatures are left to ``check``. A damaged one says
    nothing.
    """
    found: dict[tuple[str, str], set[str]] = {}
    if path.is_file():
        with suppress(InputError):
            for place, text in _lines(path):
                for cell in line_of(place, text).statement.cells:
                    found.setdefault((cell.inputs_key, cell.evaluated_by), set()).add(cell.digest)
    return found


def line_of(place: str, text: str) -> LedgerLine:
    """Read a line of a ledger. Raises InputError, with its place, for what is none."""
    try:
        return LedgerLine.model_validate_json(canonical_json(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: {_reason(error)}") from error


def _lines(path: Path) -> list[tuple[str, str]]:
    try:
        text = fileio.read_text(path, fileio.RECORD)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no ledger: it is not UTF-8") from error
    except FileNotFoundError as error:
        raise InputError(f"{path} is not there") from error
    return [(f"{path}:{number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"it is no JSON object of a ledger: {error}"


def _sign(content: bytes, key: Path) -> str:
    if not key.is_file():
        raise InputError(f"{key} is no key to sign with", hint=f"make one: ssh-keygen -t ed25519 -f {key}")
    agent = {name: os.environ[name] for name in ("SSH_AUTH_SOCK",) if name in os.environ}
    try:
        return _keygen(["sign", "-f", str(key)], content, env=agent).stdout
    except ProcessFailed as error:
        raise InputError(f"{key} does not sign: {' '.join(error.stderr.split())}") from error


def _name_among(signers: Path, line: LedgerLine) -> str | None:
    """Return the name that a file of signers gives to who signed a line; None where it names others."""
    named = _told(["find-principals", "-f", str(signers)], line, re.compile(r"^([^-\s]\S*)$", re.M))
    if named is None:
        return None
    return _told(["verify", "-f", str(signers), "-I", named], line, KEEPER) and named


def _told(words: Sequence[str], line: LedgerLine, what: re.Pattern[str]) -> str | None:
    """Return what ssh-keygen says of a line's signature; None where it refuses it."""
    done = _keygen(words, line.statement.content, line.signature, ok=range(256))
    match = what.search(done.stdout) if done.returncode == 0 else None
    return match[1] if match else None


def _keygen(
    words: Sequence[str],
    content: bytes,
    signature: str | None = None,
    env: Mapping[str, str] | None = None,
    ok: Sequence[int] = (0,),
) -> process.Completed:
    """Run ssh-keygen -Y on content, and on a signature of it."""
    if process.find("ssh-keygen") is None:
        raise HostError("ssh-keygen is not installed", hint=process.install_hint("ssh-keygen"))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "content").write_bytes(content)
        argv = ["ssh-keygen", "-Y", words[0], "-n", NAMESPACE, *words[1:]]
        if signature is not None:
            (place / "signature").write_text(signature, encoding="utf-8")
            argv += ["-s", str(place / "signature")]
        return process.run(argv, env=env, stdin=place / "content", ok=ok)
