"""The commands of `python -m core`, one module each; they parse options, call the same core as the pages, and print."""

OK, FAILED, USAGE = 0, 1, 2
"""Exit statuses: success, a failed run or file, wrong usage."""

COMMAND_HELP = {
    "app": "open the app in the browser",
    "devices": "list the devices of this machine",
    "run": "train one model on several devices and compare them",
    "sweep": "vary one setting and find where the GPU becomes faster",
    "crossover": "find the crossover in stored results or in your own timings",
    "at": "find the faster device at given sizes, from a stored study",
    "choose": "predict whether a GPU that is not here would be faster",
    "lesson": "run a lesson on the clock, moving data or the first step",
    "case": "why is my GPU not faster? public reports, run on this machine",
    "contribute": "measure this machine for five minutes and write a file to send in",
    "store": "check, compact, import or export a folder of results",
    "machines": "list the machines of a Ray cluster",
    "class": "create and manage classes, or measure for one",
}
"""Help text of each command, in the order in which they are listed."""

EXAMPLES = (
    "app --training examples",
    "devices --json",
    "run --preset disc",
    "run --dataset digits --model mlp --hidden-size 256 --devices cpu,cuda:0",
    "run --dataset disc --model doubling-mlp --depth 4 --devices cpu@1,cpu@1+compiled10",
    "run --training examples/plain.py:build --size 512 --devices cpu@1,cpu@2 --remedies",
    "sweep --preset fashion-cnn",
    "sweep --dataset signal --axis hidden_size --range 16:4096 --adaptive",
    "sweep --training examples/plain.py:build --axis size --values 64,256,1024 --devices cpu@1,cpu@2",
    "crossover --axis hidden_size --dataset signal",
    "crossover --csv my-timings.csv --json",
    "at --sizes 64,512,4096 --axis hidden_size",
    "crossover rule --axis hidden_size --json",
    "choose --preset disc --depth 9 --gpu v100,t4 --price cpu=0.20,gpu=0.79",
    "lesson clock --preset signal --scale class",
    "lesson moving",
    "case",
    "case keras-lstm --run",
    "contribute",
    "store check",
    "store compact",
    "store import rows.parquet",
    "store import --contributed crossover-contribution.zip",
    "store export rows.parquet",
    "machines --on ray",
    'class create --name "Physics 7b" --preset disc',
    "class list",
    "class students --code KX4-M9P-QS7",
    "class admit --code KX4-M9P-QS7 --nickname ada",
    "class remove --code KX4-M9P-QS7 --nickname ada",
    "class merge --code KX4-M9P-QS7 --nickname ada --into bea",
    "class delete --code KX4-M9P-QS7",
    "class code",
    "class measure --code KX4-M9P-QS7 --nickname ada --preset disc",
)
"""Example lines at the end of the help of the command with which each begins."""
