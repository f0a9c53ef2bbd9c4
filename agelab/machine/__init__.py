"""The machine that a guest sees: QEMU, the guest image, domains, the virtual clock, modelled and real drives."""
