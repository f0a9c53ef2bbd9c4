"""Cells on other hosts: a plan that every host carries out alike, a worker for one of its cells, and Dask."""
