"""The cells of a page's tables."""

from agelab.present.report.blocks import Table, TableCell


def cells(table: Table) -> list[list[TableCell]]:
    return [[cell if isinstance(cell, TableCell) else TableCell(cell) for cell in row] for row in table.rows]
