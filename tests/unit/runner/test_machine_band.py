"""A run at an end of the band of what an instruction costs: asked for, refused, in the key and in results."""

from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.runner.execute.companion_disk import companion_cell
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import cell_requests, resolve
from agelab.scenario import selection, toml_files
from agelab.scenario.machine import Machine

NAME = "pentium4-2800"


def machine_file(tmp_path: Path, old: str, new: str) -> Path:
    """The machine's file with one change."""
    text = (toml_files.SCENARIOS / "machines" / f"{NAME}.toml").read_text()
    assert old in text
    path = tmp_path / f"{NAME}.toml"
    path.write_text(text.replace(old, new))
    return path


def band_line() -> str:
    text = (toml_files.SCENARIOS / "machines" / f"{NAME}.toml").read_text()
    return next(line for line in text.splitlines() if line.startswith("band = "))


def cell(**options: Any) -> CellSpec:
    [found] = cell_requests(resolve(RunOptions(name="aging-ext4", **options)), 14, (), None)
    return found.spec


def test_low_is_the_cheap_end_and_high_the_dear_one() -> None:
    low, middle, high = (cell(machine_band=end).machine for end in ("low", None, "high"))
    assert low.instruction_ns < middle.instruction_ns < high.instruction_ns
    assert (low.instruction_ns, high.instruction_ns) == middle.band_ns
    assert low.dilation < middle.dilation < high.dilation


def test_the_key_and_the_result_name_the_end_and_without_one_nothing_knows_of_a_band() -> None:
    low, middle = cell(machine_band="low").machine, cell().machine
    assert (low.name, low.plain_name) == (f"{NAME}:low", NAME)
    keyed = middle.model_dump(mode="json")
    assert keyed["name"] == NAME and "band" not in keyed["instructions_per_cycle"]
    assert low.model_dump(mode="json")["name"] == f"{NAME}:low"


def test_a_variants_own_machine_is_taken_at_its_end() -> None:
    request = resolve(RunOptions(name="fedorchuk-2005", machine_band="high"))
    found = {one.spec.machine.name for one in cell_requests(request, 16, (), None)}
    assert len(found) > 1 and all(name.endswith(":high") for name in found)


def test_cells_at_both_ends_and_with_another_block_layer_have_the_same_disk_beside_them() -> None:
    changes: list[dict[str, Any]] = [
        {}, {"machine_band": "low"}, {"machine_band": "high"}, {"block": "scheduler=bfq"}
    ]  # fmt: skip
    for changed in changes:
        options = RunOptions(name="piszcz-2006-ext2", **changed)
        [found] = cell_requests(resolve(options), 16, (), None)
        assert companion_cell(found.spec).machine == selection.machine("pentium3-500")


def test_the_wall_clock_has_no_band() -> None:
    with pytest.raises(InputError, match="--machine-band low: in the wall clock"):
        RunOptions(name="aging-ext4", machine_band="low", clock="wall")


def test_an_unknown_end_is_named() -> None:
    with pytest.raises(InputError, match="no --machine-band 'dear'; there are: high, low"):
        RunOptions(name="aging-ext4", machine_band="dear")  # type: ignore[arg-type]


def test_a_machine_without_a_band_has_no_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = machine_file(tmp_path, band_line(), "")
    bare = toml_files.read(path, Machine)
    assert bare.band_ns is None
    monkeypatch.setattr(selection, "machine", lambda _: bare)
    assert cell().machine == bare
    with pytest.raises(InputError, match=f"--machine-band low: machine {NAME} has no band") as told:
        cell(machine_band="low")
    assert "instructions_per_cycle.band" in told.value.hint


@pytest.mark.parametrize(
    ("band", "why"),
    [
        ("low = 0.5, high = 0.6", r"0\.\d+ is not in its band, 0.5 to 0.6"),
        ("low = 0.001, high = 0.6", "at band.low an instruction takes 357 ns: no timer survives that"),
        ("low = 0.3, high = 30", "at band.high an instruction takes 0.0119 ns"),
        ("low = 0, high = 0.6", "band.low: .*greater than 0"),
    ],
)
def test_a_band_that_cannot_be_is_refused(tmp_path: Path, band: str, why: str) -> None:
    path = machine_file(tmp_path, band_line(), f'band = {{ {band}, origin = "estimated" }}')
    with pytest.raises(InputError, match=why):
        toml_files.read(path, Machine)
