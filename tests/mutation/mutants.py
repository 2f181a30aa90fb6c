"""The mutants of a module: one place changed in each. Which there are follows from the text of the module alone."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
}  # fmt: skip
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A change in one place of a module.

    Attributes:
        line: of the place.
        change: for people.
        node: number of the place among all nodes of the module.
        which: number of the change among those of the place.
    """

    line: int
    change: str
    node: int
    which: int

    def applied(self, source: str) -> str:
        """The text of the module with the change."""
        tree = ast.parse(source)
        old = list(ast.walk(tree))[self.node]
        new = list(_changes(old))[self.which]
        for parent in ast.walk(tree):
            for name, value in ast.iter_fields(parent):
                if value is old:
                    setattr(parent, name, new)
                elif isinstance(value, list) and any(each is old for each in value):
                    setattr(parent, name, [new if each is old else each for each in value])
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(source)
    wanted = {id(node) for node in _mutable(tree)}
    found = [
        Mutant(line=getattr(node, "lineno", 0), change=f"{_said(node)} → {_said(new)}", node=place, which=which)
        for place, node in enumerate(ast.walk(tree))
        if id(node) in wanted
        for which, new in enumerate(_changes(node))
    ]
    return sorted(found, key=lambda mutant: mutant.line)


def _mutable(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it that do something: no annotation, decorator, docstring, type or assertion."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _inert(child):
                yield from _mutable(child)


def _inert(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id in ("Literal", "Callable")
    if isinstance(node, ast.keyword):
        return node.arg == "strict"  # of zip: an assertion
    return isinstance(node, ast.Assert | ast.Import | ast.ImportFrom)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare():
            for at, operator in enumerate(node.ops):
                others = OPERATORS[type(operator)]
                yield from (_replaced(node, ops=[*node.ops[:at], new(), *node.ops[at + 1 :]]) for new in others)
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign():
            yield from (_replaced(node, op=other()) for other in OPERATORS.get(type(node.op), ()))
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant():
            yield from (_replaced(node, value=other) for other in _others(node.value))
        case ast.If() | ast.IfExp():
            yield _replaced(node, test=ast.UnaryOp(op=ast.Not(), operand=node.test))
        case ast.Return(value=ast.AST()) if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield ast.copy_location(ast.Return(value=ast.Constant(value=None)), node)
        case ast.Expr(value=ast.Call()):
            yield ast.copy_location(ast.Pass(), node)
        case ast.Call(func=ast.Name() | ast.Attribute()):
            yield from _other_calls(node, node.func)


def _other_calls(node: ast.Call, function: ast.Name | ast.Attribute) -> Iterator[ast.AST]:
    name = function.id if isinstance(function, ast.Name) else function.attr
    if name in FUNCTIONS:
        changed = {"id" if isinstance(function, ast.Name) else "attr": FUNCTIONS[name]}
        yield _replaced(node, func=_replaced(function, **changed))


def _others(value: object) -> Sequence[object]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, (int, float)):
        return (value + 1,) if isinstance(value, int) else (value * 1.5 or 0.5,)
    return (f"{value}_",) if isinstance(value, str) and value.isidentifier() else ()


def _replaced(node: ast.AST, **fields: object) -> ast.AST:
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **fields}), node)


def _said(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split("\n")[0].split())[:90]
