"""The modelled drive: its geometry, and the kernel module that is one."""
