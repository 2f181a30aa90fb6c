"""Which machine this is: `python -m tests.gpu.facts`. Prints what the app knows of it, and what the driver says.

With `--accelerators` it prints one line of JSON: each accelerator with the lanes that it refuses.
"""

import json
import shutil
import subprocess
import sys

import torch

from core.measure import devices, gpu
from core.results import environment

DRIVERS = (("nvidia-smi",), ("nvidia-smi", "-q", "-d", "CLOCK,POWER,TEMPERATURE,PERFORMANCE"), ("rocm-smi",))


def main() -> None:
    found = devices.discover()
    if "--accelerators" in sys.argv:
        print(json.dumps({info.device: sorted(info.refusals) for info in found if info.kind != "cpu"}))
        return
    print(environment.read_environment())
    for info in found:
        print(info)
    print(gpu.missing_gpu_hint())
    print(torch.__config__.show())
    for command in (*DRIVERS, ("amd-smi", "static"), ("xpu-smi", "discovery")):
        if shutil.which(command[0]):
            print("$", *command, flush=True)
            subprocess.run(command, check=False, timeout=20)


if __name__ == "__main__":
    main()
