"""Inside the laboratory: give orders to the QEMU that is the machine (docs/interop/qmp-spec of QEMU)."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

LINE = Path("/dev/ttyS1")


def order(name: str, **arguments: str) -> Any:
    """Execute a command of QMP and return what it returns. Raises AssertionError where QEMU refuses."""
    subprocess.run(["stty", "-F", LINE, "raw", "-echo"], check=True)
    with LINE.open("r+b", buffering=0) as line:
        # QEMU forgets what the line may have echoed to it at a byte that no JSON has.
        line.write(b"\xff\n")
        for command in ({"execute": "qmp_capabilities"}, {"execute": name, "arguments": arguments}):
            line.write(json.dumps({**command, "id": name}).encode() + b"\n")
            answer = _answer(line, name)
        assert "return" in answer, answer
        return answer["return"]


def _answer(line: Any, wanted: str) -> dict[str, Any]:
    """Return the next answer to a command; greetings, events, complaints and the ends of lines go before it."""
    while True:
        with suppress(ValueError):
            said: dict[str, Any] = json.loads(line.readline())
            if said.get("id") == wanted:
                return said
