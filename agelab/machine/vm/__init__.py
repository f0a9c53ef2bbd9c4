"""Guests: domain XML, virtual and wall clock, the libvirt daemon, and running a domain."""
