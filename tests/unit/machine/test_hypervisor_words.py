"""The words of a QEMU command as libvirt writes it."""

import shlex

import pytest

from agelab.machine.vm import hypervisor


@pytest.mark.parametrize(
    "command",
    [
        "LC_ALL=C /usr/bin/qemu -name guest=a,debug-threads=on -S",
        """/usr/bin/qemu -object '{"qom-type":"secret","id":"a b"}' -append 'a b'c  -x ''""",
        "/usr/bin/qemu -append 'it'\\''s' \"b c\" d\\ e",
        "/usr/bin/qemu -append 'first\nsecond'",
    ],
)
def test_they_are_those_of_a_shell(command: str) -> None:
    assert hypervisor._words(command) == shlex.split(command)
