"""The rules of the package that import-linter's layers do not see: unique class names, and no circles of imports."""

import ast
from collections import Counter
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parents[2] / "agelab"


def test_a_class_name_is_given_once() -> None:
    names = Counter(
        node.name
        for file in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 100 and [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize("for_types_too", [False, True])
def test_no_module_imports_itself_by_way_of_others(for_types_too: bool) -> None:
    """Imports within functions count; those under TYPE_CHECKING too, in a graph of their own."""
    graph = grimp.build_graph("agelab", cache_dir=None, exclude_type_checking_imports=not for_types_too)
    assert len(graph.modules) > 100
    above, below = graph.find_downstream_modules, graph.find_upstream_modules
    assert [name for name in sorted(graph.modules) if above(name) & below(name)] == []
