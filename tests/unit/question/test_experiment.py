"""What can be asked, what cannot, and the name of a question."""

import contextlib
import dataclasses
import json
from types import SimpleNamespace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CrossoverError, InvalidValue
from core.question import catalog, experiment, models, presets
from core.question.experiment import Contender, Experiment, Point, display_name
from core.question.fields import DATA_PATHS, DTYPES, TRAINING
from core.question.sweep import Axis, Sweep


@st.composite
def points(draw: st.DrawFn) -> Point:
    model = draw(st.sampled_from(sorted(models.FAMILIES)))
    depth = draw(st.integers(*models.DOUBLING_DEPTH))
    dataset = draw(st.sampled_from(sorted(catalog.DATASETS)))
    samples = draw(st.integers(100, min(1_000, catalog.DATASETS[dataset].max_samples)))
    return Point(
        dataset=dataset,
        samples=samples,
        model=model,
        hidden_size=draw(st.integers(1, 16_384)),
        depth=depth,
        width=draw(st.integers(1, 32)),
        batch_size=draw(st.integers(1, samples)),
        epochs=draw(st.integers(1, 100)),
        learning_rate=draw(st.floats(1e-6, 10)),
        dtype=draw(st.sampled_from(sorted(DTYPES))),
        data_path=draw(st.sampled_from(sorted(DATA_PATHS))),
        loader_workers=draw(st.integers(0, 16)),
        shuffle=draw(st.booleans()),
        seed=draw(st.integers(0, 2**31 - 1)),
    )


contenders = st.builds(
    Contender, device=st.sampled_from(["cpu", "cuda", "cuda:1", "xpu:0"]), threads=st.integers(0, 64)
)


@given(points(), st.lists(contenders, min_size=1, max_size=4, unique=True), st.floats(1, 3600), st.integers(0, 100))
def test_an_experiment_survives_json(point, entered, budget_s, pairs):
    if point.is_fit:  # not every device is one of its library's
        entered = list(dict.fromkeys(dataclasses.replace(one, device="cpu") for one in entered))
    asked = Experiment(point=point, contenders=tuple(entered), budget_s=budget_s, pairs=pairs)
    assert Experiment.from_json(asked.to_json()) == asked


def test_an_experiment_of_an_earlier_version_trains_every_epoch():
    asked = Experiment(point=Point())
    earlier = {name: value for name, value in asked.to_json().items() if name != "pairs"}
    assert Experiment.from_json(earlier) == asked


@given(points())
def test_a_point_survives_text_as_in_a_link(point):
    fields = {name: str(getattr(point, name)) for name in TRAINING}
    shaping = {name: text for name, text in fields.items() if name not in models.AXES or text != "0"}
    assert Point.parse(shaping) == point


@given(points())
def test_the_training_of_a_row_is_read_from_its_columns(point):
    assert Point.from_row(SimpleNamespace(**vars(point), contender="cpu")) == point


def test_a_row_of_a_training_that_is_not_offered_has_no_point():
    with pytest.raises(InvalidValue, match="batch_size must be "):
        Point.from_row(SimpleNamespace(**{**vars(Point()), "batch_size": 0}))


def test_a_training_in_float64_is_another_one_and_one_in_float32_is_as_it_always_was():
    plain, longer = Experiment(point=Point()), Experiment(point=Point(dtype="float64"))
    assert "dtype" not in plain.to_json()["point"]
    assert longer.id != plain.id
    assert Experiment.from_json(longer.to_json()) == longer
    assert Point.from_json({"dataset": "digits"}).dtype == "float32"
    with pytest.raises(InvalidValue, match=r"dtype must be .*one of float32, float64.*got 'float16'"):
        Point(dtype="float16")


def test_float64_is_refused_where_the_device_has_none_before_anything_is_measured():
    pair = (Contender(), Contender(device="mps"))
    with pytest.raises(
        InvalidValue, match=r"dtype must be .*float32 with the Apple GPU, which has no float64.*got 'float64'"
    ):
        Experiment(point=Point(dtype="float64"), contenders=pair)
    assert Experiment(point=Point(), contenders=pair).point.dtype == "float32"


@given(contenders)
def test_a_contender_survives_its_written_form(contender):
    assert Contender.parse(str(contender)) == contender


def test_the_name_of_a_question_does_not_depend_on_what_does_not_matter():
    linear = Point(model="linear", hidden_size=64, depth=3)
    assert linear == Point(model="linear", hidden_size=256, depth=5, loader_workers=4)
    asked = Experiment(point=linear, budget_s=10)
    assert asked.id == Experiment(point=linear, budget_s=20).id == Experiment(point=linear, pairs=6).id


@pytest.mark.parametrize(
    "change", [{"hidden_size": 64}, {"seed": 1}, {"data_path": "tutorial"}, {"epochs": 6}, {"shuffle": False}]
)
def test_the_name_of_a_question_depends_on_what_matters(change):
    assert Experiment(point=Point(**change)).id != Experiment(point=Point()).id


def test_the_name_of_a_question_depends_on_the_protocol(monkeypatch):
    before = Experiment(point=Point()).id
    monkeypatch.setattr(experiment, "PROTOCOL_VERSION", experiment.PROTOCOL_VERSION + 1)
    assert Experiment(point=Point()).id != before


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"hidden_size": "0"}, "hidden_size must be .*between 1 and 16,384.*got 0"),
        ({"hidden_size": "wide"}, "hidden_size must be .*a whole number.*got 'wide'"),
        ({"hidden_size": "12.5"}, "hidden_size must be .*a whole number.*got '12.5'"),
        ({"depth": "17"}, "depth must be .*between 1 and 16.*got 17"),
        ({"model": "doubling-mlp", "depth": "15"}, "depth must be .*between 2 and 14.*got 15"),
        ({"width": "99", "model": "cnn"}, "width must be .*between 1 and 32.*got 99"),
        ({"batch_size": "65537"}, "batch_size must be .*between 1 and 65,536.*got 65,537"),
        ({"batch_size": "1258"}, "batch_size must be .*at most the 1,257 training samples.*got 1,258"),
        ({"samples": "1258"}, "samples must be .*between 10 and 1,257.*got 1,258"),
        ({"epochs": "0"}, "epochs must be .*between 1 and 10,000.*got 0"),
        ({"learning_rate": "nan"}, "learning_rate must be .*between 1e-06 and 10.*got nan"),
        ({"learning_rate": "-1"}, "learning_rate must be .*between 1e-06 and 10.*got -1.0"),
        ({"learning_rate": "fast"}, "learning_rate must be .*a number.*got 'fast'"),
        ({"data_path": "pigeon"}, "data_path must be .*resident, per_batch, loader, pinned, tutorial.*got 'pigeon'"),
        ({"data_path": "loader", "loader_workers": "17"}, "loader_workers must be .*between 0 and 16.*got 17"),
        ({"dataset": "cifar"}, "dataset must be .*disc, signal, .*digits.*got 'cifar'"),
        ({"model": "gpt"}, "model must be .*linear, mlp.*got 'gpt'"),
        ({"shuffle": "perhaps"}, "shuffle must be .*true or false.*got 'perhaps'"),
        ({"seed": "-1"}, "seed must be .*between 0 and.*got -1"),
        ({"speed": "11"}, "setting must be .*one of dataset, samples.*got 'speed'"),
        ({"epochs": True}, "epochs must be .*a whole number.*got True"),
    ],
)
def test_bad_input_gets_one_sentence_with_field_value_and_range(fields, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        Point.parse(fields)


@pytest.mark.parametrize(
    "text", ["gpu", "cuda:", "cuda:100", "cpu@", "cpu@x", "cpu@-1", "cpu@1025", "", "mps:1", "cpu:0"]
)
def test_a_device_that_cannot_be_is_refused(text):
    with pytest.raises(InvalidValue):
        Contender.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        f"cpu@{'1' * 5_000}",
        f"cuda:{'1' * 5_000}",
        f"cpu+compiled{'1' * 5_000}",
        f"cpu+micro{'9' * 5_000}",
        "cpu" + "+fused" * 100_000,
        "a" * 1_000_000,
        "cpu@\u0661",
        "cuda:\u0661",
    ],
    ids=["threads", "number", "steps", "samples", "words", "letters", "other digits", "another number"],
)
def test_a_text_of_any_length_is_no_contender_and_one_short_sentence(text):
    """Python reads no number of more than 4,300 digits, and says so with an error of its own."""
    with pytest.raises(InvalidValue) as raised:
        Contender.parse(text)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("value", [10**400, float("inf"), float("nan"), -(10**400)], ids=["more", "inf", "nan", "less"])
@pytest.mark.parametrize("field", ["learning_rate", "budget_s"])
def test_a_number_beyond_all_floats_is_one_sentence(field, value):
    data = Experiment(point=Point()).to_json()
    place = data if field == "budget_s" else data["point"]
    place[field] = value
    with pytest.raises(InvalidValue, match=field):
        Experiment.from_json(data)


@pytest.mark.parametrize(
    ("text", "device"), [("cuda", "cuda:0"), ("xpu", "xpu:0"), ("cuda:01", "cuda:1"), ("mps", "mps")]
)
def test_devices_have_one_spelling(text, device):
    assert Contender.parse(text).device == device


def test_contenders_must_differ():
    with pytest.raises(InvalidValue, match="different devices"):
        Experiment(point=Point(), contenders=(Contender(), Contender()))


@pytest.mark.parametrize("budget_s", [0, -1, float("nan"), float("inf"), 86_401, "long", True])
def test_a_budget_out_of_range_is_refused(budget_s):
    with pytest.raises(InvalidValue, match="budget_s must be "):
        Experiment(point=Point(), budget_s=budget_s)


@pytest.mark.parametrize("pairs", [-1, 101, 6.0, "6", True, None])
def test_a_number_of_pairs_out_of_range_is_refused(pairs):
    with pytest.raises(InvalidValue, match=r"pairs must be .*between 0 and 100"):
        Experiment(point=Point(), pairs=pairs)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_any_other_json_is_refused_in_a_sentence(data):
    with pytest.raises(CrossoverError):
        Experiment.from_json(data)


@given(json_values, st.sampled_from([entry.name for entry in dataclasses.fields(Point)]))
def test_a_field_of_any_type_is_accepted_or_refused_in_a_sentence(value, name):
    with contextlib.suppress(CrossoverError):
        assert isinstance(Point.parse({name: value}), Point)


def test_steps_are_full_batches():
    point = Point(dataset="disc", samples=1_000, batch_size=300, epochs=4)
    assert (point.steps_per_epoch, point.total_steps) == (3, 12)


# Fair lanes


MANY = Point(dataset="fashion-mnist", model="cnn", batch_size=512, samples=1024)


def names(asked, points=(MANY,), refusals=()):
    refused = {contender.device: dict.fromkeys(refusals, "it has not") for contender in asked}
    return [str(each) for each in presets.with_fair_lanes(asked, points, refused)]


def test_lanes_of_both_devices_come_in_turns_between_the_two_that_a_search_is_about():
    pair = (Contender(), Contender(device="cuda:0"))
    fair = names(pair)
    assert (fair[0], fair[-1], len(fair)) == ("cpu", "cuda:0", 8)
    assert fair[1:5] == ["cpu+compiled10", "cuda:0+graph10", "cpu+compiled", "cuda:0+graph"]
    assert not {"cpu+bf16", "cuda:0+bf16", "cuda:0+tf32"} & set(fair), "they are other mathematics"


def test_lanes_that_a_device_does_not_have_or_that_not_every_training_fits_are_left_out():
    pair = (Contender(), Contender(device="cuda:0"))
    fair = names(pair, refusals=("compiled", "kept", "graph"))
    assert not any(word in name for name in fair for word in ("compiled", "kept", "graph"))
    assert {"cpu+micro256", "cuda:0+fused"} <= set(fair)
    smaller = dataclasses.replace(MANY, batch_size=64)
    assert not any("micro" in name for name in names(pair, (MANY, smaller), refusals=("compiled", "kept")))


def test_lanes_have_the_threads_of_the_cpu_that_they_are_of_and_none_comes_twice():
    asked = (Contender(threads=1), Contender.parse("cpu@2+kept"), Contender(threads=2))
    fair = names(asked)
    assert (fair[0], fair[1], fair[-1]) == ("cpu@1", "cpu@2+kept", "cpu@2")
    assert all(name.startswith("cpu@2+") for name in fair[1:-1])
    assert len(set(fair)) == len(fair) == 8


def test_a_cpu_that_contends_alone_stays_first():
    fair = names((Contender(),))
    assert fair[0] == "cpu"
    assert len(fair) > 4


def test_without_the_cpu_fair_lanes_are_refused():
    with pytest.raises(InvalidValue, match="with the CPU among the devices"):
        names((Contender(device="cuda:0"),))


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("cpu", "CPU"),
        ("cpu@1", "1 CPU thread"),
        ("cpu@2+compiled10", "2 CPU threads, compiled, 10 steps a call"),
        ("cuda:0+bf16", "GPU, bf16"),
        ("a column of a table", "a column of a table"),
    ],
)
def test_a_written_contender_has_a_title_for_people(written, title):
    assert display_name(written) == title


@pytest.mark.parametrize("whole", [True, False])
def test_whether_the_whole_training_is_asked_for_is_kept_in_a_job_and_is_not_part_of_the_name(whole):
    asked = Experiment(point=Point(), whole=whole)
    assert Experiment.from_json(json.loads(json.dumps(asked.to_json()))) == asked
    assert asked.id == Experiment(point=Point()).id
    assert ("whole" in asked.to_json()) is not whole  # jobs of before do not say so


@pytest.mark.parametrize("written", ["cpu@1,cpu@2", ("cpu@1", "cpu@2"), ["cpu@1", Contender(threads=2)]])
def test_contenders_may_be_written_as_on_the_command_line(written):
    pair = (Contender(threads=1), Contender(threads=2))
    assert Experiment(point=Point(), contenders=written).contenders == pair
    assert Sweep(point=Point(), axes=(Axis(name="depth", values=(1, 2)),), contenders=written).contenders == pair


def test_numbers_of_numpy_are_numbers_and_what_is_asked_with_them_goes_into_a_file():
    point = Point(hidden_size=numpy.int64(64), learning_rate=numpy.float32(0.5))
    axis = Axis(name="hidden_size", values=numpy.array([32, 8, 16]))
    asked = Sweep(point=point, axes=(axis,), contenders=(Contender(threads=numpy.int64(1)), Contender()))
    assert axis.values == (8, 16, 32)
    assert Sweep.from_json(json.loads(json.dumps(asked.to_json()))) == asked
    with pytest.raises(InvalidValue, match=r"hidden_size must be a whole number .*\(got 64\.0\)"):
        Point(hidden_size=64.0)
    with pytest.raises(InvalidValue, match="at least one value"):
        Axis(name="hidden_size", values=numpy.array([]))
