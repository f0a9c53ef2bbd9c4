"""The report: one self-contained page of runs, made to be read and cited. See docs/report.md."""
