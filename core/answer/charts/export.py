"""A finished chart as a file: PNG, SVG, or a page that draws itself without a network.

vl-convert brings an engine for JavaScript, which holds every other thread back for seconds and keeps its memory; so it
runs in a process of its own, which ends with the chart. Charts are drawn as `core.answer.charts` made them, which have
no picture or address in them; a specification by another hand must not be given here: its addresses would be fetched.
"""

import functools
import html
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

from core.errors import CrossoverError

Picture = Literal["png", "svg"]
Spec = dict[str, Any]

WIDTH = 760
"""Pixels of a picture whose chart takes the width of its page."""

SCALE = 2
"""Pixels of a PNG for each of the chart's, sharp on paper and on dense screens."""

SECONDS = 60
"""How long drawing may take; a second or two on an idle machine."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"
)
"""The page may run what is in it, and reach nothing else, whatever text a row has put into the chart."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ font-family: sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
#chart {{ width: 100% }}</style>
<script>{library}</script>
</head>
<body>
<h1 style="font-size: 1.25rem">{title}</h1>
<div id="chart"></div>
<script id="spec" type="application/json">{spec}</script>
<script>
const spec = JSON.parse(document.getElementById("spec").textContent);
vegaEmbed("#chart", spec, {{ mode: "vega-lite", actions: {{ editor: false }} }});
</script>
</body>
</html>
"""


def picture(spec: Spec, kind: Picture) -> bytes:
    """A chart as the bytes of a picture on white.

    Raises:
        CrossoverError: it cannot be drawn.
    """
    return _converted(kind, {**spec, "width": _width(spec), "background": "white"})


def page(spec: Spec, title: str) -> bytes:
    """A chart with its tooltips as a page of HTML that needs nothing else.

    Raises:
        CrossoverError: the library that draws it cannot be put together.
    """
    embedded = json.dumps({**spec, "background": "white"}).replace("<", "\\u003c")  # no text of a row ends the script
    written = _PAGE.format(
        policy=CONTENT_POLICY, title=html.escape(title), library=_library(), spec=embedded.replace("\u2028", "\\u2028")
    )
    return written.encode()


def _width(spec: Spec) -> Any:
    width = spec.get("width", WIDTH)
    return WIDTH if width == "container" else width


@functools.cache
def _library() -> str:
    """Vega with what it needs, 0.9 MB of JavaScript that is the same for every chart."""
    return _converted("library", {}).decode()


def _converted(kind: str, spec: Spec) -> bytes:
    command = [sys.executable, "-m", "core.answer.charts.export", kind]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(spec).encode(),
            capture_output=True,
            cwd=Path(__file__).parents[3],
            timeout=SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CrossoverError("This chart cannot be drawn as a file; its menu offers a picture too.") from error
    return done.stdout


def _main(kind: str, spec: str) -> None:
    import vl_convert

    version = ".".join(json.loads(spec).get("$schema", "v6.4").rpartition("/v")[2].split(".")[:2])
    match kind:
        case "png":
            data = vl_convert.vegalite_to_png(spec, scale=SCALE, vl_version=version)
        case "svg":
            data = vl_convert.vegalite_to_svg(spec, vl_version=version).encode()
        case _:
            data = vl_convert.javascript_bundle(snippet="window.vegaEmbed = vegaEmbed;").encode()
    sys.stdout.buffer.write(data)


if __name__ == "__main__":
    _main(sys.argv[1], sys.stdin.read())
