"""The report: one self-contained page of runs, to read and cite. See docs/report.md."""
