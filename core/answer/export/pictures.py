"""A finished chart as a file: PNG, SVG, or a page that draws itself without a network.

vl-convert brings an engine for JavaScript, which holds every other thread back for seconds, keeps its memory, and ends
its process at a letter that XML does not have; so it runs in a process of its own, which ends with the chart. Charts
are drawn as `core.answer.charts` made them, which have no picture or address in them; a specification by another hand
must not be given here: its addresses would be fetched.
"""

import functools
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any, Literal

from ...errors import CrossoverError
from ...files.project import PROJECT
from ...text import as_label, as_lines, to_html
from .template import fill_template

Picture = Literal["png", "svg"]
Spec = dict[str, Any]

PICTURE_WIDTH = 760
"""Pixels of a picture whose chart takes the width of its page."""

SCALE = 2
"""Pixels of a PNG for each of the chart's, sharp on paper and on dense screens."""

DRAWING_TIMEOUT_S = 60
"""How long drawing may take; a second or two on an idle machine."""

MAX_DRAWING_PROCESSES = 2
"""Processes that draw at one time; whoever comes third waits, so that a class that hands in leaves the host a core."""

_drawing_slots = threading.BoundedSemaphore(MAX_DRAWING_PROCESSES)

NO_NETWORK: list[str] = []
"""Addresses that drawing may read from: none."""


def draw_picture(spec: Spec, kind: Picture) -> bytes:
    """A chart as the bytes of a picture on white; raises CrossoverError where it cannot be drawn."""
    return _convert_chart(kind, _on_white(spec, PICTURE_WIDTH))


def draw_svgs(specs: Sequence[Spec], width: int = PICTURE_WIDTH) -> list[str]:
    """Several charts as SVG on white, by one process, `width` pixels if page-wide; raises as `draw_picture`."""
    if not specs:
        return []
    found: list[str] = json.loads(_convert_chart("drawings", [_on_white(spec, width) for spec in specs]))
    return found


def chart_page(spec: Spec, title: str) -> bytes:
    """A chart with its tooltips as a page of HTML that needs nothing else; raises as `draw_picture` does.

    The title stands above a chart that has none of its own.
    """
    embedded = json.dumps(clean_spec({**spec, "background": "white"}))
    embedded = embedded.replace("<", "\\u003c")  # no text of a row ends the script
    return fill_template(
        "chart.html.j2", to_html, title=as_label(title), headed="title" in spec, library=_library(), spec=embedded
    ).encode()


def _on_white(spec: Spec, usual: int) -> Spec:
    width = spec.get("width", usual)
    return {**spec, "width": usual if width == "container" else width, "background": "white"}


def clean_spec(value: Any) -> Any:
    """A specification without letters that cannot be seen; what XML or JavaScript does not have would end it."""
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
    """Vega with what it needs, 0.9 MB of JavaScript that is the same for every chart."""
    return _convert_chart("library", {}).decode()


def _convert_chart(kind: str, what: Spec | Sequence[Spec]) -> bytes:
    command = [sys.executable, "-m", f"{__package__}.pictures", kind]
    try:
        with _drawing_slots:
            done = subprocess.run(
                command,
                input=json.dumps(clean_spec(what)).encode(),
                capture_output=True,
                cwd=PROJECT,
                timeout=DRAWING_TIMEOUT_S,
                check=True,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise CrossoverError("This chart cannot be drawn as a file; its menu offers a picture too.") from error
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
    """Version of Vega-Lite that a chart was made for: `6.4`."""
    return ".".join(spec.get("$schema", "v6.4").rpartition("/v")[2].split(".")[:2])


if __name__ == "__main__":
    _main(sys.argv[1], sys.stdin.read())
