"""``agelab bisect``: which kernel changed a result."""

import shlex
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from agelab.base.errors import InputError, goes_on, unknown
from agelab.bisect.bisect_directory import BisectQuestion, GitTree, Symptom
from agelab.cli.click_options import shared_options
from agelab.cli.options import MEASURE, json_option, open_store, say
from agelab.results.measure import Measure
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest, require_measure

CRASH_METRIC = "crash:violations"


def parse_question(words: dict[str, Any]) -> BisectQuestion:
    """Make the question of a command line. Raises InputError for options that are missing, wrong or contradictory."""
    from agelab.bisect.kernel_runs import crash_question
    from agelab.bisect.rules import fewest_rounds
    from agelab.store.artefacts import file_hash

    if missing := [f"--{name}" for name in ("scenario", "good", "bad") if not words[name]]:
        raise InputError(f"missing: {', '.join(missing)}", hint="see: agelab bisect --help")
    if words["crash"] and words["metric"] not in (None, CRASH_METRIC):
        raise InputError(f"--crash measures {CRASH_METRIC}: leave --metric {words['metric']} out")
    metric = _metric({**words, "metric": CRASH_METRIC} if words["crash"] else words)
    name, request = _cell(words)
    if words["crash"] and request.options.in_wall_clock:
        raise InputError("--crash goes with the virtual clock: leave --clock wall out")
    if metric and not words["crash"]:
        require_measure(metric, request.selection)
    threshold, relative, alpha = _numbers(words, request.options.guest_clock)
    tree, kernels, count = _kernels(words, request)
    asked = request.options.to_plan()["options"]
    shared = {word: value for word, value in asked.items() if word not in ("kernel", "seeds")}
    made = BisectQuestion(
        directory=str(Path.cwd()),
        name=name,
        variant=request.selection.variants[0].name,
        words=shared,
        clock=request.options.guest_clock,
        good=words["good"],
        bad=words["bad"],
        tree=tree,
        kernels=tuple(kernels),
        candidates=count,
        metric=metric,
        crash=words["crash"] or "",
        symptom=Symptom(words["symptom"]) if words["symptom"] else None,
        threshold=threshold,
        relative=relative,
        rounds=words["rounds"],
        alpha=alpha,
        seed=1,
        profile=words["profile_neighbours"],
        files={path: file_hash(Path(path)) for path in _files(words, tree)} if tree else {},
    )
    if made.crash:
        crash_question(made, made.kernels[0], made.seed)  # what cannot be asked is told before a kernel is built
    if made.profile and not made.profiled_step:
        raise InputError(
            f"--profile: {made.criterion} names no step that can be profiled: name a metric of a step, in the virtual "
            "clock, that is neither a map nor a point of a history",
            hint="leave --profile out",
        )
    least = fewest_rounds(made.step_alpha) if made.clock == "wall" and not made.symptom else 0
    if words["rounds"] < least:
        raise InputError(
            f"--rounds {words['rounds']}: --alpha {alpha} over {made.steps} steps and both ends needs at least {least}"
        )
    return made


def _metric(words: dict[str, Any]) -> Measure | None:
    """Parse --metric. Raises InputError."""
    if (words["metric"] is None) == (words["symptom"] is None):
        raise InputError(
            "name the difference between good and bad: --metric STEP:METRIC, or --symptom panic, hang, fail or boot"
        )
    return None if words["metric"] is None else Measure.parse(words["metric"])


def _cell(words: dict[str, Any]) -> tuple[str, RunRequest]:
    """Return the name of the run and its request for one cell. Raises InputError where there would be several."""
    from agelab.runner.request.request import resolve
    from agelab.scenario import selection

    scenario, variant = words["scenario"], words["variant"]
    own = scenario.endswith(".toml")
    if variant and not own:
        selection.select(scenario)  # else a wrong name would be told with the variant behind it
    name = f"{scenario}-{variant}" if variant and not own else scenario
    filesystem = None
    if own and variant:
        variants = {variant.name: variant for variant in selection.select(scenario).variants}
        if variant not in variants:
            raise unknown("variant", variant, list(variants), f"in {scenario}")
        filesystem = variants[variant].filesystem
    shared = {word: value for word, value in words.items() if word in RunOptions.model_fields}
    request = resolve(RunOptions(name=name, filesystem=filesystem, **shared))
    chosen = request.selection.variants
    if len(chosen) > 1:
        listed = ", ".join(variant.name for variant in chosen)
        raise InputError(f"a bisect measures one variant; {name} has {listed}", hint="choose one: --variant")
    if len(layouts := request.layouts(chosen[0])) > 1:
        raise InputError(f"a bisect measures one layout; {name} has {', '.join(layouts)}", hint="choose one: --layout")
    if len(corpora := request.options.corpora) > 1:
        raise InputError(
            f"a bisect measures one corpus; --corpora {words['corpora']} names {len(corpora)}", hint="name one"
        )
    return name, request


def _numbers(words: dict[str, Any], clock: str) -> tuple[str | None, str | None, str]:
    """Parse threshold, relative threshold and error probability as exact numbers. Raises InputError."""

    def number(option: str, text: str | None) -> str | None:
        try:
            plain = text and (text.strip().removesuffix("%") if option == "relative" else text)
            return None if plain is None else str(Fraction(plain))
        except (ValueError, ZeroDivisionError) as error:
            raise InputError(f"--{option} {text}: not a number") from error

    threshold, percent = number("threshold", words["threshold"]), number("relative", words["relative"])
    alpha = number("alpha", words["alpha"]) or ""
    given = [f"--{name}" for name in ("threshold", "relative") if words[name] is not None]
    if len(given) > 1:
        raise InputError("--threshold and --relative exclude each other: leave one out")
    if given and words["symptom"]:
        raise InputError(f"{given[0]} goes with --metric: a symptom has no value")
    if given and clock == "wall":
        raise InputError(
            f"{given[0]} goes with the virtual clock: in the wall clock agelab compares a step with good and bad of "
            "the same round"
        )
    if percent is not None and Fraction(percent) <= 0:
        raise InputError(f"--relative {words['relative']}: name a change towards bad, above 0 %")
    if not 0 < Fraction(alpha) < Fraction(1, 2):
        raise InputError(f"--alpha {words['alpha']}: a chance between 0 and 0.5")
    if words["rounds"] < 1:
        raise InputError(f"--rounds {words['rounds']}: one at least")
    return threshold, None if percent is None else str(Fraction(percent) / 100), alpha


def _files(words: dict[str, Any], tree: GitTree) -> list[str]:
    """List every file that the options of the kernels name, used or not."""
    from agelab.kernel import recipes

    named = [Path(word).expanduser() for word in (words["base"], *words["config"], *words["patches"]) if word]
    inside = [file for path in named if path.is_dir() for file in path.rglob("*")]
    series = recipes.parse(tree.kernel_spec(tree.bad)).patches  # it may name what lies elsewhere
    return sorted({str(file.absolute()) for file in (*named, *inside, *series) if file.is_file()})


def _kernels(words: dict[str, Any], request: RunRequest) -> tuple[GitTree | None, list[str], int]:
    """Return the tree or None, the kernels from good to bad, and the number of candidates. Raises InputError."""
    from agelab.bisect import git_search, search
    from agelab.kernel import build, recipes
    from agelab.machine.disk import DriveSpec, parse

    options = [("base", words["base"]), *(("config", fragment) for fragment in words["config"])]
    options += [("patches", patch) for patch in words["patches"]]
    given = [(name, value) for name, value in options if value]
    if words["path"] is None:
        if given or words["dirty"]:
            raise InputError(f"--{given[0][0] if given else 'dirty'} goes with --tree")
        scenario = request.selection.scenario
        drives = request.options.disks or tuple(map(parse, scenario.disk.drives))
        bare = bool(drives) and all(spec == DriveSpec("model", "none") or spec.real for spec in drives)
        needs_headers, asked = scenario.tests_at_points or not bare, words["kernels"].split()
        kernels = search.kernels_between(words["good"], words["bad"], asked, open_store(), say, headers=needs_headers)
        return None, kernels, len(kernels) - 1
    if words["kernels"]:
        raise InputError("--kernels goes without --tree: git knows the commits between good and bad")
    suffix = "".join(f",{recipes.option(name, value)}" for name, value in given)
    path, good, bad = Path(words["path"]), words["good"], words["bad"]
    tree, count = git_search.resolve_tree(path, good, bad, suffix, dirty=words["dirty"])
    kernels = [tree.kernel_spec(tree.good), tree.kernel_spec(tree.bad)]
    for kernel in kernels:
        build.check_configuration(kernel, open_store(), say)
    return tree, kernels, count


@click.command(
    epilog="Exit: 0 one kernel is found, 1 several are left and none of them can be judged, 2 wrong input, 3 the host "
    "cannot do it, 130 interrupted: go on with --continue."
)
@click.option("--scenario", help="The scenario that each step runs.")
@click.option("--variant", help="The variant, if the scenario has several.")
@click.option(
    "--metric",
    metavar=MEASURE,
    help="What to measure: copy:elapsed (the mean of all copies), copy:1:elapsed (the first), "
    "aged/fio.read:fio_read_bandwidth (an fio job). agelab list metrics has all.",
)
@click.option(
    "--crash",
    metavar="WORKLOAD",
    help="Run this workload of agelab crash in place of the scenario's steps, and count crash:violations.",
)
@click.option(
    "--symptom",
    type=click.Choice(["panic", "hang", "fail", "boot"]),
    help="What a bad kernel does, in place of a metric. boot: its guest does not boot in time.",
)
@click.option("--good", help="A kernel without the change: a version or spec, with --tree a git ref.")
@click.option("--bad", help="A kernel with the change.")
@click.option("--tree", "path", help="Search the commits of this git tree of Linux.")
@click.option("--dirty", is_flag=True, help="Ignore uncommitted changes in --tree.")
@click.option("--config", multiple=True, help="A fragment of configuration for every commit's kernel, or a line of it.")
@click.option("--patches", multiple=True, help="A patch, or a directory of them, for every commit's kernel.")
@click.option("--base", help="A distribution's .config in place of the small one.")
@click.option(
    "--kernels",
    default="",
    show_default=False,
    help='The kernels to search, in order, in place of all that the mirror has: "5.10 6.1 6.12".',
)
@click.option("--threshold", help="The value at which bad begins, in the metric's unit; by default midway.")
@click.option("--relative", metavar="PERCENT", help="The same, as a change from good's median: 10%.")
@click.option("--rounds", default=60, help="Wall clock: the most rounds of a step.")
@click.option("--alpha", default="0.01", help="Wall clock: the highest chance of a wrong answer.")
@click.option(
    "--profile",
    "profile_neighbours",
    is_flag=True,
    help="In the end, list the kernel functions in which the step differs before and after the change.",
)
@click.option(
    "--continue",
    "proceed",
    metavar="BISECT",
    help="Continue a bisect (or latest). Of the other options only --disks and --erase go with it.",
)
@shared_options
@json_option
def bisect(proceed: str | None, as_json: bool, **words: Any) -> int:
    """Find the kernel that changed a result: between two packaged kernels, or two commits of a git tree.

    Both ends are measured first. Each step is one run; all that was measured, git's log and the answer are
    kept below bisects/ in the store.
    """
    from agelab.bisect import answer, search
    from agelab.bisect.bisect_directory import BisectDirectory
    from agelab.bisect.kernel_runs import KernelRuns
    from agelab.present.view.bisect import FLAME_GRAPH, answer_lines, follow_log, show_profiles
    from agelab.results import checksummed

    store = open_store()
    if proceed is None:
        directory = BisectDirectory.create(store, parse_question(words))
    else:
        _nothing_else(words)
        directory = BisectDirectory.find(store, proceed)
        directory.require_own(store)
    question = directory.question()
    if proceed is not None:
        _same_disks(question, directory.name, words)
    _same_files(question)
    with goes_on(_continuing_command(question, directory.name)):
        with follow_log(directory):
            directory.log_line(f"bisect {directory.name}, each detail in {directory.log}")
            measure = KernelRuns(directory, store)
            judge = search.make_judge(directory, measure, question.words["jobs"])
            conclusion = search.run_search(directory, judge)
        text = "\n".join(answer_lines(conclusion))
        checksummed.write(directory.path / "answer.txt", text)
        click.echo(conclusion.model_dump_json(indent=1) if as_json else text)
        if question.profile:
            with follow_log(directory):
                profiled = answer.take_profiles(directory, store, conclusion)
            show_profiles(directory.path / FLAME_GRAPH, profiled, quiet=as_json)
    return 0 if conclusion.found else 1


def _nothing_else(words: dict[str, Any]) -> None:
    """Refuse options beside --continue, whose question is asked already, but for real disks. Raises InputError."""
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    names = {option.name: option.opts[0] for option in context.command.params}
    given = [word for word in words if context.get_parameter_source(word) is not default]
    if other := [names[word] for word in given if word not in ("disks", "erase")]:
        raise InputError(f"--continue goes on with what was asked: leave {', '.join(other)} out")


def _continuing_command(question: BisectQuestion, name: str) -> str:
    """Return the command that goes on with a bisect; real disks must be named again."""
    from agelab.bisect.kernel_runs import options_of

    return shlex.join(["agelab", "bisect", "--continue", name, *options_of(question).named_again()])


def _same_disks(question: BisectQuestion, name: str, words: dict[str, Any]) -> None:
    """Refuse real disks that the command line does not name, too, as what may be lost on them. Raises InputError."""
    from agelab.bisect.kernel_runs import options_of

    asked, command = options_of(question), _continuing_command(question, name)
    again = asked.asked_again(words["disks"], words["erase"], command)
    again.require_asked()
    if again.erase != asked.erase:
        raise InputError("--erase names other disks than the bisect was begun with", hint=f"go on with {command}")


def _same_files(question: BisectQuestion) -> None:
    """Refuse to go on with other files than it was begun with, or without them. Raises InputError."""
    from agelab.bisect.kernel_runs import require_unchanged

    if not Path(question.directory).is_dir():
        raise InputError(f"the bisect was begun in {question.directory}, which is not there any more")
    require_unchanged(question)
