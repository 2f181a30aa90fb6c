"""What a test looks for on a page."""

import json

import pyarrow as pa

from core.question.experiment import Contender
from tests.ui.conftest import checked

CLASS_PAGE = "pages/classroom/class.py"
LESSONS_PAGE = "pages/lessons/lessons.py"


TIMES = {16: (1e-4, 4e-4), 64: (1.2e-4, 4e-4), 256: (3e-4, 4.2e-4), 1024: (1e-3, 5e-4), 2048: (4e-3, 8e-4)}
"""Hidden size → seconds a step of the CPU and of the GPU; they meet between 256 and 1,024."""

THREADS = tuple(map(Contender.parse, ("cpu@1", "cpu@4")))
"""What a run asks for on a machine without an accelerator."""


def button(app, label):
    return next(found for found in app.button if found.label == label)


def control(app, key):
    kinds = ("selectbox", "select_slider", "slider", "multiselect", "radio", "toggle", "number_input")
    return next(found for kind in kinds for found in getattr(app, kind) if found.key == key)


def drawn(app):
    return {found.key for kind in ("selectbox", "select_slider", "slider", "radio") for found in getattr(app, kind)}


def alts(app):
    return [chart.proto.alt for chart in app.get("vega_lite_chart")]


def chart_data(app, alt):
    """The rows of a chart, by column."""
    (chart,) = (chart.proto for chart in app.get("vega_lite_chart") if chart.proto.alt == alt)
    with pa.ipc.open_stream(chart.data.data or chart.datasets[0].data.data) as stream:
        return stream.read_all().to_pydict()


def picture(app):
    """What the live picture was sent."""
    (component,) = app.get("bidi_component")
    (data,) = json.loads(component.proto.json)
    return data


def tables(app):
    return [table.value for table in app.dataframe]


def table(app, column):
    return next(found for found in tables(app) if column in found)


def expected(app, name):
    """The page after the first thing was expected."""
    radio = app.radio(key=f"predict_{name}")
    return checked(radio.set_value(radio.options[0]).run())


def run_lesson(world, open_page, name, **link):
    """The page after Run was pressed, and the jobs that came of it, ended."""
    app = checked(button(open_page(LESSONS_PAGE, lesson=name, **link), "Run").click().run())
    jobs = world.queue.jobs()
    for job in jobs:
        world.end(job, state="finished")
    return app, jobs
