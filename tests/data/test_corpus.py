"""Reading documents: formats, places, errors."""

import gzip
import json
import sys

import pytest

from keras_bert3.data.corpus import find_files, read_documents


def test_sentences_one_a_line_and_a_blank_line_between_documents(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n\nOne. Still one.\r\n  two \r\n \t \r\n\r\nthree\n\n")
    assert list(read_documents(path, "sentences")) == [["One. Still one.", "two"], ["three"]]


def test_paragraphs_are_split_into_sentences(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("One. Two!\nThree.\n\nFour.")
    assert list(read_documents(path)) == [["One.", "Two!", "Three."], ["Four."]]


def test_jsonl_is_one_document_a_line(tmp_path):
    path = tmp_path / "a.jsonl"
    records = [{"body": "One. Two.\n\nThree."}, {"body": " "}, {"body": "Vier é.", "id": 1}]
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n\n")
    documents = list(read_documents(path, "jsonl", text_field="body"))
    assert documents == [["One.", "Two.", "Three."], ["Vier é."]]


def test_a_document_ends_with_its_file(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("two\n")
    assert list(read_documents(tmp_path, "sentences")) == [["one"], ["two"]]


def test_byte_order_mark_and_gzip(tmp_path):
    path = tmp_path / "a.txt.gz"
    with gzip.open(path, "wb") as stream:
        stream.write("\ufeffé one\n".encode())
    assert list(read_documents(path, "sentences")) == [["é one"]]


def test_files_folders_and_globs_each_file_once(tmp_path):
    for name in ("b.txt", "a.txt", "deep/c.txt", ".hidden", ".git/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [file.name for file in find_files(tmp_path)] == ["a.txt", "b.txt", "c.txt"]
    assert [file.name for file in find_files(str(tmp_path / "*.txt"))] == ["a.txt", "b.txt"]
    both = find_files([tmp_path / "b.txt", tmp_path])
    assert [file.name for file in both] == ["b.txt", "a.txt", "c.txt"]


def test_documents_are_streamed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\n" * 3 + b"bad \xff\n")
    documents = read_documents(path, "sentences")
    assert next(documents) == ["one"]


def test_paths_that_match_nothing_are_refused_at_once(tmp_path):
    (tmp_path / "empty").mkdir()
    for paths in (tmp_path / "none.txt", str(tmp_path / "*.md"), tmp_path / "empty", "", []):
        with pytest.raises(ValueError, match="Expected .*path|Expected a file"):
            read_documents(paths, "sentences")


def test_empty_files_are_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("")
    with pytest.raises(ValueError, match=r"a\.txt, which is empty"):
        read_documents(path, "sentences")
    path.write_text(" \n\n")
    with pytest.raises(ValueError, match=r"a\.txt, which holds none"):
        list(read_documents(path, "sentences"))


@pytest.mark.parametrize(
    "damage", [lambda whole: b"plain text", lambda whole: whole[:-9], lambda whole: whole[:12] * 9]
)
def test_broken_gzip_files_are_named(tmp_path, damage):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(damage(gzip.compress(b"one\n" * 999)))
    with pytest.raises(ValueError, match=r"Expected a whole gzip file. Received: .*a\.txt\.gz"):
        list(read_documents(path, "sentences"))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_invalid_utf8_is_told_by_file_and_offset(tmp_path, mark):
    path = tmp_path / "a.txt"
    content = mark + "é one\n\nabc ".encode() + b"\xff def\n"
    path.write_bytes(content)
    place = content.index(b"\xff")
    with pytest.raises(ValueError, match=rf"byte 0xff at offset {place} of .*a\.txt"):
        list(read_documents(path, "sentences"))
    path.write_bytes(mark + b"\xff")
    with pytest.raises(ValueError, match=f"offset {len(mark)} of"):
        list(read_documents(path, "sentences"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', "one JSON object a line. Received: .* at column 14 of .*line 3"),
        ('["a"]', "Received: a list in .*line 3"),
        ('{"title": "a", "id": 1}', "field 'text'. Received: id .int., title .str. in .*line 3"),
        ('{"text": null}', "field 'text'. Received: text .NoneType. in .*line 3"),
        ('{"text": "half \\ud83d"}', "text without lone surrogates. Received: one in .*line 3"),
    ],
)
def test_broken_json_lines_are_told_by_file_and_line(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "One."}\n\n' + line + "\n")
    with pytest.raises(ValueError, match=message):
        list(read_documents(path, "jsonl"))


def test_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Received: 'csv'"):
        read_documents(tmp_path, "csv")  # type: ignore[arg-type]


def test_only_splitting_needs_the_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    (tmp_path / "a.txt").write_text("one")
    assert list(read_documents(tmp_path, "sentences")) == [["one"]]
    with pytest.raises(ImportError, match="sentencex"):
        read_documents(tmp_path)
