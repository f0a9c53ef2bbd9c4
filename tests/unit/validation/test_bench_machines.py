"""What an instruction costs: the published figures as they are read, and the mean over calls and systems."""

import tomllib
from pathlib import Path

import pytest

from agelab.base.errors import AgelabError
from agelab.scenario import selection, toml_files
from agelab.scenario.machine import Machine
from agelab.scenario.toml_files import SCENARIOS
from validation import machines
from validation.machines import PublishedFigure

ALL = [*machines.FITTED.values(), *machines.BYTES.values(), *machines.SHOWN.values()]
HEAD = "cpu,mhz,metric,value,unit,kernel,source,note\n"


def test_every_figure_becomes_cycles(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(HEAD + "P,500,lmbench stat,6,us,2.4,list,\nP,500,lmbench file reread,250,MB/s,2.4,list,\n")
    assert machines.published(path) == [
        PublishedFigure("P", "P, 2.4, list", "stat", 3000.0),
        PublishedFigure("P", "P, 2.4, list", "file reread", 2.0),
    ]


def test_every_line_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(HEAD + "P,500,stat,six,us,,,\nP,500,stat,6,hours,,,\nP,500,stat,6,us,,,\nP,500,x,0,MB/s,,,\n")
    with pytest.raises(AgelabError) as raised:
        machines.published(path)
    assert [word for word in ("line 2", "line 3", "line 4", "line 5") if word in str(raised.value)] == [
        "line 2",
        "line 3",
        "line 5",
    ]


def test_a_cost_is_the_geometric_mean_over_calls_and_its_range_that_of_systems() -> None:
    counted = {"stat": 1000.0, "open_close": 2000.0, "bcopy": 0.5}
    figures = [
        PublishedFigure("P", "one", "stat", 1000.0),
        PublishedFigure("P", "one", "open/close", 8000.0),
        PublishedFigure("P", "other", "stat", 4000.0),
        PublishedFigure("P", "other", "bcopy libc", 5.0),
    ]
    found = machines.cost(counted, figures)
    # stat: 1 and 4, so 2; open/close: 4.
    assert found.cycles == pytest.approx(8**0.5)
    assert found.low == pytest.approx(2)
    assert found.high == pytest.approx(4)
    assert found.residuals["bcopy libc"] == pytest.approx(10 / 8**0.5)


def test_a_byte_costs_what_its_call_takes_beyond_its_instructions() -> None:
    counted = {"stat": 1000.0, "file_reread": 0.5, "mem_write": 0.25}
    figures = [
        PublishedFigure("P", "one", "stat", 2000.0),
        PublishedFigure("P", "one", "file reread", 4.0),
        PublishedFigure("P", "one", "mem write", 3.0),
    ]
    cost = machines.cost(counted, figures, probe=0.1)
    assert cost.cycles == 2  # bytes are no part of it
    assert cost.read == pytest.approx(4.0 - 2 * 0.5)
    assert cost.written == pytest.approx(3.0 - 2 * 0.25 - 2 * 0.1)
    quick = [figures[0], PublishedFigure("P", "one", "file reread", 0.9)]
    assert (machines.cost(counted, quick).read, machines.cost(counted, quick).written) == (0, 0)
    head, rows = machines.report(dict.fromkeys(ALL, 2.0), {"P": cost})
    assert head[1:] == ["instructions", "P: cycles an instruction"]
    assert rows[0] == ["stat", "2.00 a byte", "2.00"]
    assert rows[-2:] == [["wait for a byte read, cycles", "", "3.00"], ["wait for a byte written, cycles", "", "2.30"]]


def test_each_machine_has_a_family_with_figures_and_says_how_it_was_calibrated() -> None:
    cpus = {one.cpu for one in machines.published()}
    for names in machines.FAMILIES.values():
        assert all(any(cpu.startswith(name) for cpu in cpus) for name in names)
    for name, family in machines.FAMILY_OF.items():
        machine = selection.machine(name)
        figure = machine.instructions_per_cycle
        assert figure.origin == "calibrated" and family in figure.note and machine.band_ns
        assert machine.byte_price and family in machine.byte_price.note


def costs(**families: tuple[float, float, float]) -> dict[str, machines.Cost]:
    """Mean, low and high cycles of an instruction by family."""
    return {name: machines.Cost(*ends, residuals={}, read=1.5, written=3.0) for name, ends in families.items()}


COSTS = costs(P6=(1.0, 0.8, 1.25), NetBurst=(2.0, 1.0, 2.5), K7=(1.5, 1.5, 1.5), K8=(1.6, 1.5, 1.8))


def test_a_band_is_the_range_of_its_familys_systems() -> None:
    found = machines.band(selection.machine("pentium4-2800"), COSTS)
    assert (found.low, found.high, found.origin) == (0.4, 1.0, "calibrated")


def test_a_processor_without_figures_of_its_own_has_a_wider_band_that_is_estimated() -> None:
    # The farthest system is NetBurst's best: twice better than its family's mean.
    xp = machines.band(selection.machine("athlonxp-2600"), COSTS)
    assert (xp.high, xp.origin) == (round(2 / 1.5, 3), "estimated")
    assert xp.low == pytest.approx(1333 / 2083 / (2 * 1.5), abs=0.001)
    core2 = machines.band(selection.machine("core2duo-3000"), COSTS)
    assert (core2.low, core2.high, core2.origin) == (round(1 / 1.8, 3), 2.5, "estimated")


def test_what_is_written_is_a_machine_with_its_band(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toml_files, "SCENARIOS", tmp_path)
    (tmp_path / "machines").mkdir()
    text = (SCENARIOS / "machines/core2duo-3000.toml").read_text()
    machine = Machine.model_validate(tomllib.loads(text))
    path = tmp_path / "machines/core2duo-3000.toml"
    path.write_text(text)
    machines.write(machine, COSTS)
    once = path.read_text()
    made = Machine.model_validate(tomllib.loads(once))
    assert made.instructions_per_cycle.band == machines.band(machine, COSTS)
    assert made.byte_price and (made.byte_price.read, made.byte_price.written) == (1.5, 3.0)
    assert made.drives == machine.drives
    machines.write(made, COSTS)
    assert path.read_text() == once
