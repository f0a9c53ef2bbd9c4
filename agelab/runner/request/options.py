"""The options of a run, checked as far as that goes without the scenario, and as the words that ask for them.

``agelab.runner.request.resolve`` reads the scenario and checks the rest.
"""

from collections.abc import Mapping
from typing import Any, Self, get_args

from pydantic import ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails

from agelab.base.errors import InputError, unknown
from agelab.machine.disk import parse_list
from agelab.results.result import RunPlan
from agelab.runner.request import option_conflicts, option_values
from agelab.runner.request.option_fields import ASIDE, OptionFields, option
from agelab.scenario.jobs import AUTO

IN_MORE = (
    "disk",
    "keep_disk",
    "curve",
    "timing",
    "blocks",
    "profile",
    "fresh",
    "check",
    "measure",
    "prove_all",
    "ask",
    "budget",
)
"""Options that a plan keeps under ``more``; the others are its ``words``."""


class RunOptions(OptionFields):
    """The options of a run, under the names that they have on the command line.

    Lists are taken as on the command line, too: ``seeds="1,2"``, ``disks="model:none"``. Every error is an InputError.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _one_kind_of_error(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, dict) and data.get("seeds") == AUTO:
            data = {**data, "seeds": tuple(range(1, option_values.LOOKS[0] + 1)), "until_decided": True}
        try:
            return handler(data)
        except ValidationError as error:
            raise _input_error(error) from error

    def changed(self, **fields: Any) -> Self:
        """Return the options with other values of these fields, checked again."""
        return type(self)(**{**dict(self), **fields})

    def of_seeds(self, seeds: tuple[int, ...], corpora: tuple[int, ...]) -> Self:
        """Return the options of these seeds, crossed, and of no more."""
        alone = {"design": "crossed", "until_decided": False, "ask": None, "budget": None}
        return self.changed(seeds=seeds, corpora=corpora, **alone)

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        option_conflicts.check(self)
        return self

    def to_plan(self) -> dict[str, Any]:
        """Return the options as plan.json keeps them under ``command``."""
        said = {field: _word(getattr(self, field)) for field in type(self).model_fields if field not in ASIDE}
        said |= {"disks": ",".join(map(str, self.disks)) or None, "erase": ",".join(self.erase)}
        return {
            "directory": self.directory,
            "name": self.name or self.control,
            "words": {field: value for field, value in said.items() if field not in IN_MORE},
            "more": {field: value for field, value in said.items() if field in IN_MORE},
        }

    def require_asked(self) -> None:
        """Raise InputError for options of a plan that name what is written to: only a command line may."""
        if self.of_plan and (written := [*map(str, self.real_disks), *filter(None, [self.control])]):
            raise InputError(
                f"the plan names {written[0]}, which would be written to: only a command line may name it",
                hint="begin a run of your own",
            )

    def asked_again(self, disks: str | None, erase: str, command: str) -> Self:
        """Return options of a plan whose real disks the command line names, too, with what it says may be erased.

        Raises InputError, with ``command``, where it names none or others.
        """
        given = parse_list(disks) if disks else ()
        if given and not self.real_disks:
            raise InputError(f"--disks {disks}: the plan has no real disks: leave it out")
        if given != self.disks and self.real_disks:
            raise InputError(
                f"the plan writes to {','.join(map(str, self.disks))}: what is written to must be named on the "
                "command line" + (f", and --disks {disks} is another" if given else ""),
                hint=f"if all that it holds may be lost: {command}",
            )
        return self.changed(erase=erase, of_plan=bool(self.control))

    def named_again(self) -> list[str]:
        """Return the arguments that name real disks once more, and what may be erased."""
        disks = ["--disks", ",".join(map(str, self.disks))] if self.real_disks else []
        return [*disks, *(["--erase", ",".join(self.erase)] if self.erase else [])]

    @classmethod
    def from_plan(cls, plan: RunPlan) -> Self:
        """Return the options of a run of this agelab or an older one; options younger than the run have their defaults.

        Raises InputError where the plan does not say them, or says what this agelab does not know.
        """
        if not plan.repeatable:
            raise InputError(f"{plan.run} does not say what was asked for", hint="begin a new run")
        said = (plan.command[name] for name in ("directory", "name", "words", "more"))
        return cls.from_words(*said).changed(of_plan=True)

    @classmethod
    def from_words(
        cls, directory: str, name: str | None, words: Mapping[str, Any], more: Mapping[str, Any]
    ) -> Self:
        """Return the options that ``to_plan`` gave. Raises InputError as ``from_plan`` does."""
        said = {**words, **more}
        if (seed := said.pop("corpus_seed", None)) is not None:  # of a plan with one alone
            said["corpora"] = str(seed)
        known = {field for field in cls.model_fields if field not in ASIDE}
        if strange := [field for field, value in said.items() if field not in known and value]:
            raise InputError(
                f"the run was asked for with {option(strange[0])}, which this agelab does not know"
            )
        fields = {field: value for field, value in said.items() if field in known}
        return cls(directory=directory, name=None if said.get("control") else name, **fields)

    def set_options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as ``to_plan`` has them."""
        mine, plain = ({**said["words"], **said["more"]} for said in (self.to_plan(), _PLAIN.to_plan()))
        if mine.pop("until_decided"):
            mine["seeds"] = AUTO
        return {field: value for field, value in mine.items() if value != plain[field]}

    def arguments(self) -> list[str]:
        """Return the arguments of ``agelab run`` (``agelab age`` where nothing is measured) that ask for the same."""
        implied = ("measure", "prove_all", *(() if self.measure else ("keep_disk",)))
        said = {field: value for field, value in self.set_options().items() if field not in implied}
        words = (
            [option(field)] if value is True else [option(field), str(value)] for field, value in said.items()
        )
        return [*([self.name] if self.name else []), *(part for one in words for part in one)]


_PLAIN = RunOptions(name="any", directory="/")


def _word(value: Any) -> Any:
    """Return a field's value as a word of the command line."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _input_error(error: ValidationError) -> InputError:
    """Return the errors of all fields as one, a line for each."""
    found = [_field_error(item) for item in error.errors(include_url=False)]
    return InputError("\n".join(map(str, found)), hint=found[0].hint if len(found) == 1 else "")


def _field_error(item: ErrorDetails) -> InputError:
    field, value = str(item["loc"][0]), item["input"]
    if item["type"] == "extra_forbidden":
        return unknown("option of a run", field, list(RunOptions.model_fields))
    if item["type"] == "literal_error":
        choices, _ = get_args(RunOptions.model_fields[field].annotation)
        return unknown(option(field), str(value), get_args(choices))
    cause = item.get("ctx", {}).get("error")
    if isinstance(cause, ValueError) and isinstance(cause.args[0], InputError):
        return cause.args[0]
    why = str(cause) if cause else item["msg"][:1].lower() + item["msg"][1:]
    return InputError(f"{option(field)} {value!r}: {why}")
