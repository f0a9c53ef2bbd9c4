"""Hosts of a cluster on this one: network namespaces with a link each, and the certificates of their connections."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agelab.runner.cluster import scheduler


def _run(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


@dataclass(frozen=True)
class Authority:
    """A certificate authority below a directory."""

    directory: Path

    @classmethod
    def make(cls, directory: Path) -> "Authority":
        directory.mkdir()
        subject = ["-subj", f"/CN={directory.name}", "-days", "2", "-nodes", "-newkey", "ec"]
        curve = ["-pkeyopt", "ec_paramgen_curve:prime256v1"]
        _run(
            "openssl", "req", "-x509", *subject, *curve, "-keyout", directory / "ca.key", "-out",
            directory / "ca.crt",
        )  # fmt: skip
        return cls(directory)

    def issue(self, name: str) -> dict[str, str]:
        """Issue a certificate; return the variables that name it, its key and the authority."""
        key, asked, made = (self.directory / f"{name}.{ending}" for ending in ("key", "csr", "crt"))
        new = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={name}"]
        _run("openssl", "req", *new, "-keyout", key, "-out", asked)
        signed: list[str | Path] = [
            "-CA", self.directory / "ca.crt", "-CAkey", self.directory / "ca.key", "-CAcreateserial", "-days",
            "2",
        ]  # fmt: skip
        _run("openssl", "x509", "-req", "-in", asked, *signed, "-out", made)
        return {
            scheduler.CERTIFICATE: str(made),
            scheduler.KEY: str(key),
            scheduler.AUTHORITY: str(self.directory / "ca.crt"),
        }


@dataclass(frozen=True)
class NetworkHost:
    """A network namespace and the link that leads to it."""

    name: str
    link: str
    gateway: str
    """Address of this host on the link."""
    address: str

    @classmethod
    @contextmanager
    def added(cls, number: int) -> Iterator["NetworkHost"]:
        """Add a namespace with an address of its own, and remove it after the body."""
        own = f"agh{os.getpid() % 100_000}-{number}"
        network = f"10.{200 + os.getpid() % 50}.{number}"
        host = cls(own, f"{own}a", f"{network}.1", f"{network}.2")
        inside = ["ip", "-n", own]
        try:
            _run("ip", "netns", "add", own)
            _run("ip", "link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", own)
            _run("ip", "address", "add", f"{host.gateway}/24", "dev", host.link)
            _run("ip", "link", "set", host.link, "up")
            _run(*inside, "address", "add", f"{host.address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _run(*inside, "link", "set", device, "up")
            _run(*inside, "route", "add", "default", "via", host.gateway)
            yield host
        finally:
            subprocess.run(["ip", "link", "delete", host.link], capture_output=True)
            subprocess.run(["ip", "netns", "delete", own], capture_output=True)

    def command(self, *words: str) -> list[str]:
        """Return the command that runs a program on the host."""
        return ["ip", "netns", "exec", self.name, *words]

    def cut_off(self) -> None:
        """Take its network away: nothing that is sent comes back as refused."""
        _run("ip", "link", "set", self.link, "down")

    def slow_down(self, rate: str) -> None:
        """Let no more through than so much, in either direction."""
        shaped = ["root", "tbf", "rate", rate, "burst", "16kbit", "latency", "800ms"]
        _run("tc", "qdisc", "add", "dev", self.link, *shaped)
        _run("tc", "-n", self.name, "qdisc", "add", "dev", "eth0", *shaped)


def can_be_added() -> bool:
    """Return whether this host lets us add network namespaces, links and a queue that slows one down."""
    try:
        with NetworkHost.added(99) as host:
            host.slow_down("1mbit")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def tls_words(certificates: Mapping[str, str]) -> list[str]:
    """Return the options of Dask's own programs for these certificates."""
    named = (
        (scheduler.CERTIFICATE, "--tls-cert"),
        (scheduler.KEY, "--tls-key"),
        (scheduler.AUTHORITY, "--tls-ca-file"),
    )
    return [word for variable, option in named for word in (option, certificates[variable])]
