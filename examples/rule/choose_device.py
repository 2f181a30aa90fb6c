"""Choose a device by a rule of `python -m core crossover rule --axis hidden_size --json > rule.json`.

Copy this file into your project: it needs the standard library only, and never measures anything.

    device, reason = choose_device("rule.json", size=512)
"""

import json
import os
import platform
import sys
from pathlib import Path


def choose_device(path, size, device=None):
    """Return the device for a size and the reason; a device that you name wins."""
    if device is not None:
        return device, "You chose it."
    try:
        rule = json.loads(Path(path).read_text(encoding="utf-8"))
        baseline, low, high = rule["baseline"], rule["low"], rule["high"]
        if (rule["rule"], rule["version"]) != ("crossover", 1):
            return baseline, f"Version {rule['version']} of the rule is not known here."
        if other := find_difference(rule["fingerprint"]):
            return baseline, f"The rule was measured on another machine: {other}. Measure it here."
        if rule["above"] is None:
            return baseline, f"The rule is not decided: {rule['reason'] or rule['outcome']}"
        least, most = rule["sizes"]
        if not least <= size <= most:
            return baseline, f"{rule['axis']} {size} was not measured ({least:g} to {most:g} were)."
        if low is not None and low <= size <= high:
            return baseline, f"Either may be faster from {low:.0f} to {high:.0f}."
        chosen = rule["below"] if low is None or size < low else rule["above"]
        return chosen, f"Measured: {rule['sentence']}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return "cpu", f"There is no rule that can be read ({error})."


def find_difference(fingerprint):
    """Return how this machine differs from the one of a rule; empty if it does not."""
    here = {"cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}
    if "torch" in sys.modules:
        here["torch"] = sys.modules["torch"].__version__.split("+")[0]
        fingerprint = {**fingerprint, "torch": fingerprint["torch"].split("+")[0]}
    return ", ".join(f"{name} {fingerprint[name]}" for name in here if fingerprint[name] != here[name])
