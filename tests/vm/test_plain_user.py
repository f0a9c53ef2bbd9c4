"""A user who is not root, with an empty store: from set-up to a digest, which is the one that root gets."""

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agelab.base import places, process
from tests.capabilities import needs_root
from tests.vm.cells import run, scenario, step

pytestmark = [pytest.mark.vm, pytest.mark.full, needs_root]

ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
"""What the user has started, a libvirt session among it, ends with the command."""


@pytest.fixture(scope="module")
def user() -> Iterator[tuple[str, Path]]:
    """A new user, by name, whose home nobody else may enter."""
    name = f"agelab-{secrets.token_hex(3)}"
    with TemporaryDirectory(dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        home = Path(place, "home")
        subprocess.run(["useradd", "--create-home", "--home-dir", str(home), "--shell", "/bin/sh", name], check=True)
        home.chmod(0o700)
        try:
            yield name, home
        finally:
            subprocess.run(["userdel", name], check=True)


@pytest.fixture(scope="module")
def clone(user: tuple[str, Path]) -> Path:
    """The project's files, in the user's home."""
    name, home = user
    listed = subprocess.run(
        ["git", "-C", str(places.PACKAGE.parent), "ls-files", "-coz", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for file in listed.split("\0"):
        source = places.PACKAGE.parent / file
        if file and source.is_file():
            target = home / "agelab" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    subprocess.run(["chown", "-R", f"{name}:", str(home)], check=True)
    return home / "agelab"


def as_user(user: tuple[str, Path], clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    name, home = user
    kept = {one: word for one, word in os.environ.items() if one in process.PROXY_VARIABLES or one.startswith("PIP_")}
    env = {"HOME": str(home), "USER": name, "PATH": "/usr/local/bin:/usr/bin:/bin", **kept}
    become = ("setpriv", "--reuid", name, "--regid", name, "--init-groups", "--")
    return subprocess.run([*ALONE, *become, *words], cwd=clone, env=env, capture_output=True, text=True, check=False)


def test_a_plain_user_with_an_empty_store_gets_roots_digest(
    user: tuple[str, Path], clone: Path, tmp_path: Path
) -> None:
    path = scenario(tmp_path, step("write", "echo text > file"))
    shutil.copy(path, clone / path.name)
    done = as_user(user, clone, "sh", "agelab/setup.sh", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    done = as_user(user, clone, ".venv/bin/agelab", "doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert findings["namespaces"]["status"] == "ok"
    done = as_user(user, clone, ".venv/bin/agelab", "run", path.name)
    assert done.returncode == 0, done.stdout + done.stderr
    [cell] = json.loads(as_user(user, clone, ".venv/bin/agelab", "show", "--json").stdout)["cells"]
    [ours] = run(str(path))
    assert (cell["inputs_key"], cell["digest"]) == (ours["inputs_key"], ours["digest"])
    done = as_user(user, clone, ".venv/bin/agelab", "doctor", "--clean")
    assert done.stdout == "nothing was left over\n"
    left = clone / ".agelab/store/root/.key.partial"
    tree = f"mkdir -p {left}/var/_apt && touch {left}/var/_apt/file && chown -R 42:42 {left}/var"
    assert as_user(user, clone, "unshare", "--map-root-user", "--map-auto", "sh", "-c", tree).returncode == 0
    assert (left / "var").stat().st_uid >= 100000, "a tree that mmdebstrap has not ended"
    done = as_user(user, clone, ".venv/bin/agelab", "doctor", "--clean")
    assert done.stdout.startswith("removed: unfinished") and not left.exists()


def test_a_user_without_ids_of_its_own_is_told_what_to_ask_for(user: tuple[str, Path], clone: Path) -> None:
    name, home = user
    taken = ["usermod", "--del-subuids", "0-4294967294", "--del-subgids", "0-4294967294", name]
    subprocess.run(taken, check=True)
    without_images = f"AGELAB_HOME={home}/empty"
    done = as_user(user, clone, "env", without_images, ".venv/bin/agelab", "doctor", "--json")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    [found] = [one for one in report["findings"] if one["name"] == "namespaces"]
    assert not report["virtual_clock"] and found["status"] == "missing"
    assert found["fix"] == f"as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
