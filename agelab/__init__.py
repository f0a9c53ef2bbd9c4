"""agelab: a reproducibility sandbox for filesystem benchmarks."""
