"""Every fuzzer by its name."""

from tests.fuzz import exhibits, files, links, parquet, rows, timings

KINDS = (files, links, timings, exhibits, parquet, rows)
FUZZERS = {fuzzer.name: fuzzer for kind in KINDS for fuzzer in kind.FUZZERS}
