"""The ledger: signed lines of what was found, put together; what is not signed, or was changed, does not count."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.cli import main
from agelab.present import ledger
from agelab.present.view.summary import print_result
from agelab.results.result import CellOrigin
from agelab.results.run_directory import RunDirectory
from tests.unit import run_builder

HOST = "Linux 6.1 x86_64, 2 x P4"


def key(directory: Path, name: str) -> Path:
    path = directory / name
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@example", "-f", str(path)]
    subprocess.run(argv, check=True)
    return path


def a_run(home: Path, value: float = 1.5, seeds: tuple[int, ...] = (1, 2), host: str = HOST) -> RunDirectory:
    """A run of these seeds; a key for each."""
    cells = run_builder.cells(["ext4"], seeds)
    run = run_builder.begin(home, cells, provenance={"host": host, "qemu": "QEMU 7.2"})
    for number, seed in enumerate(seeds):
        run_builder.end(run, number, [run_builder.sample(value=value)], inputs={"seed": seed})
    return run


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_run_is_attested_key_by_key(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    line = json.loads(ledger.attest(run, key(tmp_path, "me")))
    said = line["statement"]
    assert (said["run"], said["host"], said["qemu"], said["schema"]) == (run.name, HOST, "QEMU 7.2", 1)
    ends = [run.end(number) for number in range(2)]
    assert [(one["inputs_key"], one["digest"]) for one in said["cells"]] == [
        (end.inputs_key, end.digest) for end in ends if end
    ]
    assert said["cells"][0]["cell"] == "aging, ext4, single, seed 1"
    assert line["signature"].startswith("-----BEGIN SSH SIGNATURE-----")


def test_what_was_reused_ran_on_a_worker_or_has_no_digest_is_not_attested(tmp_path: Path) -> None:
    cells = run_builder.cells(["ext4"], (1, 2, 3, 4))
    run = run_builder.begin(tmp_path, cells)
    origin = CellOrigin(run="first", host="there", ended="2026-01-01T00:00:00Z")
    run_builder.end(run, 0, inputs={"seed": 1}, reused=origin)
    run_builder.end(run, 1, inputs={"seed": 2}, digest=None)
    run_builder.end(run, 2, inputs={"seed": 3}, host="worker, 4 x P4")
    with pytest.raises(InputError, match="has no cell to attest"):
        ledger.attest(run, key(tmp_path, "me"))


def test_lines_of_several_hosts_and_people_are_put_together(tmp_path: Path) -> None:
    me, you = key(tmp_path, "me"), key(tmp_path, "you")
    one = written(
        tmp_path / "one.jsonl", ledger.attest(a_run(tmp_path), me), ledger.attest(a_run(tmp_path), me)
    )
    other = written(
        tmp_path / "other.jsonl",
        ledger.attest(a_run(tmp_path, seeds=(2, 3)), you),
        ledger.attest(a_run(tmp_path, seeds=(2,), host="another"), you),
    )
    found = ledger.check([one, other])
    assert sorted(found.hosts.values()) == [1, 1, 3] and not found.disagreements and not found.refused


def test_a_key_with_two_digests_is_a_disagreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    me = key(tmp_path, "me")
    lines = [ledger.attest(a_run(tmp_path, value, (1,)), me) for value in (1.5, 1.6)]
    file = str(written(tmp_path / "ledger.jsonl", *lines))
    assert main(["ledger", "check", file]) == 1
    said = capsys.readouterr().out
    assert "aging, ext4, single, seed 1: sha256:" in said and "has several digests" in said
    assert said.count(f"on {HOST}, signed by SHA256:") == 2
    assert main(["ledger", "check", "--json", file]) == 1
    assert len(json.loads(capsys.readouterr().out)["disagreements"]) == 1


@pytest.mark.parametrize("changed", ["digest", "host", "signature"])
def test_a_line_that_was_changed_does_not_count(
    tmp_path: Path, changed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = (ledger.attest(a_run(tmp_path, seeds=(seed,)), key(tmp_path, f"k{seed}")) for seed in (1, 2))
    line = json.loads(bad)
    if changed == "digest":
        line["statement"]["cells"][0]["digest"] = "sha256:" + "0" * 64
    elif changed == "host":
        line["statement"]["host"] = "another"
    else:
        line["signature"] = json.loads(good)["signature"]
    file = str(written(tmp_path / "ledger.jsonl", good, json.dumps(line)))
    assert main(["ledger", "check", file]) == 1
    assert f"not counted: {file}:2: it is not signed so" in capsys.readouterr().out
    assert len(ledger.check([Path(file)]).findings) == 1


def test_a_signature_for_another_purpose_does_not_count(tmp_path: Path) -> None:
    me = key(tmp_path, "me")
    line = json.loads(ledger.attest(a_run(tmp_path), me))
    content = ledger.Statement.model_validate(line["statement"]).content
    (tmp_path / "content").write_bytes(content)
    argv = ["ssh-keygen", "-Y", "sign", "-n", "file", "-f", str(me), str(tmp_path / "content")]
    subprocess.run(argv, check=True, capture_output=True)
    line["signature"] = (tmp_path / "content.sig").read_text()
    found = ledger.check([written(tmp_path / "ledger.jsonl", json.dumps(line))])
    assert len(found.refused) == 1 and not found.findings


def test_with_signers_only_their_lines_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    me, you = key(tmp_path, "me"), key(tmp_path, "you")
    file = written(
        tmp_path / "ledger.jsonl", ledger.attest(a_run(tmp_path), me), ledger.attest(a_run(tmp_path), you)
    )
    signers = written(tmp_path / "signers", f"me@example {me.with_suffix('.pub').read_text().strip()}")
    found = ledger.check([file], signers)
    assert {one.signer for finding in found.findings.values() for one in finding} == {"me@example"}
    stranger = f"{file}:2: nobody whom the signers name has signed it"
    assert found.strangers == [stranger] and not found.refused
    words = ["ledger", "check", str(file), "--signers", str(signers)]
    assert main(words) == 0 and f"not counted: {stranger}" in capsys.readouterr().out
    line = json.loads(file.read_text().splitlines()[1])
    line["statement"]["host"] = "another"
    written(file, json.dumps(line))
    assert main(words) == 1 and f"not counted: {file}:1: it is not signed so" in capsys.readouterr().out


def test_a_run_says_whether_its_digest_is_that_of_agelabs_own_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other, several = a_run(tmp_path, seeds=(1,)), a_run(tmp_path, 1.6, seeds=(1,)), a_run(tmp_path)
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    own = written(tmp_path / "own.jsonl", ledger.attest(run, key(tmp_path, "a")))
    found = ledger.own_findings(own)
    assert len(found) == 1 and ledger.own_findings(tmp_path / "none") == {}
    monkeypatch.setattr("agelab.present.view.ledger.own_findings", lambda: found)
    said = {}
    for one in (run, other, several):
        assert main(["show", one.name]) == 0
        said[one.name] = capsys.readouterr().out
    assert "ledger      the digest of docs/ledger.jsonl" in said[run.name]
    assert "ledger      docs/ledger.jsonl has another digest for this key" in said[other.name]
    print_result(several)
    assert "ledger: 1 cell: the digest of docs/ledger.jsonl" in capsys.readouterr().out
    own.write_text("no line\n")
    assert ledger.own_findings(own) == {}


def test_everything_that_is_no_line_of_a_ledger_is_told_at_once(tmp_path: Path) -> None:
    line = json.loads(ledger.attest(a_run(tmp_path), key(tmp_path, "me")))
    line["statement"]["cells"][0]["digest"] = "sha256:short"
    file = written(tmp_path / "ledger.jsonl", "no JSON", json.dumps(line), "[" * 100_000, "", "{}")
    with pytest.raises(InputError) as error:
        ledger.check([file])
    told = str(error.value).splitlines()
    assert [one.partition(": ")[0] for one in told] == [f"{file}:{number}" for number in (1, 2, 3, 5)]
    assert "statement.cells.0.digest" in told[1]


@pytest.mark.parametrize("what", ["missing key", "no key", "missing ledger", "missing signers"])
def test_files_that_are_not_there_are_named(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    run = a_run(tmp_path)
    file = written(tmp_path / "ledger.jsonl", ledger.attest(run, key(tmp_path, "me")))
    (tmp_path / "no-key").write_text("no key")
    (tmp_path / "no-key").chmod(0o600)
    words = {
        "missing key": ["attest", run.name, "--key", str(tmp_path / "gone")],
        "no key": ["attest", run.name, "--key", str(tmp_path / "no-key")],
        "missing ledger": ["ledger", "check", str(tmp_path / "gone")],
        "missing signers": ["ledger", "check", str(file), "--signers", str(tmp_path / "gone")],
    }[what]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert ("gone" in said or "no-key" in said) and "Traceback" not in said


def test_the_agent_signs_for_a_public_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = key(tmp_path, "me")
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        for _ in range(200):
            added = subprocess.run(
                ["ssh-add", "-q", str(me)], env=os.environ, capture_output=True, check=False
            )
            if added.returncode == 0:
                break
        assert added.returncode == 0
        me.unlink()
        line = ledger.attest(a_run(tmp_path), me.with_suffix(".pub"))
    finally:
        agent.terminate()
        agent.wait()
    assert not ledger.check([written(tmp_path / "ledger.jsonl", line)]).refused
