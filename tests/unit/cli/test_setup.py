"""``make``'s first step: setup.sh, the lock files, the targets."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
# What setup.sh itself calls, for a host on which nothing else is installed.
BASE = (
    "sh", "dirname", "sed", "cat", "tr", "mkdir", "flock", "readlink", "sha256sum", "id", "rm", "grep",
    "tail", "env",
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with setup.sh, one host package that is there, and nothing to install from an index."""
    made = tmp_path / "a project"
    (made / "agelab/cli").mkdir(parents=True)
    shutil.copy(PROJECT / "agelab/setup.sh", made / "agelab")
    (made / "agelab/host-packages.txt").write_text("# package program\ncoreutils ls\n")
    (made / "tests").mkdir()
    (made / "tests/host-packages.txt").write_text("# package program\n")
    (made / "agelab/__init__.py").write_text(
        '"""A stand-in."""\n\n__version__ = "0"\n\ndef main():\n    print("ran")\n'
    )
    (made / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "agelab"\nversion = "0"\ndescription = "x"\nscripts.agelab = "agelab:main"\n'
        '[tool.hatch.build.targets.wheel]\ndev-mode-dirs = ["."]\n'
    )
    backend = [one for one in locked("requirements.txt") if re.search(r"# via.*(hatchling|build-system)", one)]
    for lock in ("requirements.txt", "requirements-site.txt", "requirements-test.txt"):
        (made / lock).write_text("\n".join(backend) + "\n")
    return made


def locked(name: str) -> list[str]:
    """The entries of a lock file: a package, its hashes, and who wants it."""
    return re.split(r"\n(?=[a-z])", (PROJECT / name).read_text())


def path_with(directory: Path, *programs: str, **scripts: str) -> dict[str, str]:
    """An environment whose PATH has only these programs of the host, and these scripts."""
    directory.mkdir(exist_ok=True)
    for program in programs:
        found = shutil.which(program)
        assert found, program
        (directory / program).unlink(missing_ok=True)
        (directory / program).symlink_to(found)
    for name, text in scripts.items():
        script = directory / name.replace("_", "-")
        script.unlink(missing_ok=True)
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
    return {**os.environ, "PATH": str(directory)}


def setup(project: Path, purpose: str = "run", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(project / "agelab/setup.sh"), purpose], env=env, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip


def need_packages(project: Path) -> None:
    (project / "agelab/host-packages.txt").write_text(
        "# comment\nqemu-utils no-such-program\nlibvirt-daemon /no/such/file\npython3-venv -\ncoreutils ls\n"
    )


def test_a_host_without_apt_is_told_what_to_install(project: Path, tmp_path: Path) -> None:
    need_packages(project)
    done = setup(project, env=path_with(tmp_path / "bin", *BASE, "ls"))
    assert done.returncode == 3
    assert done.stderr == (
        "agelab: this host has no apt-get; install these Debian packages, then run make again: "
        "qemu-utils libvirt-daemon python3-venv\n"
    )
    assert not (project / ".venv").exists()


def test_the_real_package_list_is_named_on_a_bare_host(project: Path, tmp_path: Path) -> None:
    shutil.copy(PROJECT / "agelab/host-packages.txt", project / "agelab")
    done = setup(project, env=path_with(tmp_path / "bin", *BASE))
    assert done.returncode == 3
    for package in ("qemu-utils", "virtinst", "mmdebstrap", "squashfs-tools", "python3-venv"):
        assert f" {package}" in done.stderr


def test_a_user_without_sudo_is_told_what_to_install(project: Path, tmp_path: Path) -> None:
    need_packages(project)
    bare = [program for program in BASE if program != "id"]
    env = path_with(tmp_path / "bin", *bare, "ls", id="echo 1000", apt_get="exit 9", sudo="exit 1")
    done = setup(project, env=env)
    assert done.returncode == 3
    assert re.fullmatch("agelab: not root, and sudo .*: qemu-utils libvirt-daemon python3-venv\n", done.stderr)


def test_missing_packages_are_installed_at_once_and_pythons_own_first(project: Path, tmp_path: Path) -> None:
    need_packages(project)
    found = re.search(r"^identity\(\) .*$", (project / "agelab/setup.sh").read_text(), re.MULTILINE)
    assert found
    words = ["sh", "-c", f"python=/usr/bin/python3; {found[0]}; identity"]
    made = subprocess.run(words, cwd=project, check=True, capture_output=True, text=True).stdout
    (project / ".venv/bin").mkdir(parents=True)
    (project / ".venv/bin/agelab").touch(0o755)
    (project / ".venv/agelab-setup").write_text(f"run\n{made}")
    log = tmp_path / "apt.log"
    every = "qemu-utils libvirt-daemon python3-venv"
    for refused, packages in (
        ("python3-venv", ["python3-venv"]),
        (every, ["python3-venv", every]),
        ("-", ["python3-venv", every]),
    ):
        apt = (
            f'echo "$DEBIAN_FRONTEND: $*" >>{log}\n'
            'while [ "$1" != install ]; do [ $# -gt 1 ] || exit 100; shift; done\n'
            f'shift 2; [ "$*" = "{refused}" ] || exit 0; echo "E: no such package"; exit 100'
        )
        env = path_with(tmp_path / "bin", *(p for p in BASE if p != "id"), "ls", id="echo 0", apt_get=apt)
        done = setup(project, env=env)
        if refused == "-":
            assert done.returncode == 0
        else:
            assert done.returncode == 3
            assert "agelab: apt-get could not install them: E: no such package" in done.stderr.splitlines()[-1]
        call = "noninteractive: -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "
        installed = [f"{call}install --no-install-recommends {one}" for one in packages]
        assert log.read_text().splitlines() == [f"{call}update", *installed]
        log.unlink()


@pytest.mark.parametrize(
    ("states", "missing"),
    [
        ("coreutils=installed", []),
        ("coreutils=config-files", []),  # removed, but its program came another way
        ("coreutils=half-configured", ["coreutils"]),
        ("coreutils=unpacked", ["coreutils"]),
    ],
)
def test_a_package_that_dpkg_was_interrupted_in_is_missing(
    project: Path, tmp_path: Path, states: str, missing: list[str]
) -> None:
    (project / "agelab/host-packages.txt").write_text("coreutils ls\nother no-such-program\n")
    env = path_with(tmp_path / "bin", *BASE, "ls", dpkg_query=f"printf '{states} '; exit 1")
    done = setup(project, env=env)
    assert done.returncode == 3
    assert done.stderr.strip().endswith("run make again: " + " ".join([*missing, "other"]))


def test_a_failed_download_is_exit_3_and_what_was_made_stays_until_a_lock_file_changes(project: Path) -> None:
    """One test, since each .venv takes seconds to make."""
    # What an interrupted install has left.
    (project / ".venv").mkdir()
    (project / ".venv/half-made").touch()
    script = ["/bin/sh", str(project / "agelab/setup.sh")]
    both = [subprocess.Popen(script, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [one.communicate()[1] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert "".join(told).count("installing Python packages") == 1, "two at once do the work once"
    assert (project / ".venv/agelab-setup").exists()
    assert not (project / ".venv/half-made").exists()
    ran = subprocess.run([project / ".venv/bin/agelab"], capture_output=True, text=True, check=True)
    assert ran.stdout == "ran\n"
    config = (project / ".venv/pyvenv.cfg").read_text()
    assert "include-system-site-packages = true" in config
    assert "home = /usr/bin" in config

    marker = project / ".venv/untouched"
    marker.touch()
    again = setup(project)
    assert (again.returncode, again.stderr) == (0, "")
    # The tests' packages are added: a run from this environment may be going on.
    for purpose in ("site", "test"):
        assert setup(project, purpose).returncode == 0
        assert setup(project, "run").stderr == ""
    assert setup(project, "site").stderr == ""
    assert marker.exists()

    (project / "requirements.txt").write_text("no-such-package==1.0 --hash=sha256:" + "0" * 64 + "\n")
    done = setup(project, env={**os.environ, "PIP_NO_INDEX": "1"})
    assert done.returncode == 3
    last = done.stderr.splitlines()[-1]
    assert re.match("agelab: pip could not install .*: ERROR: .*no-such-package.* build/setup.log", last)
    assert not (project / ".venv/agelab-setup").exists()
    assert not marker.exists()


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", (PROJECT / name).read_text(), re.MULTILINE))


def test_the_tests_lock_holds_all_of_the_others() -> None:
    assert pins("requirements.txt").items() <= pins("requirements-site.txt").items()
    assert pins("requirements-site.txt").items() <= pins("requirements-test.txt").items()


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-site.txt", "requirements-test.txt"])
def test_every_locked_package_has_hashes_and_no_index_is_named(name: str) -> None:
    text = (PROJECT / name).read_text()
    for entry in locked(name):
        assert "--hash=sha256:" in entry, entry
    assert "://" not in text
    assert "index-url" not in text


def make(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "--no-print-directory", "-C", str(PROJECT), *arguments],
        env={**clean, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_alone_lists_every_target_a_user_may_call() -> None:
    done = make()
    assert done.returncode == 0
    phony = re.search(r"^\.PHONY: (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    for target in set(phony.group(1).split()) - {"setup-site", "setup-test", "name-given", "patched-given"}:
        assert re.search(rf"^  {target} +\w", done.stdout, re.MULTILINE), target


def test_make_scenario_without_a_name_lists_the_scenarios() -> None:
    done = make("scenario")
    assert done.returncode == 2
    line = done.stderr.splitlines()[0]
    assert line.startswith("agelab: say which scenario: make scenario NAME=<scenario>[-<variant>]")
    for scenario in (PROJECT / "scenarios").glob("*.toml"):
        assert scenario.stem in line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["scenario", "NAME=aging-ext4", "KERNELS=5.10 6.1"], "takes no KERNELS=; did you mean KERNEL=?"),
        (["scenario", "NAME=aging-ext4", "SEED=5"], "takes no SEED=; did you mean SEEDS=?"),
        (["scenario", "NAME=aging-ext4", "KERNAL=5.10"], "takes no KERNAL=; did you mean KERNEL=?"),
        (["scenario", "NAME=aging-ext4", "ZZZ=5.10"], "takes no ZZZ=: it takes AGELAB_HOME SNAPSHOT"),
        (["scenarioo", "SEED=5"], "no target scenarioo; did you mean make scenario?"),
        (["zzz"], "no target zzz: make alone lists them"),
        (["test", "FS=ext4"], "make test takes no FS="),
    ],
)
def test_make_refuses_a_variable_that_its_target_does_not_take(words: list[str], told: str) -> None:
    done = make(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert told in done.stderr


def test_make_passes_on_what_was_said_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "agelab").write_text('#!/bin/sh\necho "home=$AGELAB_HOME"; printf "<%s>" "$@"\n')
    (tmp_path / "agelab").chmod(0o755)
    done = make(
        "scenario", f"BIN={tmp_path}", "NAME=aging-ext4", "KERNEL=it's here", "SEEDS=1,2", FS="xfs",
        AGELAB_HOME="/big",
    )  # fmt: skip
    assert done.stdout == "home=/big\n<run><aging-ext4><--kernel><it's here><--filesystem><xfs><--seeds><1,2>"


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["plan", "NAME=aging", "KERNEL=source:5.10"], "<plan><aging><--kernel><source:5.10,patches=it's.patch>"),
        (
            ["sweep", "NAME=aging", "KERNELS=source:5.10 source:6.1,config=a"],
            "<run><aging><--kernel><source:5.10,patches=it's.patch><--kernel><source:6.1,config=a,patches=it's.patch>",
        ),
        (["image", "KERNEL=tree:/linux"], "<image><build><--kernel><tree:/linux,patches=it's.patch>"),
    ],
)
def test_a_patch_is_a_part_of_each_kernels_spec(tmp_path: Path, words: list[str], options: str) -> None:
    (tmp_path / "agelab").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    (tmp_path / "agelab").chmod(0o755)
    assert make(*words, f"BIN={tmp_path}", "PATCH=it's.patch").stdout == options


@pytest.mark.parametrize("words", [["scenario", "NAME=aging"], ["plan", "NAME=aging"], ["image"]])
def test_a_patch_without_a_kernel_is_refused(words: list[str]) -> None:
    done = make(*words, "PATCH=a.patch")
    assert done.returncode == 2 and "agelab: say which kernel PATCH changes" in done.stderr


def test_ci_gives_the_tests_an_empty_store_and_keeps_their_exit_code(tmp_path: Path) -> None:
    say = 'ls -A "$AGELAB_HOME"; cat; echo "$AGELAB_HOME" "$@"; touch "$AGELAB_HOME/left"; exit 7'
    env = path_with(tmp_path / "bin", "bash", "dirname", "mktemp", "rm", "ls", "cat", "touch", make=say)
    done = subprocess.run(
        ["bash", str(PROJECT / ".ci/run")],
        env={**env, "TMPDIR": str(tmp_path), "AGELAB_HOME": "/of/the/user"},
        input="never read",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert re.fullmatch(rf"{tmp_path}/agelab-ci\.\w+ --no-print-directory test\n", done.stdout)
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_no_engine_copies_the_store_or_the_history_into_a_container() -> None:
    """Docker reads .dockerignore alone; podman and buildah take either."""
    ignored = (PROJECT / ".dockerignore").read_text()
    assert ignored == (PROJECT / ".containerignore").read_text()
    assert {".git", ".venv", ".agelab"} <= set(ignored.splitlines())
