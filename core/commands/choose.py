"""`print_choices`: whether a GPU that is not available would be faster, predicted from the times of this CPU."""

import argparse
from typing import Any

from ..answer import predict, training_cost
from ..errors import InvalidValue
from ..results import environment
from ..results.store import Store
from . import COMMAND_HELP, OK, arguments, output


def add_choose_command(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("choose", help=COMMAND_HELP["choose"])
    arguments.add_point(parser)
    keys = ", ".join(card.key for card in predict.list_cards())
    parser.add_argument("--gpu", help=f"cards to predict, comma-separated (default: all): {keys}")
    parser.add_argument("--price", help="prices per hour, as cpu=0.20,gpu=0.79 or by card (default: none)")
    parser.add_argument("--machine", help="first characters of the id of the CPU's machine (default: this machine)")
    arguments.add_options(parser, "store", "json")
    parser.set_defaults(command=print_choices)


def print_choices(options: argparse.Namespace) -> int:
    """Print a prediction for each card; nothing is measured, and an inconclusive prediction is a valid result."""
    point = arguments.point(options)
    cards = options.gpu or ",".join(card.key for card in predict.list_cards())
    store = Store(arguments.require_store_folder(options))
    rows = store.trials(machine_id=_machine(options.machine, store))
    made = training_cost.choose(point, cards, rows, prices=options.price or "")
    document = {"training": point.to_json(), "choices": [choice.to_json() for choice in made]}
    output.print_answer(options, document, "\n\n".join("\n".join(choice.sentences) for choice in made))
    return OK


def _machine(begins: str | None, store: Store) -> str:
    """Return the machine whose CPU is compared; raises InvalidValue if the store has none or several of that name."""
    if begins is None:
        return environment.read_environment().machine_id
    found = sorted({str(name) for name in store.rows()["machine_id"].to_pylist() if str(name).startswith(begins)})
    if len(found) != 1:
        raise InvalidValue("machine", begins, "the first characters of the id of one machine of the store")
    return found[0]
