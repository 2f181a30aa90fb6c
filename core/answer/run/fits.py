"""What is said of fits of gradient boosting, where it is not what is said of networks."""

from collections.abc import Sequence

from core import units
from core.question import models
from core.question.experiment import inline_name
from core.question.fields import short_label, value_label
from core.results.schema import Trial

PIECE = "A fit is one piece: its library does not tell where its time goes."


def is_fit(trial: Trial) -> bool:
    """Whether a step of a row is a whole fit."""
    return not trial.training and trial.model in models.boosting.LIBRARIES


def fit_line(trial: Trial) -> str:
    """What was fitted, in a line; operations and parameters are not known, and not guessed."""
    return (
        f"{value_label('model', trial.model)} on {short_label('dataset', trial.dataset)}: "
        f"{units.format_count(trial.samples)} rows, "
        f"{units.format_quantity(trial.rounds, 'round')} of at most {trial.leaves} leaves, learning rate "
        f"{units.format_significant(trial.learning_rate)}; a step is a whole fit, of which neither parameters nor "
        "operations "
        "are known"
    )


def fit_losses_sentence(trials: Sequence[Trial]) -> str:
    """How well each device's fit tells its own training rows, in a sentence."""
    said = [f"{units.format_significant(row.loss[-1])} on {inline_name(row.contender)}" for row in trials if row.loss]
    return f"After a fit, the mean log loss over its first training rows is {' and '.join(said)}."


def fit_wording(trial: Trial, text: str) -> str:
    """A sentence about steps and epochs, as it is said of a row: each is a fit where steps are fits."""
    return (
        text.replace("the step", "a fit").replace("epoch", "fit").replace("a step", "a fit") if is_fit(trial) else text
    )


def fit_cause(baseline: Trial, challenger: Trial) -> str:
    """Why two devices differ, as far as that is known of fits."""
    library = models.boosting.LIBRARIES[baseline.model].title
    return (
        f"Why is not known: a fit is one piece, and {library} does not tell where its time goes. On "
        f"{inline_name(challenger.contender)} as on {inline_name(baseline.contender)} rows, rounds and leaves "
        "decide; Crossover "
        "varies them."
    )
