"""Options of a run that do not go together, whatever the scenario is."""

from agelab.base.errors import InputError
from agelab.base.sanitize import require_utf_8
from agelab.runner.request.option_fields import OptionFields, option
from agelab.scenario.jobs import AUTO

MAX_VCPUS = 255
"""Limit of QEMU's machine."""


def check(options: OptionFields) -> None:
    """Raise InputError for the first options that do not go together."""
    for conflict in CONFLICTS:
        conflict(options)


def _scenario_or_control_file(options: OptionFields) -> None:
    """Refuse neither of both, and what goes with a control file alone."""
    for value in dict(options).values():
        require_utf_8(str(value))
    if options.control is not None:
        _fit_control_file(options)
    elif options.proceed or options.device:
        raise InputError(f"{option('proceed' if options.proceed else 'device')} goes with --control")
    elif not options.name:
        raise InputError("name a scenario, or a control file with --control", hint="agelab run --help")


def _fit_control_file(options: OptionFields) -> None:
    """Refuse what a control file decides itself, or has no place for."""
    if options.log:
        raise InputError("--log stands in the place of a scenario's histories: leave --control or --log out")
    if options.name:
        raise InputError(f"--control stands in a scenario's place: leave {options.name} out")
    said = {"filesystem": options.filesystem, "options": options.options, "seeds": options.seeds != (1,)}
    if decided := [field for field, given in said.items() if given]:
        raise InputError(f"a control file says itself which {decided[0]} there are: leave --{decided[0]} out")
    if kept := options.given("disk", "keep_disk", "curve"):
        raise InputError(
            f"the disks of a control file's tests are neither kept nor forked: leave {kept[0]} out"
        )


def _seeds_of_design(options: OptionFields) -> None:
    """Refuse seeds that do not go in pairs."""
    if options.design == "paired" and len(options.corpora) != len(options.seeds):
        raise InputError(
            f"--design paired: {len(options.seeds)} run seeds and {len(options.corpora)} corpora do not go in pairs",
            hint="name as many of each, or leave --design out: then every run seed goes with every corpus",
        )


def _seeds_until_decided(options: OptionFields) -> None:
    """Refuse a question where no seeds are added for it, and seeds that cannot be."""
    if not options.until_decided and (given := options.given("ask", "budget")):
        raise InputError(f"{given[0]} goes with --seeds auto")
    why = {
        "--control": options.control,
        "--design paired": options.design == "paired",
        "agelab age": not options.measure,
    }
    if options.until_decided and (not_with := [name for name, value in why.items() if value]):
        raise InputError(f"--seeds auto does not go with {not_with[0]}")


def _one_corpus(options: OptionFields) -> None:
    """Refuse several corpora where they mean nothing."""
    same = {
        "log": "the operations of --log are",
        "control": "the data of a control file are",
        "disk": "what lies on the stored disk is",
    }
    if len(options.corpora) > 1 and (given := [field for field in same if getattr(options, field)]):
        raise InputError(
            f"--corpora {','.join(map(str, options.corpora))}: {same[given[0]]} the same with each: name one"
        )


def _clock_of_disks(options: OptionFields) -> None:
    """Refuse the virtual clock of a real disk."""
    if options.clock == "virtual" and options.real_disks:
        real = options.real_disks[0]
        raise InputError(
            f"--clock virtual: {real.kind}:{real.name} has a time of its own",
            hint="real disks take --clock wall, which is their default; modelled ones take either",
        )


def _band_of_clock(options: OptionFields) -> None:
    """Refuse another cost of an instruction where no instruction has one."""
    if options.machine_band and options.guest_clock == "wall":
        raise InputError(
            f"--machine-band {options.machine_band}: in the wall clock an instruction takes what it takes this host"
        )


def _processors_of_clock(options: OptionFields) -> None:
    """Refuse more processors than the clock has."""
    if not 1 <= options.vcpus <= (1 if options.guest_clock == "virtual" else MAX_VCPUS):
        raise InputError(
            f"--vcpus {options.vcpus}: the virtual clock has one processor, the wall clock 1 to {MAX_VCPUS}"
        )


def _real_disk_as_it_is(options: OptionFields) -> None:
    """Refuse to share, keep or fork a real disk, and to cut its power."""
    if not options.real_disks:
        return
    real = options.real_disks[0]
    if options.jobs not in (1, AUTO):
        raise InputError(f"--jobs {options.jobs}: a real disk serves one cell at a time")
    if options.power_cut:
        raise InputError(
            f"{options.power_cut}: {real} is a real disk: only a modelled one, or bare memory, can lose its power here"
        )
    if copied := options.given("disk", "keep_disk", "curve"):
        said = f"{copied[0]}: " if options.measure else ""  # agelab age has no --keep-disk: it always keeps
        raise InputError(f"{said}{real} is a real disk, which can be neither kept nor forked")


def _something_to_check(options: OptionFields) -> None:
    """Refuse to check found cells where none is looked for."""
    if options.check is None:
        return
    if options.guest_clock == "wall":
        raise InputError(f"--check {options.check:g}: in the wall clock the same thing run twice differs")
    if running := options.given("fresh", "keep_disk", "timing"):
        raise InputError(
            f"--check {options.check:g}: with {running[0]} every cell runs: leave one of them out"
        )


def _blocks_of_modelled_drives(options: OptionFields) -> None:
    """Refuse to record where no drive is modelled."""
    if options.blocks and options.guest_clock == "wall":
        raise InputError(
            "--blocks: it records what modelled drives are sent, and in the wall clock there are none",
            hint="leave --blocks out; a real disk's requests: blktrace",
        )


def _profile_of_clock(options: OptionFields) -> None:
    """Refuse a profile where the same samples could not be taken twice."""
    if options.profile and options.guest_clock == "wall":
        raise InputError(
            "--profile: samples are taken by the virtual clock, and in the wall clock none of them would repeat",
            hint="leave --profile out, or --clock wall and the real disks",
        )


def _one_use_of_disk(options: OptionFields) -> None:
    """Refuse two uses of a disk: it is looked at after a power cut, kept, or started from."""
    if options.fail and (other := options.given("crash_at", "disk", "keep_disk", "curve", "control")):
        raise InputError(
            f"{options.failure}: the disk is made, loses a drive and is rebuilt: leave {other[0]} out"
        )
    if options.power_cut and (other := options.given("disk", "keep_disk", "curve")):
        raise InputError(
            f"{options.power_cut}: the disk is made, loses its power and is looked at: leave {other[0]} out"
        )
    if options.disk is not None and (other := options.given("keep_disk", "curve")):
        raise InputError(f"--disk starts from a disk that is made already: {other[0]} has nothing to do")


CONFLICTS = (
    _scenario_or_control_file,
    _seeds_of_design,
    _seeds_until_decided,
    _one_corpus,
    _clock_of_disks,
    _band_of_clock,
    _processors_of_clock,
    _real_disk_as_it_is,
    _something_to_check,
    _blocks_of_modelled_drives,
    _profile_of_clock,
    _one_use_of_disk,
)
"""Each raises InputError; the first that does is told."""
