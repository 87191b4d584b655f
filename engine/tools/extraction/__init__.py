"""The parameter classes of a tool, read from its source without importing or running it.

The file's statements are followed as the interpreter would follow them (`scopes`), its expressions are evaluated as far
as they are made of literals and of names from the standard library and pydantic that do nothing but name types
(`values`, `annotations`, `known`), and the classes of the file are made anew from what was read (`classes`). Then
pydantic itself says what their schema is (`fields`), so that it agrees with what the class will say in the tool's own
process. No object, name or function of the file ever gets to run.
"""

from engine.tools.extraction.reading import read_fields
from engine.tools.extraction.result import Extracted, Problem

__all__ = ["Extracted", "Problem", "read_fields"]
