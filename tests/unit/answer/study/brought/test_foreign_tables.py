"""Tables and exports of other programs: read as they are, or refused with what would help."""

import json

import pytest

from core.answer import timings_csv
from core.answer.timings_csv import ColumnsUnclear, RolesUnclear, TableColumns
from core.errors import ForeignFile, InvalidValue

EXPECTED = {8.0: (0.1, 0.4), 64.0: (0.8, 0.5)}
"""Size → seconds on the CPU and on the GPU, in every table below that is read."""


def table(*rows: str) -> bytes:
    return "\n".join(rows).encode()


def document(value: object) -> bytes:
    return json.dumps(value).encode()


def hyperfine(size: str, device: str, seconds: float) -> dict[str, object]:
    return {"command": f"train {device}", "times": [seconds], "mean": seconds, "parameters": {"n": size, "dev": device}}


def pytest_benchmark(name: str, seconds: float, params: dict[str, object] | None = None) -> dict[str, object]:
    return {"name": name, "params": params, "stats": {"data": [seconds], "median": seconds}}


def pyperf(name: str, seconds: float) -> dict[str, object]:
    return {"metadata": {"name": name}, "runs": [{"warmups": [[1, 9.0]]}, {"values": [seconds]}]}


def google_benchmark(name: str, real_time: float, kind: str = "iteration") -> dict[str, object]:
    times = {"iterations": 70, "real_time": real_time, "cpu_time": 9.0, "time_unit": "ms"}
    return {"name": name, "run_name": name.removesuffix("_mean"), "run_type": kind, **times}


READ = {
    "size called n, milliseconds": table("n,device,time_ms", "8,cpu,100", "8,gpu,400", "64,cpu,800", "64,gpu,500"),
    "device called backend": table("hidden,backend,seconds", "8,cpu,.1", "8,cuda,.4", "64,cpu,.8", "64,cuda,.5"),
    "units in cells": table("size,device,time", "8,cpu,100 ms", "8,gpu,0.4 s", "64,cpu,800ms", "64,gpu,500000 µs"),
    "a column of units": table(
        "size,device,time,unit", "8,cpu,100,ms", "8,gpu,0.4,s", "64,cpu,800000,us", "64,gpu,500,ms"
    ),
    "images per second": table("size,device,images/s", "8,cpu,10", "8,gpu,2.5", "64,cpu,1.25", "64,gpu,2"),
    "rates, a column per device": table("size,cpu images/s,gpu images/s", "8,10,2.5", "64,1.25,2"),
    "throughput": table("batch_size,device,throughput", "8,cpu,10", "8,gpu,2.5", "64,cpu,1.25", "64,gpu,2"),
    "GPU-BLOB": table(
        "Device,Kernel,M,N,K,Total Problem Size (KiB),Iterations,Total Seconds,GFLOP/s",
        "cpu,sgemm,8,8,8,0.75,10,1.0,3.0",
        "gpu,sgemm,8,8,8,0.75,10,4.0,1.0",
        "cpu,sgemm,64,64,64,48,10,8.0,2.0",
        "gpu,sgemm,64,64,64,48,10,5.0,2.2",
    ),
    "hyperfine": document(
        {
            "results": [
                hyperfine("8", "cpu", 0.1),
                hyperfine("8", "gpu", 0.4),
                hyperfine("64", "cpu", 0.8),
                hyperfine("64", "gpu", 0.5),
            ]
        }
    ),
    "hyperfine as CSV": table(
        "command,mean,stddev,median,user,system,min,max,parameter_n,parameter_device",
        "train,0.2,0.01,0.1,0,0,0.1,0.3,8,cpu",
        "train,0.5,0.01,0.4,0,0,0.1,0.3,8,gpu",
        "train,0.9,0.01,0.8,0,0,0.1,0.3,64,cpu",
        "train,0.6,0.01,0.5,0,0,0.1,0.3,64,gpu",
    ),
    "pytest-benchmark with parameters": document(
        {
            "machine_info": {},
            "benchmarks": [
                pytest_benchmark("test_step", 0.1, {"size": 8, "device": "cpu"}),
                pytest_benchmark("test_step", 0.4, {"size": 8, "device": "gpu"}),
                pytest_benchmark("test_step", 0.8, {"size": 64, "device": "cpu"}),
                pytest_benchmark("test_step", 0.5, {"size": 64, "device": "gpu"}),
            ],
        }
    ),
    "pytest-benchmark by names": document(
        {
            "machine_info": {},
            "benchmarks": [
                pytest_benchmark("test_step[cpu-8]", 0.1),
                pytest_benchmark("test_step[cuda:0-8]", 0.4),
                pytest_benchmark("test_step[cpu-64]", 0.8),
                pytest_benchmark("test_step[cuda:0-64]", 0.5),
            ],
        }
    ),
    "pyperf": document(
        {
            "version": "1.0",
            "metadata": {"unit": "second"},
            "benchmarks": [
                pyperf("fp32_cpu_8", 0.1),
                pyperf("fp32_gpu_8", 0.4),
                pyperf("fp32_cpu_64", 0.8),
                pyperf("fp32_gpu_64", 0.5),
            ],
        }
    ),
    "Google Benchmark": document(
        {
            "context": {"num_cpus": 8, "library_build_type": "release"},
            "benchmarks": [
                google_benchmark("BM_Gemm<cpu>/8", 100),
                google_benchmark("BM_Gemm<gpu>/8", 400),
                google_benchmark("BM_Gemm<cpu>/64", 800),
                google_benchmark("BM_Gemm<gpu>/64", 500),
                google_benchmark("BM_Gemm<gpu>/64_mean", 900, "aggregate"),
            ],
        }
    ),
    "raw.csv of Criterion": table(
        "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count",
        "gemm,cpu,8,,,1000000000,ns,10",
        "gemm,gpu,8,,,4000000000,ns,10",
        "gemm,cpu,64,,,16000000000,ns,20",
        "gemm,gpu,64,,,5000000000,ns,10",
    ),
    "Markdown": table(
        "| Hidden size | Device | Time (ms) |",
        "| ----------: | :----- | :-------: |",
        "|           8 | `cpu`  | **100**   |",
        "|           8 | `gpu`  | 400 ± 3   |",
        "|          64 | `cpu`  | 800.0     |",
        "|          64 | `gpu`  | **500**   |",
        "",
        "Measured | on a desktop.",
    ),
    "index of pandas": table(",n,device,seconds", "0,8,cpu,.1", "1,8,gpu,.4", "2,64,cpu,.8", "3,64,gpu,.5"),
    "perf_report of Triton, in seconds": table("N,CPU,CUDA", "8.000000,0.100000,0.400000", "64.000000,0.800000,0.5"),
}

WITH_OPTIONS = {
    "BenchmarkDotNet": (
        table(
            "| Method | N  | Mean     | Error   | StdDev  |",
            "|------- |--- |---------:|--------:|--------:|",
            "| Cpu    | 8  | 100.0 ms | 0.91 ms | 0.85 ms |",
            "| Gpu    | 8  | 400.0 ms | 1.10 ms | 1.05 ms |",
            "| Cpu    | 64 | 0.8 s    | 0.01 s  | 0.01 s  |",
            "| Gpu    | 64 | 500.0 ms | 2.00 ms | 1.90 ms |",
        ),
        TableColumns(device="Method"),
        ("Cpu", "Gpu"),
        "no column size",
    ),
    "JMH": (
        table(
            '"Benchmark","Mode","Threads","Samples","Score","Score Error (99.9%)","Unit","Param: size"',
            '"Step.cpu","avgt",1,5,100.0,1.5,"ms/op",8',
            '"Step.gpu","avgt",1,5,400.0,1.5,"ms/op",8',
            '"Step.cpu","avgt",1,5,0.8,0.1,"s/op",64',
            '"Step.gpu","avgt",1,5,500.0,2.5,"ms/op",64',
        ),
        TableColumns(size="Param: size", device="Benchmark", time="Score"),
        ("Step.cpu", "Step.gpu"),
        "no column size",
    ),
    "TorchDynamo": (
        table(
            "dev,name,batch_size,speedup,abs_latency,compilation_latency,compression_ratio",
            "cpu,resnet18,8,1.1,100.0,12.5,0.91",
            "cuda,resnet18,8,1.9,400.0,30.1,0.92",
            "cpu,resnet18,64,1.2,800.0,12.7,0.93",
            "cuda,resnet18,64,2.1,500.0,31.4,0.94",
        ),
        TableColumns(size="batch_size", device="dev", time="abs_latency", unit="ms"),
        ("cpu", "cuda"),
        "no column size",
    ),
    "optimum-benchmark": (
        table(
            "config.backend.device,config.scenario.input_shapes.batch_size,report.train.latency.mean",
            "cpu,8,0.1",
            "cuda,8,0.4",
            "cpu,64,0.8",
            "cuda,64,0.5",
        ),
        TableColumns(
            size="config.scenario.input_shapes.batch_size",
            device="config.backend.device",
            time="report.train.latency.mean",
        ),
        ("cpu", "cuda"),
        "no column size",
    ),
}

REFUSED = {
    "CSV of nvbench: both times are of one device": table(
        "Benchmark,Device,Device Name,Skipped,BlockSize,Samples,CPU Time (sec),Noise (%),GPU Time (sec),Noise (%)",
        "gemm,0,H100,No,256,100,0.1,1.0,0.09,1.0",
        "gemm,0,H100,No,512,100,0.2,1.0,0.19,1.0",
    ),
    "chart of Weights & Biases: the first column is the step": table(
        '"Step","cpu - step_time","cpu - step_time__MIN","gpu - step_time"', "1,0.1,0.1,0.4", "2,0.1,0.1,0.4"
    ),
    "GBM-perf: a column for each size": table(
        "| Tool | Time[s] 100K | Time[s] 1M | AUC 1M |", "|---|---|---|---|", "| **xgboost** | 0.7 | 1.3 | 0.748 |"
    ),
    "DAWNBench: a row for each epoch": table("epoch\thours\ttop1Accuracy\ttop5Accuracy", "1\t0.01\t12.1\t30.2"),
    "hyperfine as Markdown, without a parameter": table(
        "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |",
        "|:---|---:|---:|---:|---:|",
        "| `train cpu` | 100.0 ± 1.0 | 98.0 | 103.0 | 1.00 |",
        "| `train gpu` | 400.0 ± 9.0 | 390.0 | 420.0 | 4.00 ± 0.09 |",
    ),
    "timm: one device": table(
        "model,train_samples_per_sec,train_step_time,train_batch_size", "resnet18,1200.5,53.3,64"
    ),
}


@pytest.mark.parametrize("data", READ.values(), ids=READ)
def test_tables_of_other_programs_are_read(data):
    read = timings_csv.read_timings(data, "theirs")
    found = {entry.size: (*entry.baseline_s, *entry.challenger_s) for entry in read.evidence}
    assert found == {size: pytest.approx(times) for size, times in EXPECTED.items()}


@pytest.mark.parametrize(("data", "columns", "devices", "words"), WITH_OPTIONS.values(), ids=WITH_OPTIONS)
def test_tables_with_other_titles_are_read_once_the_columns_are_named(data, columns, devices, words):
    with pytest.raises(ColumnsUnclear, match=words):
        timings_csv.read_timings(data, "theirs")
    read = timings_csv.read_timings(data, "theirs", columns=columns, devices=devices)
    found = {entry.size: (*entry.baseline_s, *entry.challenger_s) for entry in read.evidence}
    assert found == {size: pytest.approx(times) for size, times in EXPECTED.items()}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_tables_that_hold_no_two_devices_by_size_are_refused_for_their_columns(data):
    with pytest.raises(ColumnsUnclear, match="it must name size, device and seconds"):
        timings_csv.read_timings(data, "theirs")


def test_minutes_and_seconds_in_one_cell_are_a_time():
    (entry,) = timings_csv.read_timings(table("size,device,time", "8,cpu,1m 32s", "8,gpu,1 h"), "x").evidence
    assert (entry.baseline_s, entry.challenger_s) == ((92.0,), (3600.0,))


def test_a_rate_is_inverted_and_said_to_be():
    (note,) = timings_csv.read_timings(READ["images per second"], "x").notes
    assert note == "The column holds rates, so times are their inverse: seconds per image."


def test_a_rate_of_work_is_no_time():
    with pytest.raises(ColumnsUnclear, match="no column seconds"):
        timings_csv.read_timings(table("size,device,GFLOP/s", "8,cpu,1", "8,gpu,2"), "x")


def test_an_unknown_unit_in_a_row_is_named_with_its_line():
    with pytest.raises(InvalidValue, match="unit in line 3"):
        timings_csv.read_timings(table("size,device,time,unit", "8,cpu,1,s", "8,gpu,1,jiffies"), "x")


def test_options_say_which_column_is_which():
    data = table("width,heads,where,what,t", "8,1,cpu,a,100", "8,2,gpu,a,400", "64,2,cpu,b,800", "64,3,gpu,a,500")
    with pytest.raises(RolesUnclear):  # four columns of times, for all that the titles say
        timings_csv.read_timings(data, "x")
    read = timings_csv.read_timings(
        data, "x", columns=TableColumns(size="width", device="where", time="t", unit="ms"), devices=("cpu", "gpu")
    )
    assert {entry.size: entry.baseline_s for entry in read.evidence} == {8.0: (0.1,), 64.0: (0.8,)}


def test_a_title_that_is_not_there_and_a_unit_that_is_none_are_refused():
    with pytest.raises(ColumnsUnclear, match="no column wide"):
        timings_csv.read_timings(READ["throughput"], "x", columns=TableColumns(size="wide"))
    with pytest.raises(InvalidValue, match="fortnights"):
        TableColumns(unit="fortnights")


def test_several_columns_that_vary_are_named():
    data = table("width,depth,device,s", *(f"{w},{d},{v},1" for w in (8, 64) for d in (2, 4) for v in ("cpu", "gpu")))
    with pytest.raises(ColumnsUnclear, match="several columns of numbers that vary: width, depth"):
        timings_csv.read_timings(data, "x")
    read = timings_csv.read_timings(
        data, "x", columns=TableColumns(axis="width"), devices=("cpu depth=2", "gpu depth=2")
    )
    assert [entry.baseline_s for entry in read.evidence] == [(1.0,), (1.0,)]


def test_several_configurations_are_asked_for_by_name_and_never_mixed():
    rows = [f"{size},{device},{how},1" for size in (8, 64) for device in ("cpu", "gpu") for how in ("sgd", "adam")]
    data = table("size,device,optimizer,seconds", *rows)
    with pytest.raises(RolesUnclear) as asked:
        timings_csv.read_timings(data, "x")
    assert asked.value.devices == ("cpu adam", "cpu sgd", "gpu adam", "gpu sgd")
    read = timings_csv.read_timings(data, "x", devices=("cpu adam", "gpu sgd"))
    assert (read.baseline, read.challenger) == ("cpu adam", "gpu sgd")


@pytest.mark.parametrize(("title", "axis"), [("neurons", "neurons"), ("Hidden size", "hidden_size"), ("n", "size")])
def test_an_axis_keeps_the_name_that_the_table_gives_it(title, axis):
    read = timings_csv.read_timings(table(f"{title},cpu,gpu", "8,1,2", "64,9,2"), "x")
    assert timings_csv.timings_crossover(read).axis == axis


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"[1]",
        b'{"results": 3}',
        b'{"benchmarks": [{"runs": []}]}',
        b'{"results": [{"mean": "x"}]}',
        b'{"results": [{"command": "train", "mean": 1}]}',
        b"[" * 100_000,
        b'{"results": [{"mean": ' + b"9" * 6_000 + b"}]}",
    ],
    ids=["empty", "list", "number", "no values", "text", "no size in the name", "deep", "digits"],
)
def test_other_documents_are_refused_with_what_would_help(data):
    with pytest.raises(ForeignFile, match="Save the timings as CSV"):
        timings_csv.read_timings(data, "theirs.json")


def test_the_published_batch_sizes_cross_between_128_and_256():
    rows = ("128,2052,2786", "256,929,733", "512,557,188", "1024,365,41.6", "2048,314,13", "4096,288,10")
    read = timings_csv.read_timings(table("batch_size,cpu (ms),gpu (ms)", *rows), "x")
    assumed = timings_csv.timings_crossover(read).assumed
    assert assumed is not None
    (only,) = assumed.crossings
    assert 128 < only.low < only.high < 256


def test_a_wide_table_is_read_in_as_many_passes_as_a_narrow_one(monkeypatch):
    passes = []
    rows = timings_csv.TextTable.rows
    monkeypatch.setattr(timings_csv.TextTable, "rows", lambda table, limit: passes.append(limit) or rows(table, limit))
    others = ",".join(f"note{number}" for number in range(100))
    body = [f"{size},{device},1{',x' * 100}" for size in (8, 64) for device in ("cpu", "gpu")]
    timings_csv.read_timings(table(f"size,device,seconds,{others}", *body), "x")
    assert len(passes) == 2, "for the columns and for the readings"
