import pytest

from keras_bert3.benchmarks.tables import (
    find_file,
    read_commas,
    read_json_lines,
    read_lines,
    read_tabs,
)


def test_only_line_feeds_end_lines(tmp_path):
    path = tmp_path / "x"
    path.write_bytes("\ufeffa\u2028b\r\n\nc\x85d\x0be\n".encode())
    assert read_lines(path) == ["a\u2028b", "", "c\x85d\x0be"]
    path.write_bytes(b"a\nb")
    assert read_lines(path) == ["a", "b"]
    path.write_bytes(b"")
    assert read_lines(path) == []


def test_rows_carry_the_numbers_of_their_lines(tmp_path):
    path = tmp_path / "x"
    path.write_text('a\t"b\n"c"\td\n', newline="")
    assert list(read_tabs(path)) == [(1, ["a", '"b']), (2, ['"c"', "d"])]
    path.write_text('a\t"b\nc"\nd\te\n', newline="")
    assert list(read_tabs(path, is_quoted=True)) == [(1, ["a", "b\nc"]), (3, ["d", "e"])]
    path.write_text('"a,b",c\n', newline="")
    assert list(read_commas(path)) == [(1, ["a,b", "c"])]


def test_json_lines_name_a_broken_one(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (3, {"a": 2})]
    path.write_text('{"a": 1}\n{"a"\n')
    with pytest.raises(ValueError, match="a JSON object in line 2 of '.*x.jsonl'"):
        list(read_json_lines(path))


def test_a_file_or_the_first_of_the_names_in_a_folder(tmp_path):
    (tmp_path / "b").write_text("")
    assert find_file(tmp_path, ("a", "b"), "dev") == tmp_path / "b"
    assert find_file(tmp_path / "b", ("a",), "dev") == tmp_path / "b"
    with pytest.raises(ValueError, match=r"one of \['a'\] for split 'dev'"):
        find_file(tmp_path, ("a",), "dev")
