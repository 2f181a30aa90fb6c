"""Which machine this is: `python -m tests.gpu.facts`. Prints what the app knows of it, and what the driver says."""

import shutil
import subprocess

import torch

from core.measure import devices, missing_gpu
from core.results import environment

DRIVERS = (("nvidia-smi",), ("nvidia-smi", "-q", "-d", "CLOCK,POWER,TEMPERATURE,PERFORMANCE"), ("rocm-smi",))


def main() -> None:
    print(environment.read_environment())
    for info in devices.discover():
        print(info)
    print(missing_gpu.hint())
    print(torch.__config__.show())
    for command in DRIVERS:
        if shutil.which(command[0]):
            print("$", *command, flush=True)
            subprocess.run(command, check=False, timeout=20)


if __name__ == "__main__":
    main()
