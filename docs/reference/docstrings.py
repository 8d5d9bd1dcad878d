"""What the reference makes of docstrings: the first `>>>` begins a section of examples, which numpydoc wants named."""

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Names the section of examples in docstrings, and shows ‹parameter› marks as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = re.sub(r"(?:^|\n)\n*(?=>>> )", "\n\nExamples\n--------\n", obj.docstring.value, count=1)
            obj.docstring.value = text.lstrip("\n")
