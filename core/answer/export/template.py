"""Files that are filled in from the templates beside this module.

Every value is made fit for its place by the function that is given, unless the template calls it `safe`: only what this
project wrote itself, or has made fit already, may be called so. Jinja is imported with the first file.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATE_FOLDER = Path(__file__).with_name("templates")


def fill_template(name: str, fit: Callable[[Any], str], **values: Any) -> str:
    """The template of this name with its values, each as `fit`, a function of `core.text`, makes it."""
    return _environment(fit).get_template(name).render(values)


@functools.cache
def _environment(fit: Callable[[Any], str]) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    return Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,  # what macros and `safe` return is marked, and all else goes through `finalize` first
        finalize=lambda value: value if isinstance(value, Markup) else Markup(fit(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
