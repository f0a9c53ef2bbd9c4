"""Capsules that are sound by every hash, and made to have a replay read or do something on this host."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from agelab.base.errors import AgelabError, InputError
from agelab.capsule import replay
from agelab.capsule.pack import pack
from agelab.capsule.verify import open_capsule
from agelab.results.key_and_digest import inputs_key
from agelab.runner.request.options import RunOptions
from agelab.store.artefacts import Store
from agelab.store.parcel import LIST
from tests.build import capsule_verbs
from tests.build.capsule_builder import SMALL, contents, made_run, resealed
from tests.build.cli import Cli

Members = dict[str, bytes]


def made(store: Store, change: Callable[[Members], None], *, carry: bool, **of: Any) -> Path:
    path = store.home.parent / "sound.capsule"
    return resealed(pack(made_run(store, **of), store, path, carry=carry).path, change)


def edit(members: Members, name: str, change: Callable[[Any], object]) -> None:
    found = json.loads(members[name])
    change(found)
    members[name] = json.dumps(found).encode()


def with_repository(members: Members) -> None:
    """The scenario's data are a git repository of this host's, and the capsule carries none at all."""
    before, _, rest = SMALL.read_text().partition("[corpus]")
    after = rest[rest.index("[memory]") :].replace('moves = "corpus"\n', "")
    history = '[[histories]]\nname = "own"\nengine = "git"\nrepository = "/home/user/private"\npoints = 1\n'
    members["scenario.toml"] = (before + history + after).encode()
    edit(members, "made-of.json", lambda made: made["sources"].clear())
    if members.pop("artefacts/corpora/0", None):
        edit(members, "artefacts.json", lambda carried: carried.update(corpora=[]))
    edit(
        members,
        "plan.json",
        lambda request: [cell.update(variant=f"{cell['variant']}-own") for cell in request["plan"]["cells"]],
    )


def without_data(members: Members) -> None:
    members.pop("artefacts/corpora/0")
    edit(members, "artefacts.json", lambda carried: carried.update(corpora=[]))
    edit(members, "made-of.json", lambda made: made["sources"].clear())


@pytest.mark.parametrize("carry", [True, False])
def test_a_capsule_names_no_repository_of_this_host(store: Store, carry: bool) -> None:
    capsule = open_capsule(made(store, with_repository, carry=carry))
    with pytest.raises(InputError, match=r"history own (is made of a git repository, which is|are) not in the capsule"):
        replay.replay_request(capsule, [0, 1], store.home, jobs=1, corpus=None, kernel=None)


def test_a_capsule_with_artefacts_and_without_its_data_is_said_to_lack_them(store: Store, cli: Cli) -> None:
    assert "the corpus is not in the capsule" in cli.out(
        "capsule", "replay", str(made(store, without_data, carry=True)), code=3
    )


@pytest.mark.parametrize(
    "spec",
    [*("tree:/home/user/linux", "deb:/home/user/a.deb", "recipe:/tmp/x.toml"), "source:6.1,patches=/home/user/a.patch"],
)
def test_a_capsule_names_no_kernel_of_this_host(store: Store, spec: str) -> None:
    def change(members: Members) -> None:
        edit(members, "kernel.json", lambda kernel: kernel.update(spec=spec))
        edit(members, "plan.json", lambda request: request["plan"]["kernel"].update(spec=spec))

    with pytest.raises(InputError, match=r"kernel\.json names a kernel of files, and made-of\.json packages"):
        open_capsule(made(store, change, carry=False))


@pytest.mark.parametrize(
    "words",
    [
        {"disks": "block:/dev/sda"},
        {"disks": "pci:0000:00:1f.2"},
        {"disks": "file:/home/user/disk", "erase": "a", "clock": "wall"},
        {"control": "/home/user/control.txt"},
        {"log": "/home/user/log"},
        {"corpus": "/home/user/data"},
        {"machine": "../../../../home/user/machine"},
        {"filesystem": "../../../../home/user/filesystem"},
        {"directory": "/home/user"},
        {"jobs": 10**9},
    ],
    ids=str,
)
def test_options_of_a_capsule_reach_no_file_of_this_host(
    store: Store, words: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = made(store, lambda members: edit(members, "plan.json", lambda r: r["options"].update(words)), carry=False)
    try:
        request = replay.replay_request(open_capsule(path), [0, 1], tmp_path, jobs=1, corpus=None, kernel=None)
    except InputError as error:
        assert "Traceback" not in str(error)
        return
    assert request.control is None and request.corpus is None and request.options.jobs == 1
    assert all(str(drive).startswith("model:") for drive in request.options.disks)
    assert "home/user" not in repr(request)


VALUES: tuple[Any, ...] = ([], {}, 5, "x", None)
"""Put in the place of each value of a capsule's data, of which most are of another type."""
OF_CARRIED = ("artefacts.json", "artefacts/kernel/modules.json", "made-of.json")
"""Data that say more where a capsule carries its image."""


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate((value if isinstance(value, list) else [])[:2])
    ):
        yield from places(inner, (*at, key))


def with_value(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    changed = value.copy()
    changed[at[0]] = with_value(value[at[0]], at[1:], new)
    return changed


def keyed(members: Members) -> None:
    """Let the keys of the cells follow from their inputs."""
    for name in [name for name in members if name.endswith("/inputs.json")]:
        inputs = json.loads(members[name])
        if isinstance(inputs, dict):
            key = {"inputs_key": inputs_key(inputs)}
            edit(members, name.replace("inputs", "end"), partial(update, key))


def update(by: dict[str, Any], found: Any) -> None:
    found.update(by)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("carry", [True, False])
def test_whatever_type_a_value_has_a_capsule_is_used_or_refused_in_one_line(
    store: Store, tmp_path: Path, carry: bool, every: int
) -> None:
    """``every``: one in so many combinations of a place and a value; 4, so that each of five values is among them."""
    words = RunOptions(name="any", directory="/").to_plan()["options"] | {"corpus": "/home/user/data"}
    with patch("agelab.data.corpus.artefact.align"):  # else each of thousands of capsules has 2 MiB of zeros
        run = made_run(store, own=True, words=words)
    sound = pack(run, store, tmp_path / "sound.capsule", carry=carry).path
    reached = "a guest is next" if carry else "the corpus is missing"
    assert any(reached in line for line in capsule_verbs.use(sound))
    tried, met = 0, 0
    for name, data in contents(sound).items():
        if not name.endswith(".json") or name == LIST or (carry and name not in OF_CARRIED):
            continue
        for at in places(json.loads(data)):
            for new in VALUES:
                met += 1
                if met % every:
                    continue
                wrong = json.dumps(with_value(json.loads(data), at, new)).encode()

                def change(members: Members, name: str = name, wrong: bytes = wrong) -> None:
                    members[name] = wrong
                    if not name.endswith("end.json"):
                        keyed(members)

                tried += 1
                try:
                    capsule_verbs.use(resealed(sound, change))
                except AgelabError as error:
                    assert "\n" not in str(error), (name, at, new)
                except Exception as error:
                    raise AssertionError((name, at, new)) from error
    assert tried > 300 / every


@pytest.mark.parametrize("name", ["nosuch", "ext4"])
def test_modules_of_a_filesystem_that_has_none_are_refused(store: Store, name: str) -> None:
    def change(members: Members) -> None:
        made = json.loads(members["made-of.json"])
        packages = {"source": made["guest"]["busybox"], "root": made["drive"]}
        edit(members, "made-of.json", lambda made: made.update(modules={name: packages}))

    path = made(store, change, carry=False)
    with pytest.raises(InputError, match=rf"made-of\.json has modules of '{name}'"):
        open_capsule(path)


def test_data_that_a_command_names_and_no_source_has_are_refused(store: Store) -> None:
    path = made(
        store,
        lambda members: edit(members, "made-of.json", lambda made: made.update(sources={})),
        carry=False,
        words={"corpus": "/home/user/data"},
    )
    with pytest.raises(InputError, match=r"its command names data, and made-of\.json has none"):
        open_capsule(path)


def test_a_list_of_built_in_modules_that_is_no_text_is_refused(store: Store) -> None:
    def change(members: Members) -> None:
        members["artefacts/kernel/modules.builtin"] = b"\xff"

    with pytest.raises(InputError, match=r"artefacts/kernel/modules\.builtin is no text"):
        open_capsule(made(store, change, carry=True))
