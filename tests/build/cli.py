"""The command as a user starts it."""

import json
import sys
from typing import Any

import pytest

from agelab.cli import main

AGELAB = [sys.executable, "-c", "import sys; from agelab.cli import main; sys.exit(main())"]


class Cli:
    """The command in this process: what it prints, once it has ended with the code that it should."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def ended(self, *words: object) -> tuple[int, str, str]:
        """Return the code with which it ended, and what it printed."""
        self._capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err, err
        return code, out, err

    def run(self, *words: object, code: int = 0) -> tuple[str, str]:
        ended, out, err = self.ended(*words)
        assert ended == code, f"{ended}: {out}{err}"
        return out, err

    def out(self, *words: object, code: int = 0) -> str:
        return self.run(*words, code=code)[0]

    def err(self, *words: object, code: int = 2) -> str:
        return self.run(*words, code=code)[1]

    def json(self, *words: object, code: int = 0) -> Any:
        return json.loads(self.out(*words, code=code))
