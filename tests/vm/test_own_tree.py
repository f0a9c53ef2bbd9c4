"""A tree of a user's own, as a guest sees it: in an image all names, from an archive in it everything."""

import subprocess
from pathlib import Path

import pytest

from agelab.base import process
from tests.build.odd_tree import odd_tree, odder_tree
from tests.vm.cells import agelab, measured, scenario, shown, step

pytestmark = pytest.mark.vm

NAMES = r"find . -printf '%P\0%y\0%l\0' | LC_ALL=C sort -z"
CONTENT = r"find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cat --"
WHOLE = r"(find . -type d -printf '%P %m\0'; find . ! -type d -printf '%P\0%y %m %n %s\0%l\0') | LC_ALL=C sort -z"
NUMBER = 'printf "%d\\n" "0x$(sha256sum | cut -c 1-12)"'
"""A number that a metric can be, of what is read."""
METRICS = "".join(
    f'metrics.{name} = {{ unit = "1", meaning = "{name} of a tree" }}\n'
    for name in ("tree_names", "tree_content", "tree_whole", "tree_blocks")
)


def script(*parts: str) -> str:
    return "\n".join(f"{part} | {NUMBER}" for part in parts)


def here(tree: Path, *parts: str) -> list[int]:
    done = subprocess.run(["sh", "-ec", script(*parts)], cwd=tree, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def test_an_image_keeps_names_and_contents_and_an_archive_in_it_all_of_a_tree(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    plain, whole = odd_tree(data / "tree"), odder_tree(tmp_path / "whole")
    process.run(["tar", "-C", str(whole), "--sparse", "-cf", str(data / "tree.tar"), "."])
    copied = step(
        "copy",
        f'cp -r "$SOURCE/tree" copy; cd copy\n{script(NAMES, CONTENT)}',
        'records = ["tree_names", "tree_content"]',
    )
    unpacked = step(
        "unpack",
        f'mkdir tree; tar -C tree -xpf "$SOURCE/tree.tar"; cd tree\n{script(WHOLE, CONTENT)}\nstat -c %b sparse',
        'records = ["tree_whole", "tree_content", "tree_blocks"]',
    )
    path = scenario(tmp_path, copied + unpacked, head=METRICS, mib=4)
    done = agelab("run", str(path), "--corpus", str(data))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "corpus: 2 files are hard links of others: they become copies (0.2 MB more)" in done.stderr
    [cell] = shown(done.stdout.rsplit("agelab show ", 1)[1].split()[0])
    names, content = here(plain, NAMES, CONTENT)
    copy, tree = measured(cell, "copy"), measured(cell, "unpack")
    assert (copy["tree_names"], copy["tree_content"]) == (names, content)
    assert [tree["tree_whole"], tree["tree_content"]] == here(whole, WHOLE, CONTENT)
    assert 0 < tree["tree_blocks"] < 100, "of 512 bytes: the holes are holes"
