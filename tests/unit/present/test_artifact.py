"""Artefacts for reviewers: all that the runs know stands in them, and a replay of one says what reproduced."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from agelab.analysis.cells import load
from agelab.capsule import replay
from agelab.capsule.verify import Capsule
from agelab.cli import main
from agelab.present import artifact
from agelab.present.artifact import Artifact, PackedRun, pack_runs
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.store.artefacts import Store
from tests.build import run_builder, study_runs
from tests.build.capsule_builder import made_run
from tests.build.cli import Cli
from tests.build.hostile_runs import HOSTILE

DISKS = {"disks": "model:none"}


@pytest.fixture
def made(store: Store, tmp_path: Path) -> Path:
    """The artefact of two runs of two cells."""
    names = [made_run(store, words=DISKS).name for _ in range(2)]
    assert main(["capsule", "pack", *names, "--artifact", str(tmp_path / "made")]) == 0
    return tmp_path / "made"


def cff_problems(*files: Path) -> str:
    """What the schema of the Citation File Format has against files; empty where they follow it."""
    checker = Path(sys.executable).with_name("check-jsonschema")
    words = ["--builtin-schema", "vendor.citation-file-format", "--force-filetype", "yaml", *map(str, files)]
    done = subprocess.run([str(checker), *words], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def rows(readme: str) -> list[list[str]]:
    """The cells of each row of its tables of claims and figures."""
    lines = [line for line in readme.splitlines() if line.startswith("| [")]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


def test_an_artefact_has_capsules_report_and_texts_and_nothing_else(made: Path, store: Store) -> None:
    there = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    capsules = {f"capsules/{path.name}.capsule" for path in store.runs.iterdir() if path.is_dir()}
    assert there == {"README.md", "CHECKLIST.md", "CITATION.cff", "report.html", *capsules}
    assert len(capsules) == 2 and not list(made.parent.glob(".*"))


def test_each_row_has_a_command_of_files_that_are_there_and_time_and_disk(made: Path) -> None:
    found = rows((made / "README.md").read_text())
    page = (made / "report.html").read_text()
    assert "Which was the quickest?" in {re.findall(r"\[(.*)\]", row[0])[0] for row in found}
    assert "Step by step, each filesystem against the quickest" in {re.findall(r"\[(.*)\]", row[0])[0] for row in found}
    for row in found:
        name, _, command, time, disk = map(str.strip, row)
        [anchor] = re.findall(r"report\.html#([a-z0-9-]+)", name)
        assert f'id="{anchor}"' in page
        replays = re.findall(r"agelab capsule replay (\S+?)[;`]", command)
        assert len(replays) == 2 and all((made / one).is_file() for one in replays)
        assert time == "about 10 s"  # 2 runs of 2 cells of 1.5 s each, rounded
        assert re.fullmatch(r"\d\.\d GB", disk)


def test_what_only_the_author_knows_is_marked_in_each_text(store: Store, tmp_path: Path, cli: Cli) -> None:
    said = cli.out("capsule", "pack", made_run(store).name, "--artifact", tmp_path / "made")
    for name in ("README.md", "CHECKLIST.md", "CITATION.cff"):
        count = (tmp_path / "made" / name).read_text().count("TO DO")
        assert count and f"{count} in {name}" in said


def test_the_checklist_ticks_only_what_was_checked(store: Store, tmp_path: Path) -> None:
    run = made_run(store)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    small = artifact.texts(pack_runs([run], store, tmp_path / "a"))
    whole = artifact.texts(pack_runs([run], store, tmp_path / "b", carry=True))
    line = "exercisable: kernels, images, programs and data are in the capsules"
    assert f"- [x] {line}" not in small["CHECKLIST.md"] and f"- [x] {line}" in whole["CHECKLIST.md"]
    assert "mirror for QEMU alone" in whole["README.md"] and "mirror that still has" in small["README.md"]
    ticked = [one for one in small["CHECKLIST.md"].splitlines() if one.startswith("- [x]")]
    assert ticked and not any("TO DO" in one for one in ticked)
    reproduced = small["CHECKLIST.md"].partition("## Results Reproduced")[2]
    assert "[ ]" in reproduced and "[x]" not in reproduced


def test_cells_that_are_not_ok_are_the_authors_to_explain(store: Store, tmp_path: Path) -> None:
    made = _artifact(store, tmp_path)
    [one] = made.runs
    bad = run_builder.begin(store.home, [one.run.plan.cells[0]], scenario="small")
    run_builder.end(bad, status=Status.FAILED, reason="cp: no such file")
    other = replace(made, runs=[one, replace(one, run=load(bad))])
    assert "say in the paper why 1 of 3 cells did not end ok" in artifact.texts(other)["CHECKLIST.md"]
    assert "did not end ok" not in artifact.texts(made)["CHECKLIST.md"]


def _artifact(store: Store, place: Path) -> Artifact:
    directory = place / "directory"
    directory.mkdir()
    return pack_runs([made_run(store, words=DISKS)], store, directory)


def test_the_citation_follows_its_schema_and_the_schema_is_strict(made: Path, tmp_path: Path) -> None:
    citation, other = made / "CITATION.cff", tmp_path / "other.cff"
    assert cff_problems(citation) == ""
    other.write_text(citation.read_text().replace("authors:", "people:", 1))
    assert "'authors' is a required property" in cff_problems(other)
    found = yaml.safe_load(citation.read_text())
    assert found["title"] == "Artefact: small" and len(found["identifiers"]) == 2
    assert [one["title"] for one in found["references"]] == ["agelab"]  # "none" is no study


def test_a_study_is_cited_and_its_claims_are_rows(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = _artifact(store, tmp_path).runs[0]
    text = (Path(__file__).parents[3] / "scenarios" / "tum-2005.toml").read_text()
    name = study_runs.make(store.home, "tum-2005", study_runs.printed("tum-2005"))

    def stand_in(run: RunDirectory, *_: object, **__: object) -> PackedRun:
        plan = packed.capsule.request.plan.model_copy(update={"scenario": "tum-2005"})
        request = packed.capsule.request.model_copy(update={"plan": plan})
        return replace(packed, run=load(run), capsule=replace(packed.capsule, scenario=text, request=request))

    monkeypatch.setattr(artifact, "_pack", stand_in)
    (tmp_path / "study").mkdir()
    texts = artifact.texts(pack_runs([RunDirectory(store.runs / name)], store, tmp_path / "study"))
    claims = [row for row in rows(texts["README.md"]) if "#part1-claims" in row[0]]
    assert len(claims) > 5
    assert all(row[1].strip().startswith(("replicated", "not replicated")) for row in claims)
    assert all("; agelab replicate latest`" in row[2] for row in claims)
    assert 'id="part1-claims"' in (tmp_path / "study" / "report.html").read_text()
    cited = yaml.safe_load(texts["CITATION.cff"])["references"][-1]
    assert cited["year"] == 2005 and cited["authors"]
    (tmp_path / "study.cff").write_text(texts["CITATION.cff"])
    assert cff_problems(tmp_path / "study.cff") == ""


def test_no_text_of_a_run_is_markup(store: Store, tmp_path: Path) -> None:
    made = _artifact(store, tmp_path)
    usual = artifact.texts(made)
    [part], [packed] = made.parts, made.runs
    citations = []
    for name, word in HOSTILE.items():
        found = [replace(one, name=word, verdict=word) for one in part.findings]
        hosts = {"host": word, "harness": word}
        plan = packed.run.plan.model_copy(update={"scenario": word, "provenance": hosts})
        texts = artifact.texts(
            replace(
                made,
                runs=[replace(packed, run=replace(packed.run, plan=plan))],
                parts=[replace(part, title=word, subtitle=word, findings=found)],
            )
        )
        for file in ("README.md", "CHECKLIST.md"):
            assert len(texts[file].splitlines()) == len(usual[file].splitlines())
            markup = re.search(r"(?<!\\)(<|!\[|\*\*b|\]\((?!report|capsules))", texts[file])
            assert not markup, name
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066\u2028]", texts[file])
        assert {len(row) for row in rows(texts["README.md"])} == {5}
        citations.append(tmp_path / f"{name}.cff")
        citations[-1].write_text(texts["CITATION.cff"])
    assert cff_problems(*citations) == ""


def test_an_artefact_is_written_where_nothing_is(store: Store, tmp_path: Path, cli: Cli) -> None:
    name = made_run(store).name
    full, file, empty = tmp_path / "full", tmp_path / "file", tmp_path / "empty"
    full.mkdir()
    (full / "mine").touch()
    file.touch()
    empty.mkdir()
    for wrong, why in (
        (full, "is there and not empty"),
        (file, "is there and not empty"),
        (tmp_path / "no" / "made", "is not a directory"),
        (Path("/proc/made"), "cannot be written: "),
    ):
        assert why in cli.err("capsule", "pack", name, "--artifact", wrong).splitlines()[0]
    assert list(full.iterdir()) == [full / "mine"]
    cli.run("capsule", "pack", name, "--artifact", empty)
    assert (empty / "README.md").is_file()


def test_a_run_that_cannot_be_packed_leaves_nothing(store: Store, tmp_path: Path, cli: Cli) -> None:
    good = made_run(store)
    unfinished = run_builder.begin(store.home, run_builder.cells(["ext4"]), scenario="small")
    before = set(tmp_path.iterdir())
    words = ["capsule", "pack", good.name, unfinished.name, "--artifact", str(tmp_path / "made")]
    assert f"{unfinished.name}: 1 of 1 cells have not ended" in cli.err(*words)
    assert set(tmp_path.iterdir()) == before


def test_several_runs_need_an_artefact_and_one_place(store: Store, cli: Cli, tmp_path: Path) -> None:
    names = [made_run(store).name for _ in range(2)]
    assert "for several runs use --artifact" in cli.err("capsule", "pack", *names)
    both = ["--artifact", str(tmp_path / "made"), "-o", str(tmp_path / "one.capsule")]
    cli.run("capsule", "pack", *names, *both, code=2)


# ---- replaying one ----


@pytest.fixture
def guests(store: Store, monkeypatch: pytest.MonkeyPatch) -> dict[str, RunDirectory]:
    """Replays without guests: a capsule's run comes out as it was, or as the run that is put here by its name."""
    instead: dict[str, RunDirectory] = {}

    def run(capsule: Capsule, *_: object, **__: object) -> RunDirectory:
        return instead.get(capsule.run, RunDirectory(store.runs / capsule.run))

    monkeypatch.setattr(replay, "run", run)
    return instead


def test_a_replay_goes_through_all_and_exits_0_where_all_is_the_same(
    made: Path, guests: dict[str, RunDirectory], cli: Cli
) -> None:
    assert not guests
    said = cli.out("capsule", "replay", made)
    promised = re.findall(r"`(reproduced: [^`]*)`", (made / "README.md").read_text())
    assert promised == ["reproduced: 4 of 4 cells; 2 of 2 capsules"] and promised[0] in said
    for path in (made / "capsules").iterdir():
        assert re.search(rf"^{re.escape(path.name)} +2 +2 +2 +2 *$", said, re.M)
    cli.run("capsule", "replay", made / "capsules", "--json")  # any directory of capsules


def test_a_damaged_capsule_is_told_and_the_other_is_replayed(
    made: Path, guests: dict[str, RunDirectory], cli: Cli
) -> None:
    first, second = sorted((made / "capsules").iterdir())
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    said = cli.out("capsule", "replay", made, code=1)
    assert f"{first} is not a valid capsule: " in said
    assert re.search(rf"^{re.escape(first.name)} +not a valid capsule$", said, re.M)
    assert re.search(rf"^{re.escape(second.name)} +2 +2 +2 +2 *$", said, re.M)
    assert "reproduced: 2 of 2 cells; 1 of 2 capsules" in said
    told: list[dict[str, Any]] = cli.json("capsule", "replay", made, "--json", code=1)["capsules"]
    assert [one["reproduced"] for one in told] == [False, True]
    assert told[0]["problem"] and not told[0]["cells"] and told[1]["problem"] is None


def test_the_table_counts_keys_and_digests_and_names_the_input(
    made: Path, guests: dict[str, RunDirectory], store: Store, cli: Cli
) -> None:
    one, _ = sorted(path.name for path in store.runs.iterdir() if path.is_dir())
    was = load(RunDirectory(store.runs / one))
    other = run_builder.begin(store.home, was.plan.cells, scenario="small")
    changed = {**was.cells[0].inputs, "making": {**was.cells[0].inputs["making"], "image": "x"}}
    run_builder.end(other, 0, was.cells[0].samples, inputs=changed)
    slower = [sample.model_copy(update={"value": 9.0}) for sample in was.cells[1].samples]
    run_builder.end(other, 1, slower, inputs=was.cells[1].inputs)
    guests[one] = other
    said = cli.out("capsule", "replay", made, code=1)
    [row] = re.findall(rf"^{re.escape(one)}\.capsule +(.*)$", said, re.M)
    assert row.split()[:4] == ["2", "1", "1", "0"]  # cells, same key, same digest, reproduced
    assert "0 differs: other inputs: making.image; every sample is the same" in row
    assert "1 differs: the inputs are the same, 2 of 2 samples are not" in row
    assert "reproduced: 2 of 4 cells; 1 of 2 capsules" in said


def test_what_cannot_be_rebuilt_did_not_reproduce(store: Store, tmp_path: Path, cli: Cli) -> None:
    name = made_run(store, own=True).name
    cli.run("capsule", "pack", name, "--artifact", tmp_path / "made")
    said = cli.out("capsule", "replay", tmp_path / "made", code=1)
    assert "0, 1 could not be rebuilt: the corpus is missing (some data" in said
    assert "reproduced: 0 of 2 cells; 0 of 1 capsule" in said


def test_a_directory_without_capsules_is_one_line(tmp_path: Path, store: Store, made: Path, cli: Cli) -> None:
    (tmp_path / "empty").mkdir()
    assert "has no capsule" in cli.err("capsule", "replay", tmp_path / "empty")
    assert "--cells, --corpus and --kernel are of one capsule" in cli.err("capsule", "replay", made, "--cells", "0")
