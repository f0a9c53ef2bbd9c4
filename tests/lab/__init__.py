"""A machine in a machine: tests that run in a guest with KVM, an IOMMU and real kernel devices, all emulated.

The outer machine is the store's own QEMU without KVM. Its processor emulates AMD's virtualisation, so what runs in it
may boot guests of its own under KVM; its chipset has an IOMMU, so disks can be passed through to them. Nothing of the
host is touched but files.

A test module of this folder says which devices its machine has; its tests are functions that run inside.
"""
