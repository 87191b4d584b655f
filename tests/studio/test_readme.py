"""What README says of the configuration is all there is."""

import re

from studio.env import CHECKOUT, VARIABLES


def test_the_configuration_table_names_every_variable_with_its_meaning() -> None:
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| .*? \| (.*) \|$", text, re.MULTILINE))

    assert rows == {variable.name: variable.meaning for variable in VARIABLES}
