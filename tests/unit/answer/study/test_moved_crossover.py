"""What is said of two crossovers: that of plain steps, and that of the best lanes."""

from core.answer import remedies
from core.answer.judgement import Crossover


def crossing(estimate, low, high):
    return Crossover(
        axis="hidden_size", basis="steady", baseline="cpu", challenger="cuda:0", estimate=estimate, low=low, high=high
    )


def test_how_far_the_best_lanes_move_the_crossover_is_said_with_both_sizes_and_their_intervals():
    plain, best = crossing(201.4, 180.2, 220.0), crossing(50.0, 45.0, 61.7)
    assert remedies.crossover_shift_sentence(plain, best) == (
        "The default loops cross at about 201 (180 to 220), the best variants at about 50 (45 to 61.7): "
        "0.25 of that size."
    )
    assert remedies.crossover_shift_sentence(best, plain).endswith("(180 to 220): 4.0 of that size.")
    assert remedies.crossover_shift_sentence(plain, plain).endswith(": the same size to two digits.")


def test_without_a_crossover_nothing_is_said_to_have_moved():
    some, none = crossing(200.0, 180.0, 220.0), crossing(None, None, None)
    assert remedies.crossover_shift_sentence(some, none) == remedies.crossover_shift_sentence(none, some) == ""
