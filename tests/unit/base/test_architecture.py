"""The rules of the package that import-linter's layers do not see: class names, no loose module, no circles."""

import ast
from collections import Counter
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parents[3] / "agelab"


def test_a_class_name_is_given_once_in_its_package() -> None:
    names = Counter(
        (file.parent, node.name)
        for file in sorted(PACKAGE.rglob("*.py"))
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 100 and [name for name, times in names.items() if times > 1] == []


def test_every_module_is_in_a_package() -> None:
    assert [file.name for file in PACKAGE.glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize("for_types_too", [False, True])
def test_no_module_imports_itself_by_way_of_others(for_types_too: bool) -> None:
    """Imports within functions count; those under TYPE_CHECKING too, in a graph of their own."""
    graph = grimp.build_graph("agelab", cache_dir=None, exclude_type_checking_imports=not for_types_too)
    assert len(graph.modules) > 100
    above, below = graph.find_downstream_modules, graph.find_upstream_modules
    assert [name for name in sorted(graph.modules) if above(name) & below(name)] == []
