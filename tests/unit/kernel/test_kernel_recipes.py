"""Kernel recipes and configurations are checked before anything is built."""

from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.kernel import guest_needs, recipes, spec
from agelab.kernel.elf import canonical_name
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.toml_files import read, read_all
from agelab.store.artefacts import Store

SMALL = recipes.NEEDED.read_text() + recipes.SMALL.read_text()


def test_every_recipe_can_be_read_and_says_a_source() -> None:
    found = [read(path, recipes.KernelRecipe) for path in sorted(recipes.DIRECTORY.glob("*.toml"))]
    assert "ufs" in {one.name for one in found}
    assert [one.name for one in found] == recipes.list_recipes()


MINE = 'name = "mine"\nsummary = "s"\nsource = "source:6.1"\n'


def test_patches_that_are_not_there_are_said_with_where_they_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f'{MINE}patches = ["a.patch"]\n')
    with pytest.raises(InputError, match=rf"lacks its patch: there is none at {tmp_path}/a\.patch"):
        recipes.parse(f"recipe:{tmp_path / 'mine.toml'}")
    (tmp_path / "0001-fix.txt").write_text("")
    with pytest.raises(InputError, match=r"no patch in .*: none ends in \.patch or \.diff"):
        recipes.parse(f"tree:/linux,patches={tmp_path}")


@pytest.mark.parametrize(
    "more",
    [
        '[[fetch]]\nurl = "https://127.0.0.1:1/a.patch"\nsha256 = "00"\n',
        '[[edits]]\npath = "fs/inode.c"\nfind = "one"\n',
    ],
)
def test_nothing_that_a_recipe_names_is_fetched_and_it_says_what_to_do_now(tmp_path: Path, more: str) -> None:
    (tmp_path / "mine.toml").write_text(MINE + more)
    with pytest.raises(InputError, match=r"mine\.toml: fetch and edits are gone, agelab downloads") as raised:
        recipes.parse(f"recipe:{tmp_path / 'mine.toml'}")
    assert "\n" not in str(raised.value)


def test_a_recipe_in_this_directory_goes_by_its_name_but_none_takes_the_place_of_agelabs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "ufs"):
        (tmp_path / f"{name}.toml").write_text(MINE)
    assert spec.canonical("recipe:mine") == f"recipe:{tmp_path}/mine.toml"
    assert spec.canonical("recipe:mine,config=CONFIG_A=m") == f"recipe:{tmp_path}/mine.toml,config=CONFIG_A=m"
    assert spec.canonical("recipe:ufs") == "recipe:ufs"
    with pytest.raises(InputError, match=r"no kernel recipe 'reiser4'; there are: ufs") as raised:
        recipes.parse(spec.canonical("recipe:reiser4"))
    assert "reiser4.toml in this directory would be one of your own" in raised.value.hint


def test_a_recipe_of_ones_own_takes_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    for name in ("b.patch", "a.patch", "c.diff", "notes"):
        (tmp_path / "queue" / name).write_text("")
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\nsummary = "s"\nsource = "tree:/linux@v6.1"\npatches = ["queue"]\nconfig = ["CONFIG_A=y"]\n'
    )
    built = recipes.parse(f"recipe:{tmp_path / 'mine.toml'}")
    assert [path.name for path in built.patches] == ["a.patch", "b.patch", "c.diff"]
    (tmp_path / "queue" / "series").write_text("# first\nc.diff -p1\n\nb.patch # why\n")
    assert [path.name for path in recipes.parse(f"recipe:{tmp_path / 'mine.toml'}").patches] == ["c.diff", "b.patch"]


def test_options_follow_a_spec(tmp_path: Path) -> None:
    for name in ("base", "one", "two", "fix.patch"):
        (tmp_path / name).write_text("")
    at = f"{tmp_path}/"
    built = recipes.parse(f"tree:/linux@v6.1,base={at}base,config={at}one,config={at}two,patches={at}fix.patch")
    assert built.source == "tree:/linux@v6.1" and built.base == tmp_path / "base"
    assert built.fragments == (tmp_path / "one", tmp_path / "two") and built.patches == (tmp_path / "fix.patch",)


def test_a_line_of_configuration_needs_no_file() -> None:
    said = "recipe:ufs,config=CONFIG_REISER4_FS=m,config=CONFIG_LOCALVERSION=-mine"
    assert spec.canonical(said) == said
    assert recipes.parse(said).lines[-2:] == ("CONFIG_REISER4_FS=m", "CONFIG_LOCALVERSION=-mine")


@pytest.mark.parametrize("kernel", ["5.10", "debian:5.10", "debian:sid"])
def test_a_kernel_that_is_not_built_takes_no_patch(kernel: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{kernel} is taken as it is, without a patch") as raised:
        spec.resolve(f"{kernel},patches=mine.patch", Store(tmp_path))
    assert "source:6.1,patches=mine.patch" in raised.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tree:/linux,confg=/x", "is not base=, config= or patches="),
        ("tree:/linux,config=", "is not base="),
        ("tree:/linux,config=/nowhere/x", "there is no such file"),
        ("source:5.10,config=REISER4_FS=m", "REISER4_FS=m: there is no such file"),
        ("tree:/linux,patches=/nowhere", "there is no such path"),
        ("tree:/linux,config=/tmp", "it is a directory, not a configuration"),
        ("recipe:usf", "did you mean ufs"),
    ],
)
def test_what_is_wrong_with_a_spec_is_said_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as raised:
        recipes.parse(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("# CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=m # why\n", {"CONFIG_B": "n", "CONFIG_C": "m"}),
        ('CONFIG_D="a # b"\n', {"CONFIG_D": '"a # b"'}),
        # Up to Linux 6.8 conf reads no further than "is not set": a key without it would be of another kernel.
        ("# CONFIG_SMP is not set # one processor\n", {"CONFIG_SMP": "n"}),
        ("# CONFIG_SMP is not set, why\n", {"CONFIG_SMP": "n"}),
        ("CONFIG_A=y\n# why\x0cCONFIG_B=y\n", {"CONFIG_A": "y"}),
    ],
)
def test_what_conf_takes_for_an_option_is_in_the_kernels_key(said: str, options: dict[str, str]) -> None:
    assert recipes.options(said) == options


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ("tree:linux@v6.1,config=a", "tree:{here}/linux@v6.1,config={here}/a"),
        ("recipe:ufs", "recipe:ufs"),
        ("source:6.1", "source:6.1"),
        ("deb:a.deb,/b.deb", "deb:{here}/a.deb,/b.deb"),
        ("image:bzImage", "image:{here}/bzImage"),
        ("image:", "image:"),
    ],
)
def test_results_have_whole_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, whole: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert spec.canonical(said) == whole.format(here=tmp_path)


def test_a_module_is_as_good_built_in_and_not_the_other_way_round() -> None:
    has = 'CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D="x"\n'
    assert recipes.missing_options(has, 'CONFIG_A=m\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D="x"\n') == {}
    assert recipes.missing_options(has, "CONFIG_B=y\nCONFIG_C=y\nCONFIG_E=m\n# CONFIG_A is not set\n") == {
        "CONFIG_B": "m", "CONFIG_C": "n", "CONFIG_E": "n", "CONFIG_A": "y",
    }  # fmt: skip


def test_what_a_configuration_lacks_is_named() -> None:
    recipes.check_options(SMALL, {}, "6.1")
    with pytest.raises(InputError, match=r"lacks options that a guest needs: CONFIG_OVERLAY_FS, CONFIG_PVH$"):
        recipes.check_options(SMALL.replace("CONFIG_PVH=y", "").replace("CONFIG_OVERLAY_FS=m", ""), {}, "6.1")
    with pytest.raises(InputError, match=r"mine\.config: Linux 6\.1 does not accept CONFIG_UFS_FS_WRITE"):
        recipes.check_options(SMALL, {"mine.config": "CONFIG_UFS_FS_WRITE=y\n"}, "6.1")


def test_every_filesystem_of_linux_is_in_the_small_configuration() -> None:
    has = recipes.options(SMALL)
    for filesystem in read_all("filesystems", Filesystem):
        for module in filesystem.modules:
            option = guest_needs.MODULE_OPTIONS.get(canonical_name(module))
            # bcachefs came after Linux 6.1, which the configuration is made for
            if filesystem.name not in ("reiser4", "ufs", "bcachefs") and not filesystem.module_source:
                assert option and has.get(f"CONFIG_{option}") in ("m", "y"), (filesystem.name, module, option)
