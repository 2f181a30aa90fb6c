"""A published study as a picture: hollow points, thin lines, colours of its own, and whose figures they are on it."""

from core.answer.charts import front
from core.answer.charts.look import Spec
from core.answer.gallery.published_studies import PublishedStudy


def study(shown: PublishedStudy) -> Spec:
    """Time against size of the CPU and the GPU, with the source on the picture, so that saving it keeps that."""
    spec = front.crossing(shown.answer, published=True)
    lines = [f"Published: {shown.source.cited}", f"CPU: {shown.source.cpu}", f"GPU: {shown.source.gpu}"]
    return {**spec, "title": {"text": lines, "anchor": "start", "fontSize": 11, "fontWeight": "normal", "offset": 8}}
