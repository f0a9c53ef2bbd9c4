"""Check the options of ``agelab bisect`` before anything is measured, and make its question."""

from fractions import Fraction
from pathlib import Path
from typing import Any

from agelab.base.errors import InputError, unknown
from agelab.bisect.bisect_directory import BisectQuestion, GitTree, Symptom
from agelab.cli.options import open_store, say
from agelab.results.measure import Measure
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest, require_measure


def parse_question(words: dict[str, Any]) -> BisectQuestion:
    """Make the question of a command line. Raises InputError for options that are missing, wrong or contradictory."""
    from agelab.bisect.rules import fewest_rounds
    from agelab.store.artefacts import file_hash

    if missing := [f"--{name}" for name in ("scenario", "good", "bad") if not words[name]]:
        raise InputError(f"missing: {', '.join(missing)}", hint="see: agelab bisect --help")
    metric = _metric(words)
    name, wanted = _cell(words)
    if metric:
        require_measure(metric, wanted.selection)
    threshold, relative, alpha = _numbers(words, wanted.options.guest_clock)
    tree, kernels, count = _kernels(words, wanted)
    asked = wanted.options.to_plan()["options"]
    shared = {word: value for word, value in asked.items() if word not in ("kernel", "seeds")}
    made = BisectQuestion(
        directory=str(Path.cwd()),
        name=name,
        variant=wanted.selection.variants[0].name,
        words=shared,
        clock=wanted.options.guest_clock,
        good=words["good"],
        bad=words["bad"],
        tree=tree,
        kernels=tuple(kernels),
        candidates=count,
        metric=metric,
        symptom=Symptom(words["symptom"]) if words["symptom"] else None,
        threshold=threshold,
        relative=relative,
        rounds=words["rounds"],
        alpha=alpha,
        seed=1,
        profile=words["profile_neighbours"],
        files={path: file_hash(Path(path)) for path in _files(words, tree)} if tree else {},
    )
    if made.profile and not made.profiled_step:
        raise InputError(
            f"--profile: {made.criterion} is of no step that can be profiled: it takes the virtual clock, and a metric "
            "of a step that is no map and no point of a history",
            hint="leave --profile out",
        )
    least = fewest_rounds(made.step_alpha) if made.clock == "wall" and not made.symptom else 0
    if words["rounds"] < least:
        raise InputError(
            f"--rounds {words['rounds']}: with --alpha {alpha} over {made.steps} steps and the ends it takes {least} "
            "to tell anything"
        )
    return made


def _metric(words: dict[str, Any]) -> Measure | None:
    """Parse --metric. Raises InputError."""
    if (words["metric"] is None) == (words["symptom"] is None):
        raise InputError(
            "say by what bad differs from good: --metric STEP:METRIC, or --symptom panic, hang, fail or boot"
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
        variants = {one.name: one for one in selection.select(scenario).variants}
        if variant not in variants:
            raise unknown("variant", variant, list(variants), f"in {scenario}")
        filesystem = variants[variant].filesystem
    shared = {word: value for word, value in words.items() if word in RunOptions.model_fields}
    wanted = resolve(RunOptions(name=name, filesystem=filesystem, **shared))
    found = wanted.selection.variants
    if len(found) > 1:
        listed = ", ".join(one.name for one in found)
        raise InputError(f"a bisect measures one variant; {name} has {listed}", hint="choose one: --variant")
    if len(layouts := wanted.layouts(found[0])) > 1:
        raise InputError(
            f"a bisect measures one layout; {name} has {', '.join(layouts)}", hint="choose one: --layout"
        )
    if len(corpora := wanted.options.corpora) > 1:
        raise InputError(
            f"a bisect measures one corpus; --corpora {words['corpora']} names {len(corpora)}",
            hint="name one",
        )
    return name, wanted


def _numbers(words: dict[str, Any], clock: str) -> tuple[str | None, str | None, str]:
    """Parse threshold, relative threshold and error probability as exact numbers. Raises InputError."""

    def number(option: str, text: str | None) -> str | None:
        try:
            plain = text and (text.strip().removesuffix("%") if option == "relative" else text)
            return None if plain is None else str(Fraction(plain))
        except (ValueError, ZeroDivisionError) as error:
            raise InputError(f"--{option} {text}: it is no number") from error

    threshold, percent = number("threshold", words["threshold"]), number("relative", words["relative"])
    alpha = number("alpha", words["alpha"]) or ""
    given = [f"--{name}" for name in ("threshold", "relative") if words[name] is not None]
    if len(given) > 1:
        raise InputError("--threshold and --relative are two ways to say one thing: leave one out")
    if given and words["symptom"]:
        raise InputError(f"{given[0]} goes with --metric: a symptom has no value")
    if given and clock == "wall":
        raise InputError(
            f"{given[0]} goes with the virtual clock: in the wall clock a step is held against good and bad of its own "
            "round"
        )
    if percent is not None and Fraction(percent) <= 0:
        raise InputError(
            f"--relative {words['relative']}: it is a change towards bad, above 0 %, whichever way bad lies"
        )
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


def _kernels(words: dict[str, Any], wanted: RunRequest) -> tuple[GitTree | None, list[str], int]:
    """Return the tree or None, the kernels from good to bad, and the number of candidates. Raises InputError."""
    from agelab.bisect import git_search, search
    from agelab.kernel import build, recipes
    from agelab.machine.disk import DriveSpec, parse

    options = [("base", words["base"]), *(("config", one) for one in words["config"])]
    options += [("patches", one) for one in words["patches"]]
    given = [(name, value) for name, value in options if value]
    if words["path"] is None:
        if given or words["dirty"]:
            raise InputError(f"--{given[0][0] if given else 'dirty'} goes with --tree")
        scenario = wanted.selection.scenario
        drives = wanted.options.disks or tuple(map(parse, scenario.disk.drives))
        bare = bool(drives) and all(spec == DriveSpec("model", "none") or spec.real for spec in drives)
        needs_headers, asked = scenario.tests_at_points or not bare, words["kernels"].split()
        kernels = search.kernels_between(
            words["good"], words["bad"], asked, open_store(), say, headers=needs_headers
        )
        return None, kernels, len(kernels) - 1
    if words["kernels"]:
        raise InputError("--kernels goes without --tree: git knows the commits between good and bad")
    said = "".join(f",{recipes.option(name, value)}" for name, value in given)
    path, good, bad = Path(words["path"]), words["good"], words["bad"]
    found, count = git_search.resolve_tree(path, good, bad, said, dirty=words["dirty"])
    kernels = [found.kernel_spec(found.good), found.kernel_spec(found.bad)]
    for kernel in kernels:
        build.check_configuration(kernel, open_store(), say)
    return found, kernels, count
