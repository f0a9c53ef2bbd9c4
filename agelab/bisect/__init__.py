"""Which kernel changed a result: a search through packaged kernels, or through a git tree by git bisect."""
