"""What an instruction costs: the published figures as they are read, and the mean over calls and systems."""

from pathlib import Path

import pytest

from agelab.errors import AgelabError
from agelab.scenario import selection
from bench import machines
from bench.machines import PublishedFigure

HEAD = "cpu,mhz,metric,value,unit,kernel,source,note\n"


def test_every_figure_becomes_cycles(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(
        HEAD + "P,500,lmbench stat,6,us,2.4,list,\nP,500,lmbench file reread,250,MB/s,2.4,list,\n"
    )
    assert machines.published(path) == [
        PublishedFigure("P", "P, 2.4, list", "stat", 3000.0),
        PublishedFigure("P", "P, 2.4, list", "file reread", 2.0),
    ]


def test_every_line_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(
        HEAD + "P,500,stat,six,us,,,\nP,500,stat,6,hours,,,\nP,500,stat,6,us,,,\nP,500,x,0,MB/s,,,\n"
    )
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


def test_each_machine_has_a_family_with_figures_and_says_how_it_was_calibrated() -> None:
    cpus = {one.cpu for one in machines.published()}
    for names in machines.FAMILIES.values():
        assert all(any(cpu.startswith(name) for cpu in cpus) for name in names)
    for name, family in machines.FAMILY_OF.items():
        figure = selection.machine(name).instructions_per_cycle
        assert figure.origin == "calibrated" and family in figure.note
