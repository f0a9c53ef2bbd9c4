"""A bisect's verdicts on values and packages: the virtual clock, symptoms, thresholds, the wall clock."""

import subprocess
from collections.abc import Mapping
from fractions import Fraction
from math import ceil, log2
from pathlib import Path
from random import Random

import pytest

from agelab.base.errors import AgelabError, InputError
from agelab.bisect import answer, search
from agelab.bisect.answer import BisectAnswer
from agelab.bisect.bisect_directory import Symptom
from agelab.bisect.measurements import Decision, KernelVerdict, OutcomeKind
from agelab.bisect.rules import fewest_rounds
from agelab.present.view.bisect import answer_lines
from agelab.store.artefacts import Store
from tests.build import simulated_bisect as simulated
from tests.build.simulated_bisect import LAST, planted


def name(found: BisectAnswer) -> str:
    """The one kernel that was found."""
    [one] = found.names
    return one


def test_noise_of_the_seeds_is_told_from_the_change(store: Store) -> None:
    random = Random(7)
    behaviour = {
        str(one): [round((1.3 if one >= 23 else 1.0) + random.uniform(-0.05, 0.05), 4) for _ in range(5)]
        for one in range(LAST + 1)
    }
    directory = simulated.asked(store, behaviour)
    found = simulated.carry_out(directory)
    assert name(found) == "23" and found.floor and 0 < found.floor < 0.1
    seeds = [len(one.values) for one in found.judged]
    assert max(seeds) <= 5 and sum(seeds) < 5 * len(seeds)  # as few as it takes


def test_what_seeds_do_not_tell_is_undecided_and_skipped(store: Store) -> None:
    torn = [1.4, 1.7, 1.4, 1.7, 1.4]
    behaviour = planted(40, at_32=torn, at_0=[1.0, 1.1, 1.05, 1.0, 1.0])
    found = simulated.carry_out(simulated.asked(store, behaviour))
    assert name(found) == "40" and found.undecided == 1
    [judged] = [one for one in found.judged if one.name == "32"]
    assert judged.decision is Decision.UNDECIDED and "a lead of 3 is needed" in judged.reason


def test_a_threshold_chooses_among_two_changes(store: Store) -> None:
    stairs = {str(one): 1.0 + 0.5 * (one >= 20) + 1.0 * (one >= 50) for one in range(LAST + 1)}
    first = simulated.carry_out(simulated.asked(store, stairs, relative="1/10"))
    second = simulated.carry_out(simulated.asked(store, stairs, threshold="2"))
    assert (name(first), name(second)) == ("20", "50")
    assert any("20 % of the way" in line or "33 % of the way" in line for line in first.remarks)
    assert "more than one change" in first.remarks[0]


def test_values_that_come_and_go_are_called_not_monotonic(store: Store) -> None:
    behaviour = planted(40, at_32=1.4, at_48=1.7)
    found = simulated.carry_out(simulated.asked(store, behaviour))
    assert name(found) == "40"
    assert any(line.startswith("not monotonic") for line in found.remarks)
    assert any("32, 1.4" in line and "comes before" in line for line in found.remarks)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (planted(99), "good and bad are equal"),
        (planted(64, at_0=[1.0, 1.9, 1.5, 1.2, 1.0], at_64=[1.4] * 5), "differ by less than run seeds do"),
        (planted(64, at_64=OutcomeKind.NO_BUILD), "^bad itself does not build: it does not compile"),
        (planted(64, at_0=OutcomeKind.PANICS), "^good itself panics: so it was planted"),
    ],
    ids=["equal", "below the floor", "no build", "panics"],
)
def test_ends_that_tell_nothing_are_refused_before_the_first_step(
    store: Store, behaviour: Mapping[str, object], said: str
) -> None:
    directory = simulated.asked(store, behaviour)
    with pytest.raises(InputError, match=said):
        simulated.carry_out(directory)
    assert not directory.rows("verdicts", KernelVerdict)


def test_a_threshold_beyond_the_ends_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match=r"threshold 3.* is not between the two ends"):
        simulated.carry_out(simulated.asked(store, planted(20), threshold="3"))


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("hangs", 1.0, "good and bad are swapped"),
        (1.0, 1.0, "bad does not show the symptom hang: it runs to its end"),
        (1.0, "panics", "bad does not show the symptom hang: it panics"),
        ("hangs", "hangs", "good itself hangs"),
    ],
)
def test_ends_without_the_symptom_or_with_it_on_both_sides_are_refused(
    store: Store, good: object, bad: object, said: str
) -> None:
    directory = simulated.asked(store, planted(20, at_0=good, at_64=bad), symptom=Symptom.HANG)
    with pytest.raises(InputError, match=said):
        simulated.carry_out(directory)


@pytest.mark.parametrize("seed", range(40))
def test_a_list_is_halved_whatever_is_skipped(seed: int) -> None:
    random = Random(seed)
    count = random.randint(2, 70)
    first_bad = random.randint(1, count - 1)
    broken = {one for one in range(1, count - 1) if random.random() < random.choice([0.0, 0.2, 0.7])}
    judged: list[int] = []

    def judge(kernel: str) -> Decision:
        judged.append(int(kernel))
        if int(kernel) in broken:
            return Decision.UNDECIDED
        return Decision.BAD if int(kernel) >= first_bad else Decision.GOOD

    found = search.halve([str(one) for one in range(count)], judge)
    assert len(judged) == len(set(judged)) and not {0, count - 1} & set(judged)
    assert len(judged) <= ceil(log2(count - 1)) + len(set(judged) & broken)
    assert int(found.before) < first_bad <= int(found.after)
    assert found.possible[-1] == found.after and all(int(one) in broken for one in found.possible[:-1])


WALL = {"clock": "wall", "rounds": 60, "alpha": "1/100"}


def noisy(random: Random, middle: float, spread: float = 0.05) -> list[float]:
    return [round(middle * (1 + random.uniform(-spread, spread)), 4) for _ in range(997)]


def test_in_the_wall_clock_rounds_are_added_until_they_tell_and_the_answer_has_its_error(store: Store) -> None:
    random = Random(3)
    kernels = {f"k{one}": noisy(random, 1.5 if one >= 5 else 1.0) for one in range(9)}
    directory = simulated.asked(store, kernels, **WALL)
    found = simulated.carry_out(directory)
    assert name(found) == "k5" and found.steps == 3
    assert found.error == pytest.approx(0.01) and found.floor is None
    assert any("probability of a wrong answer: at most 1 %" in line for line in answer_lines(found))
    rounds = simulated.calls(directory)
    first, second = (one.split() for one in rounds[:2])
    assert {first[0], second[0]} == {"k0", "k8"} and first[1] == second[1] == "1"
    # Of each round all have its number for their run seed, and the order is not always the same.
    orders = {tuple(one.split()[0] for one in rounds[at : at + 2]) for at in range(0, 20, 2)}
    assert orders == {("k0", "k8"), ("k8", "k0")}
    least = fewest_rounds(Fraction(1, 100) / 4)
    assert len({one.split()[1] for one in rounds}) >= least + 3 * 9
    before = len(rounds)
    assert simulated.carry_out(directory) == found and len(simulated.calls(directory)) == before


def test_ends_that_rounds_do_not_tell_apart_are_refused(store: Store) -> None:
    random = Random(4)
    directory = simulated.asked(
        store, {"a": noisy(random, 1.0), "b": noisy(random, 1.0), "c": noisy(random, 1.0)}, **WALL
    )
    with pytest.raises(InputError, match="good and bad do not differ in 60 rounds"):
        simulated.carry_out(directory)


def test_a_kernel_in_the_middle_is_undecided_at_the_end_of_the_budget(store: Store) -> None:
    random = Random(5)
    kernels = {"a": noisy(random, 1.0), "b": noisy(random, 1.5), "c": noisy(random, 2.0)}
    found = simulated.carry_out(simulated.asked(store, kernels, **WALL))
    assert (found.possible, found.undecided) == (("b", "c"), 1)
    assert found.error == pytest.approx(0.005)  # the ends alone were told
    assert "the budget of 60 rounds has ended" in "\n".join(answer_lines(found))


def test_a_round_in_which_an_end_breaks_counts_for_nothing(store: Store) -> None:
    random = Random(6)
    kernels: dict[str, object] = {"a": noisy(random, 1.0), "b": OutcomeKind.HANGS, "c": noisy(random, 2.0)}
    found = simulated.carry_out(simulated.asked(store, kernels, **WALL))
    assert found.possible == ("b", "c") and found.judged[0].kind is OutcomeKind.HANGS
    broken = {**kernels, "c": OutcomeKind.PANICS}
    with pytest.raises(AgelabError, match="bad itself panics: so it was planted: the round counts for nothing"):
        simulated.carry_out(simulated.asked(store, broken, **WALL))


def test_the_script_runs_both_neighbours_and_puts_them_side_by_side(store: Store, tmp_path: Path) -> None:
    found = simulated.carry_out(
        simulated.asked(store, planted(20), words={"jobs": 2, "disks": None, "layout": "raid0"})
    )
    text = Path(found.script).read_text()
    assert "before=19\nafter=20\n" in text
    assert (
        'run small-ext4 --seeds 1,2,3,4,5 --layout raid0 --jobs 2 --fresh --kernel "$before" --kernel "$after"' in text
    )
    assert 'sweep "$@" --metric copy:elapsed\n' in text and '--kernel "$after" ${PROFILE:+--profile})' in text
    # What it does with what agelab says, and how it ends.
    fake = tmp_path / "agelab"
    fake.write_text(
        '#!/bin/sh\necho "$@" >> said\n'
        'case $1 in run) echo; echo "again, or as JSON or plots: agelab sweep one two"; exit 1;; esac\n'
    )
    fake.chmod(0o755)
    home = tmp_path / "there"
    home.mkdir()
    Path(found.script).write_text(text.replace("cd / ||", f"cd {home} ||"))
    done = subprocess.run(
        ["sh", found.script], env={"AGELAB": str(fake), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0 and "again, or as JSON" in done.stdout
    said = (home / "said").read_text().splitlines()
    assert len(said) == 2 and "--profile" not in said[0] and said[1] == "sweep one two --metric copy:elapsed"
    subprocess.run(
        ["sh", found.script],
        env={"AGELAB": str(fake), "PATH": "/usr/bin:/bin", "PROFILE": "1"},
        capture_output=True,
        check=True,
    )
    said = (home / "said").read_text().splitlines()[2:]
    assert said[0].endswith(" --profile") and said[2] == "profile two copy --against one"


def test_a_script_says_a_seed_of_nought_too(store: Store) -> None:
    directory = simulated.asked(store, planted(3), words={"jobs": 1, "corpora": "0", "trace": False, "erase": ""})
    said = answer.reproduce_script(store.home, directory.question(), "2", "3", "x")
    assert "--corpora 0" in said and "--trace" not in said and "--erase" not in said


def test_a_script_of_real_disks_runs_one_kernel_after_the_other(store: Store, tmp_path: Path) -> None:
    directory = simulated.asked(store, planted(20), words={"jobs": 1, "disks": "file:/x"})
    text = answer.reproduce_script(store.home, directory.question(), "a", "b", "c")
    assert 'for kernel in "$before" "$after"; do' in text
    # A run of several cells ends with other words than one of a single cell.
    fake = tmp_path / "agelab"
    fake.write_text(
        '#!/bin/sh\necho "$@" >> said\n'
        'case "$*" in *"--kernel a") echo "every sample: agelab show one";; '
        '*"--kernel b") echo "the whole result: agelab show two --json";; esac\n'
    )
    fake.chmod(0o755)
    text = text.replace("cd / ||", f"cd {tmp_path} ||")
    subprocess.run(["sh"], input=text, env={"AGELAB": str(fake), "PATH": "/usr/bin:/bin"}, text=True, check=True)
    assert (tmp_path / "said").read_text().splitlines()[-1].startswith("sweep one two")


def test_a_symptom_needs_one_seed_and_no_metric(store: Store) -> None:
    kernels = {str(one): OutcomeKind.PANICS if one >= 3 else 1.0 for one in range(6)}
    found = simulated.carry_out(simulated.asked(store, kernels, symptom=Symptom.PANIC))
    assert name(found) == "3" and "--seeds" not in Path(found.script).read_text()  # one, as by default
    assert Path(found.script).read_text().endswith('sweep "$@"\n')
