"""Tools that come with the studio; load them with `FunctionToolService.from_modules(MODULES)`."""

MODULES = ("engine.tools.builtin.calculator", "engine.tools.builtin.get_datetime")
