"""What a guest said, made into samples, maps and a status: all that decides a result behind the guest's own work.

Its code is a part of what a cell stands for (``agelab/runner/plan/cell_inputs.py``), with all that it imports. So it
imports little: types, and how files are read.
"""
