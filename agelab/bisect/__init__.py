"""Find the kernel that changed a result: among packaged kernels, or in a git tree with git bisect."""
