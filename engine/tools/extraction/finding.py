"""Where a parameter class is, or what stands in its place."""

from dataclasses import dataclass

from engine.tools.extraction.result import Problem
from engine.tools.extraction.scopes import Binding, Scope
from engine.tools.extraction.unreadable import UnreadableError
from engine.tools.extraction.values import Evaluator, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The class to read; `found` says whether it is where it should be."""

    binding: Binding | None
    found: bool
    problems: tuple[Problem, ...] = ()


def find(evaluator: Evaluator, module: Scope, name: str) -> Target:
    """The class of that name, or what can be taken for it."""
    bounds = module.bindings.get(name, [])
    classes = [bound for bound in bounds if bound.class_body is not None]
    if not bounds:
        return _elsewhere(module, name)
    if not classes:
        return _instead(evaluator, module, bounds[-1])
    last, found = bounds[-1], classes[-1]
    line = found.class_def.lineno if found.class_def is not None else 0
    if last is not found and (
        last.expression is not None or last.imported is not None or last.function is not None
    ):
        message = (
            f"the class {name!r} is replaced by something else further down; leave it as it is"
        )
        return Target(
            binding=found,
            found=True,
            problems=(Problem(code="not_a_class", message=message, line=line),),
        )
    if not (last.certain and found.certain):
        message = f"whether this is the class {name!r} depends on what happens when the tool starts; define it once"
        return Target(
            binding=found,
            found=True,
            problems=(Problem(code="conditional", message=message, line=line),),
        )
    return Target(binding=found, found=True)


def _instead(evaluator: Evaluator, module: Scope, bound: Binding) -> Target:
    """Something else has the name."""
    what, line, binding = "something that only running the tool would tell", 0, None
    if bound.imported is not None:
        what = f"imported from {bound.imported[0]!r}"
    elif bound.function is not None:
        what, line = "a function", bound.function.lineno
    elif bound.expression is not None:
        what, line = "an assignment", bound.expression.lineno
        binding = _named(evaluator, module, bound)
    message = f"{bound.name!r} is {what}; write it out in tool.py as: class {bound.name}(BaseModel)"
    problem = Problem(code="not_a_class", message=message, line=line)
    return Target(binding=binding, found=False, problems=(problem,))


def _named(evaluator: Evaluator, module: Scope, bound: Binding) -> Binding | None:
    """The class of the file that a name was assigned."""
    if bound.expression is None:
        return None
    try:
        made = evaluator.value(bound.expression, Place(scope=module, order=bound.order))
        body = evaluator.classes.body_of(made)
    except UnreadableError:
        return None
    everything = [other for bounds in module.bindings.values() for other in bounds]
    return next(
        (other for other in everything if body is not None and other.class_body is body), None
    )


def _elsewhere(module: Scope, name: str) -> Target:
    for bounds in module.bindings.values():
        for outer in bounds:
            inner = outer.class_body.last(name) if outer.class_body is not None else None
            if inner is not None and inner.class_body is not None:
                message = (
                    f"the class {name!r} is inside the class {outer.name!r}, as in the old style of tools; "
                    "move it to the top level of tool.py"
                )
                line = inner.class_def.lineno if inner.class_def is not None else 0
                return Target(
                    binding=inner,
                    found=False,
                    problems=(Problem(code="old_style", message=message, line=line),),
                )
    message = (
        f"there is no class {name!r} at the top level of tool.py; write: class {name}(BaseModel)"
    )
    return Target(binding=None, found=False, problems=(Problem(code="absent", message=message),))
