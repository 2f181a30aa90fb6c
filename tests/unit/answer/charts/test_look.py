"""The palette: every contender a hue of its own, which colour-blind people tell apart on light and dark pages."""

import itertools

import numpy as np
import pytest

from core.answer.charts import look
from core.question.lanes import DEVICE_KINDS

SIGHT = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
"""What eyes make of linear light (Machado, Oliveira and Fernandes 2009, severity 1)."""

TO_CONES = [[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]]
TO_OKLAB = [[0.21045, 0.79362, -0.00407], [1.978, -2.42859, 0.45059], [0.0259, 0.78277, -0.80868]]
"""Björn Ottosson's OKLab, in which equal distances look equal."""

APART = 0.08
"""Distance in OKLab from which marks are told apart; of Okabe and Ito's own blue and green it is 0.086."""

FEW = [("cpu", "cpu"), ("cpu", "cpu", "cpu"), ("cpu", "cuda"), ("cpu", "cpu", "cuda"), ("cpu", "cpu", "cuda", "cuda")]
FEW += [(kind, kind) for kind in DEVICE_KINDS] + [("cpu", kind) for kind in DEVICE_KINDS if kind != "cpu"]


def light(colour):
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def seen(colour, sight):
    return np.array(TO_OKLAB) @ np.cbrt(np.array(TO_CONES) @ np.clip(np.array(SIGHT[sight]) @ light(colour), 0, 1))


@pytest.mark.parametrize("sight", SIGHT)
def test_contenders_are_told_apart_by_every_eye(sight):
    for kinds in FEW:
        for one, other in itertools.combinations(look.contender_colours(kinds), 2):
            assert np.linalg.norm(seen(one, sight) - seen(other, sight)) >= APART, kinds


@pytest.mark.parametrize("colour", [*look.contender_colours(("cpu",) * 3), *look.contender_colours(("cuda",) * 3)])
@pytest.mark.parametrize("background", ["#FFFFFF", "#14191F"])
def test_hues_stand_out_from_a_light_and_a_dark_page(colour, background):
    lighter, darker = sorted(float(np.dot([0.2126, 0.7152, 0.0722], light(of))) for of in (colour, background))[::-1]
    assert (lighter + 0.05) / (darker + 0.05) >= 3  # WCAG 2.1, graphics


@pytest.mark.parametrize("kind", [*DEVICE_KINDS, "unheard of"])
def test_as_many_contenders_as_an_experiment_can_have_get_a_colour_each(kind):
    colours = look.contender_colours((kind,) * len(look.POINT_SHAPES))
    assert all(len(colour) == 7 for colour in colours)
    assert kind == "unheard of" or len(set(colours[:4])) == 4
