"""The table of a run's options: its names, and what a replay takes (docs/make/generated writes it into pages)."""

from agelab.runner.request import options as table
from agelab.runner.request.options import OPTIONS, make_variable, option


def test_no_option_is_called_as_another() -> None:
    names = [option(name) for name, about in OPTIONS.items() if about.help]
    variables_ = [variable for name in OPTIONS if (variable := make_variable(name))]
    assert len({*names}) == len(names) and len({*variables_}) == len(variables_)


def test_a_replay_takes_no_path_of_another_host() -> None:
    assert table.PATHS <= table.NOT_REPLAYED
    assert not {"fail", "layout", "boot"} & table.NOT_REPLAYED
    assert {"kernel", "seeds", "jobs", "ask", "until_decided", "keep_disk"} <= table.NOT_REPLAYED
