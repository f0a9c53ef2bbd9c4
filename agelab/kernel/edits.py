"""Edits of a kernel's source that a recipe makes where a patch would need the lines around it to be the same."""

from pydantic import Field

from agelab.errors import InputError
from agelab.model.base import Frozen


class TreeEdit(Frozen):
    """One replacement in a file of the tree."""

    path: str = Field(min_length=1, description="file of the tree")
    find: str = Field(min_length=1, description="text that is in the file once")
    to: str = Field("", description="what is replaced reaches to before this text, the first behind find")
    put: str = Field("", description="text in its place; none removes it")

    def apply(self, text: str) -> str:
        """Return the file's text with this replacement. Raises InputError where the place is not found once."""
        if (times := text.count(self.find)) != 1:
            raise InputError(f"{self.path} has {self.find.strip()[:60]!r} {times} times, not once")
        start = text.index(self.find)
        end = start + len(self.find)
        if self.to:
            end = text.find(self.to, end)
            if end < 0:
                raise InputError(
                    f"{self.path} has no {self.to.strip()[:60]!r} behind {self.find.strip()[:60]!r}"
                )
        return text[:start] + self.put + text[end:]
