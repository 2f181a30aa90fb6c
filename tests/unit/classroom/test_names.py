"""Names: all of them is seen, of one script, and none passes for another."""

import unicodedata

import pytest
import regex

from core.classroom import students
from core.errors import InvalidValue


@pytest.mark.parametrize(
    "text",
    [
        *("ada", "Zoë", "Nguyễn", "小明", "さくらABC", "김민수", "Аня", "Ελένη", "שָׁלוֹם", "محمد", "नमस्ते", "สวัสดี"),
        *("Ada L.", "o'neil-7", "7", "_x_"),
    ],
)
def test_a_nickname_can_be_of_any_script(text):
    assert students.check_nickname(text) == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "x" * 25, "<b>", "=1+1", "--", "a/b", "a\u202eb", "x" * 10**6),
        *(
            "\u3164",
            "ada\u3164",
            "ada\u115f",
            "ad\u200ba",
            "ada\u200d",
            "a\u00adda",
            "ada\uffa0",
            "\u2800",
            "ada\ufe0f",
        ),
        *("аdа", "Аня K.", "pаypal", "ελa", "Ali\u0661", "ꓐꓳꓐ"),
        *("a\u0301\u0301\u0301\u0301\u0301", "\u0301ada", "ada \u0301"),
    ],
)
def test_what_hides_mixes_or_piles_up_is_refused(text):
    with pytest.raises(InvalidValue, match=r"nickname must be 1 to 24 letters of one script"):
        students.check_nickname(text)


@pytest.mark.parametrize(
    "alike",
    [
        ("ada", "ADA", " Ada ", "ａｄａ", "a-d-a", "a d.a", "ada\u3164"),
        ("pop", "рор", "ΡΟΡ"),
        ("Вова", "вова"),
        ("Al", "AI", "A1"),
        ("B0B", "bob", "ВОВ"),
        ("Straße", "STRASSE"),
        ("Zoe\u0308", "Zoë"),
    ],
)
def test_names_that_look_the_same_are_the_same(alike):
    assert len({students.fold_name(name) for name in alike}) == 1


@pytest.mark.parametrize("pair", [("ada", "adá"), ("ada", "bob"), ("小明", "小红"), ("student 1", "student 11")])
def test_names_that_look_different_are_not(pair):
    assert len({students.fold_name(name) for name in pair}) == 2


@pytest.mark.slow
def test_every_nickname_that_is_allowed_leaves_something_to_compare():
    for code in range(0x30000):
        try:
            name = students.check_nickname(chr(code))
        except InvalidValue:
            continue
        assert students.fold_name(name)
        assert not regex.search(r"\p{Default_Ignorable_Code_Point}|\p{C}|[\p{Z}--[ ]]", name, regex.VERSION1)


def test_the_name_of_a_class_may_mix_scripts_and_not_hide_anything():
    assert students.check_class_name("  Физика   7b,  group 2 ") == "Физика 7b, group 2"
    for text in ("Physics\u3164", "a\u202eb", "x" * 61):
        with pytest.raises(InvalidValue, match=r"name must be 1 to 60 letters"):
            students.check_class_name(text)
