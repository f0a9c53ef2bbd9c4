"""A store on a filesystem that was mounted after libvirt's daemon had started, and unmounted while the daemon runs."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.capabilities import needs_root
from tests.vm.cells import run, scenario, step
from tests.vm.roomless import privately

pytestmark = [pytest.mark.vm, needs_root]

# Another agelab keeps a daemon, for five minutes at most; then a filesystem is mounted, and the store is moved there.
LATER = """
"$(dirname "$PROGRAM")/python" -c 'import os, time
from agelab.machine.vm.libvirt_daemon import keep_running
with keep_running():
    open("up", "w").close()
    until = time.monotonic() + 300
    while not os.path.exists("end") and time.monotonic() < until: time.sleep(0.1)' & other=$!
until test -e up || ! kill -0 $other; do sleep 0.1; done
truncate -s 2G "$AGELAB_HOME/image"
mke2fs -q "$AGELAB_HOME/image"
mkdir "$AGELAB_HOME/later"
mount -o loop "$AGELAB_HOME/image" "$AGELAB_HOME/later"
for part in store cache; do ln -s "$REAL/$part" "$AGELAB_HOME/later/$part"; done
code=0
AGELAB_HOME=$AGELAB_HOME/later agelab run "$SCENARIO" > "$AGELAB_HOME/said" 2>&1 || code=$?
echo $code > "$AGELAB_HOME/code"
AGELAB_HOME=$AGELAB_HOME/later agelab show --json > "$AGELAB_HOME/shown" || true
umount "$AGELAB_HOME/later"
losetup --associated "$AGELAB_HOME/image" > "$AGELAB_HOME/held"
touch end
wait $other
"""


def later(tmp_path: Path, propagation: str) -> tuple["subprocess.CompletedProcess[str]", Path, Path]:
    path = scenario(tmp_path, step("write", "echo text > file"))
    home = tmp_path / "home"
    script = f'mount --make-r{propagation} /\ncd "$AGELAB_HOME"\n{LATER}'
    return privately(home, "100m", script, SCENARIO=path), home, path


def test_a_daemon_sees_what_is_mounted_later_and_lets_go_of_what_is_unmounted(tmp_path: Path) -> None:
    done, home, path = later(tmp_path, "shared")
    said = (home / "said").read_text()
    assert done.returncode == 0 and (home / "code").read_text() == "0\n", done.stderr + said
    [cell] = json.loads((home / "shown").read_text())["cells"]
    [undisturbed] = run(str(path))
    assert (cell["inputs_key"], cell["digest"]) == (undisturbed["inputs_key"], undisturbed["digest"])
    assert (home / "held").read_text() == ""


def test_a_daemon_that_cannot_see_the_store_is_named_before_a_guest_is_started(tmp_path: Path) -> None:
    done, home, _ = later(tmp_path, "private")
    said = (home / "said").read_text()
    assert done.returncode == 0, done.stderr + said
    assert (home / "code").read_text() == "3\n", said
    assert "does not see" in said and "mounted after the daemon had started" in said
    assert "wait for the end of the other agelab runs" in said
    assert "Traceback" not in said
