"""Fill in the templates in the folder of this module, and convert charts to files.

A function from `core.text` escapes every value, unless the template marks the value as `safe`. Only text that is part
of this project, or is escaped already, may be marked so. Jinja is imported for the first file.

A chart becomes a PNG, an SVG, or a page that shows the chart without network access.

vl-convert contains a JavaScript engine. It blocks every other thread for seconds, does not release its memory, and ends
its process at a character that XML does not allow. So each conversion runs in a separate process. Charts come from
`core.answer.charts` and contain no picture or address. Never pass a specification from another source, because its
addresses would be fetched.
"""

import functools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import CrossoverError
from ...files.project import START_FOLDER
from ...text import as_label, as_lines, to_html

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATE_FOLDER = Path(__file__).with_name("templates")


def fill_template(name: str, fit: Callable[[Any], str], **values: Any) -> str:
    """Return the template of this name with its values, each converted by `fit`, a function of `core.text`."""
    return _environment(fit).get_template(name).render(values)


@functools.cache
def _environment(fit: Callable[[Any], str]) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    return Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,  # results of macros and `safe` are marked; other values pass through `finalize`
        finalize=lambda value: value if isinstance(value, Markup) else Markup(fit(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


Picture = Literal["png", "svg"]
Spec = dict[str, Any]

PICTURE_WIDTH = 760
"""Width in pixels of a picture whose chart has the width of its page."""

SCALE = 2
"""Pixels of a PNG per pixel of the chart, for sharp pictures on paper and on dense screens."""

DRAWING_TIMEOUT_S = 60
"""Time limit of a conversion; on an idle machine it takes a second or two."""

MAX_DRAWING_PROCESSES = 2
"""Maximum number of processes that convert charts at the same time, so that a class does not use all cores of
the host.
"""

_drawing_slots = threading.BoundedSemaphore(MAX_DRAWING_PROCESSES)

NO_NETWORK: list[str] = []
"""Addresses that a conversion may read from: none."""


def draw_picture(spec: Spec, kind: Picture) -> bytes:
    """Return a chart as the bytes of a picture on white; raises CrossoverError if the conversion fails."""
    return _convert_chart(kind, _on_white(spec, PICTURE_WIDTH))


def draw_svgs(specs: Sequence[Spec], width: int = PICTURE_WIDTH) -> list[str]:
    """Return charts as SVG on white from one process, `width` pixels if page-wide; raises as `draw_picture` does."""
    if not specs:
        return []
    found: list[str] = json.loads(_convert_chart("drawings", [_on_white(spec, width) for spec in specs]))
    return found


def chart_page(spec: Spec, title: str) -> bytes:
    """Return a chart with its tooltips as a self-contained HTML page; raises as `draw_picture` does.

    The title is shown above a chart without a title.
    """
    embedded = json.dumps(clean_spec({**spec, "background": "white"}))
    embedded = embedded.replace("<", "\\u003c")  # so that no text of a row ends the script
    return fill_template(
        "chart.html.j2", to_html, title=as_label(title), headed="title" in spec, library=_library(), spec=embedded
    ).encode()


def _on_white(spec: Spec, usual: int) -> Spec:
    width = spec.get("width", usual)
    return {**spec, "width": usual if width == "container" else width, "background": "white"}


def clean_spec(value: Any) -> Any:
    """Return a specification without invisible characters and characters that would end XML or JavaScript."""
    match value:
        case str():
            return as_lines(value, len(value)).replace("\t", " ")
        case dict():
            return {clean_spec(name): clean_spec(entry) for name, entry in value.items()}
        case list() | tuple():
            return [clean_spec(entry) for entry in value]
    return value


@functools.cache
def _library() -> str:
    """Return Vega with its dependencies: 0.9 MB of JavaScript that is the same for every chart."""
    return _convert_chart("library", {}).decode()


def _convert_chart(kind: str, what: Spec | Sequence[Spec]) -> bytes:
    command = [sys.executable, "-m", f"{__package__}.rendering", kind]
    try:
        with _drawing_slots:
            done = subprocess.run(
                command,
                input=json.dumps(clean_spec(what)).encode(),
                capture_output=True,
                cwd=START_FOLDER,
                timeout=DRAWING_TIMEOUT_S,
                check=True,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise CrossoverError("This chart cannot be saved as a file; its menu offers an image too.") from error
    return done.stdout


def _main(kind: str, text: str) -> None:
    import vl_convert

    given = json.loads(text)
    match kind:
        case "png":
            data = vl_convert.vegalite_to_png(given, scale=SCALE, vl_version=_version(given))
        case "svg":
            data = _svg(given).encode()
        case "drawings":
            data = json.dumps([_svg(spec) for spec in given]).encode()
        case _:
            data = vl_convert.javascript_bundle(snippet="window.vegaEmbed = vegaEmbed;").encode()
    sys.stdout.buffer.write(data)


def _svg(spec: Spec) -> str:
    import vl_convert

    found: str = vl_convert.vegalite_to_svg(spec, vl_version=_version(spec), allowed_base_urls=NO_NETWORK)
    return found


def _version(spec: Spec) -> str:
    """Return the version of Vega-Lite that a chart is written for, such as `6.4`."""
    return ".".join(spec.get("$schema", "v6.4").rpartition("/v")[2].split(".")[:2])


if __name__ == "__main__":
    _main(sys.argv[1], sys.stdin.read())
