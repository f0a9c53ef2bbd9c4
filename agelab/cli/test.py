"""``agelab test``: a suite of tests over many seeds."""

import shlex
from pathlib import Path
from typing import Any

import click

from agelab.base.errors import InputError
from agelab.base.verbs import as_called
from agelab.cli.click_options import execute, test_options
from agelab.cli.options import OUTPUT, force_option, open_store, print_blocks, say, write_output
from agelab.runner.request.options import RunOptions

DISK_MIB, MEMORY_MIB, SCHEDULE = 512, 256, 1
USUAL = {"timeout": "60", "packages": None, "mib": DISK_MIB, "memory-mib": MEMORY_MIB, "schedule": SCHEDULE}
"""Options as they are without a word."""


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


@click.command(
    epilog="Exit: 0 nothing failed but what is known to, 1 else (or a test could not run), 2 wrong input, 3 the host "
    "cannot do it."
)
@test_options
@click.option("--only", metavar="TEST,...", help="Run only these tests of the suite.")
@click.option(
    "--timeout", type=click.FloatRange(0, 86400, min_open=True), default=60, help="Guest seconds for one test."
)
@click.option("--packages", metavar="NAME,...", help="Debian packages that the tests need.")
@click.option("--mib", type=click.IntRange(16, 1 << 20), default=DISK_MIB, help="Size of the disk.")
@click.option("--memory-mib", type=click.IntRange(32, 1 << 16), default=MEMORY_MIB, help="Memory that a test finds.")
@click.option(
    "--expect",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A file of known failures: a table [expect] of tests and reasons.",
)
@click.option("--junit", type=OUTPUT, metavar="FILE", help="Also write JUnit XML: a case for each test and seed.")
@force_option
def test(
    name: str,
    filesystem: str | None,
    only: str | None,
    timeout: float,
    packages: str | None,
    mib: int,
    memory_mib: int,
    expect: Path | None,
    junit: Path | None,
    **words: Any,
) -> int:
    """Run each test of SUITE with each seed, each in its own guest on a filesystem made for it.

    SUITE is a directory, whose executable files are tests, or one program (docs/howto/tests.md).
    """
    from agelab.analysis.test_results import CaseOf, CaseResult, results, tallies
    from agelab.base.atomic import write
    from agelab.base.hashing import key_of
    from agelab.present.view.junit import test_lines
    from agelab.present.view.tests import suite_blocks
    from agelab.runner.request.request import resolve
    from agelab.scenario import suite

    if not (filesystems := _words(filesystem)):
        raise InputError("--filesystem: name one, or several: --filesystem ext4,xfs")
    expected = suite.read_expected(expect) if expect else None
    chosen = suite.read(Path(name)).only(_words(only))
    text = chosen.scenario(filesystems, timeout, mib, memory_mib, _words(packages))
    place = open_store().home / "suites" / key_of(text)[:16] / f"{chosen.name}.toml"
    place.parent.mkdir(parents=True, exist_ok=True)
    write(place, text.encode())
    options = RunOptions(name=str(place), **words)
    files = {test.case: test.file for test in chosen.tests}
    cases = {
        variant.name: CaseOf(files[variant.case], variant.name.removesuffix(f"-{variant.case}"))
        for variant in resolve(options).selection.variants
        if variant.case
    }
    say(f"the scenario: {place}")
    finished = execute(options)
    found = results(finished, cases, expected)

    def again(result: CaseResult) -> str:
        on = next(fs for fs in filesystems if f"{result.on}-".startswith(f"{fs}-"))
        own = {"only": result.test, "filesystem": on, "seeds": result.seed, "timeout": f"{timeout:g}"}
        own |= {"packages": packages, "mib": mib, "memory-mib": memory_mib, "schedule": options.schedule}
        given = [f"--{option}={value}" for option, value in own.items() if value != USUAL.get(option)]
        others = options.changed(seeds=(1,), schedule=0, jobs=1, fresh=False).arguments()[1:]
        return as_called(shlex.join(["agelab", "test", name, *given, *others, "--fresh"]))

    print_blocks(suite_blocks(tallies(found), again))
    if junit:
        write_output(junit, "\n".join(test_lines(finished.name, found)).encode() + b"\n")
    click.echo(as_called(f"the run: agelab show {finished.name}"))
    return 1 if any(result.is_trouble for result in found) else 0
