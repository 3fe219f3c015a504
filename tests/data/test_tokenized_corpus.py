"""The tokenised corpus: contents, types, splits, damage, memory."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from keras_bert3.data.tokenized_corpus import (
    TokenizedCorpus,
    vocabulary_hash,
    write_tokenized_corpus,
)


class Numbers:
    """A stand-in tokenizer: the text "7 8" has the ids 7 and 8."""

    def __init__(self, size):
        self.vocabulary = [str(i) for i in range(size)]
        self.calls = 0

    def __call__(self, texts):
        self.calls += 1
        return [[int(number) for number in text.split()] for text in texts]


def read_back(corpus):
    sentences = [
        corpus.tokens[begin:end].tolist()
        for begin, end in zip(corpus.sentence_offsets, corpus.sentence_offsets[1:], strict=False)
    ]
    return [
        sentences[begin:end]
        for begin, end in zip(corpus.document_offsets, corpus.document_offsets[1:], strict=False)
    ]


def test_contents_without_empty_sentences_and_documents(tmp_path):
    documents = [["1 2", "", "3"], [], ["", ""], ["4"], ["5 6 7"], [""]]
    corpus = write_tokenized_corpus(tmp_path / "corpus", iter(documents), Numbers(10))
    assert read_back(corpus) == [[[1, 2], [3]], [[4]], [[5, 6, 7]]]
    assert (corpus.num_documents, corpus.num_sentences) == (3, 4)
    assert (corpus.vocabulary_size, corpus.vocabulary_sha256) == (
        10,
        vocabulary_hash(map(str, range(10))),
    )


def test_many_documents_across_encoded_batches(tmp_path):
    generator = np.random.default_rng(1)
    documents = [
        [" ".join(map(str, generator.integers(0, 50, generator.integers(0, 4)))) for _ in range(n)]
        for n in [*generator.integers(0, 40, 400), 9000, 3]
    ]
    tokenizer = Numbers(50)
    corpus = write_tokenized_corpus(tmp_path / "corpus", documents, tokenizer)
    expected = [
        [[int(n) for n in sentence.split()] for sentence in document if sentence]
        for document in documents
    ]
    assert read_back(corpus) == [document for document in expected if document]
    assert 1 < tokenizer.calls < 10


@pytest.mark.parametrize(("size", "dtype"), [(65536, np.uint16), (65537, np.uint32)])
def test_the_smallest_number_type_that_holds_the_vocabulary(tmp_path, size, dtype):
    corpus = write_tokenized_corpus(tmp_path / "corpus", [[f"0 {size - 1}"]], Numbers(size))
    assert corpus.tokens.dtype == dtype
    assert corpus.tokens.tolist() == [0, size - 1]
    with pytest.raises(ValueError, match=f"Received: ids from 0 to {size}"):
        write_tokenized_corpus(tmp_path / "other", [[f"0 {size}"]], Numbers(size))


def test_split_is_a_deterministic_division(tmp_path):
    corpus = write_tokenized_corpus(tmp_path / "corpus", [["1"]] * 200, Numbers(10))
    training, held_out = corpus.split(0.1, seed=3)
    assert len(held_out) == 20
    assert sorted([*training, *held_out]) == list(range(200))
    assert (corpus.split(0.1, seed=3)[1] == held_out).all()
    assert (corpus.split(0.1, seed=4)[1] != held_out).any()
    assert len(corpus.split(1e-9)[1]) == 1
    assert len(corpus.split(1 - 1e-9)[0]) == 1


def test_one_document_cannot_be_split(tmp_path):
    corpus = write_tokenized_corpus(tmp_path / "corpus", [["1"]], Numbers(10))
    with pytest.raises(ValueError, match="Received: 1 documents"):
        corpus.split()


def test_after_an_error_no_folder_is_left(tmp_path):
    def documents():
        yield ["1"] * 5000
        raise OSError("the disk went away")

    with pytest.raises(OSError, match="went away"):
        write_tokenized_corpus(tmp_path / "corpus", documents(), Numbers(10))
    with pytest.raises(ValueError, match="Expected documents that hold a token"):
        write_tokenized_corpus(tmp_path / "corpus", [[""], []], Numbers(10))
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_refused_before_any_work(tmp_path):
    tokenizer = Numbers(10)
    with pytest.raises(ValueError, match="which exists"):
        write_tokenized_corpus(tmp_path, [["1"]], tokenizer)
    assert tokenizer.calls == 0


@pytest.mark.parametrize("name", ["tokens.bin", "sentences.npy", "documents.npy"])
def test_damaged_files_are_named(tmp_path, name):
    folder = tmp_path / "corpus"
    write_tokenized_corpus(folder, [["1 2 3"], ["4"]], Numbers(10))
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match=f"{name} as it was written"):
        TokenizedCorpus.open(folder, verify_checksums=True)
    (folder / name).write_bytes(content[:-1])
    with pytest.raises(ValueError, match=f"{name} of {len(content)} bytes"):
        TokenizedCorpus.open(folder)
    (folder / name).unlink()
    with pytest.raises(ValueError, match=f"Expected the file .*{name}"):
        TokenizedCorpus.open(folder)


def test_damaged_manifests_are_named(tmp_path):
    folder = tmp_path / "corpus"
    write_tokenized_corpus(folder, [["1 2 3"]], Numbers(10))
    TokenizedCorpus.open(folder, verify_checksums=True)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(ValueError, match="Received: format 99"):
        TokenizedCorpus.open(folder)
    manifest.write_text("{")
    with pytest.raises(ValueError, match="Expected a manifest in JSON"):
        TokenizedCorpus.open(folder)
    manifest.unlink()
    with pytest.raises(ValueError, match=r"without manifest\.json"):
        TokenizedCorpus.open(folder)


MEMORY_SCRIPT = """
    import random, resource, sys
    import numpy as np
    from keras_bert3.data.pretraining_examples import build_examples
    from keras_bert3.data.tokenized_corpus import write_tokenized_corpus

    class Constant:
        vocabulary = [str(i) for i in range(100)]
        def __call__(self, texts):
            return [[7] * 20 for _ in texts]

    def documents():
        for number in range(2000):
            yield [f"{number} {sentence} " + "x" * 300 for sentence in range(50)]

    def address_space():
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[0]) * resource.getpagesize()

    build = sys.argv[2] == "build"
    corpus = write_tokenized_corpus(sys.argv[1] + "/small", [["a", "b"]] * 9, Constant())
    build_examples(corpus, range(9), sys.argv[1] + "/small.npy", 16)
    limit = address_space() + 24 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    stream = documents() if build else list(documents())
    corpus = write_tokenized_corpus(sys.argv[1] + "/corpus", stream, Constant())
    assert len(corpus.tokens) == 2_000_000
    examples = build_examples(corpus, range(2000), sys.argv[1] + "/examples.npy", 64, 8)
    assert len(examples) > 200_000
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit needs Linux")
@pytest.mark.parametrize("way", ["build", "hold"])
def test_N4_memory_does_not_grow_with_the_corpus_or_its_duplicates(tmp_path, way):
    # The texts need 35 MB, the examples as tuples over 40 MB, the files that stay mapped 13 MB.
    # So 24 MB more than an idle process must do, and holding the texts must not fit.
    script = [sys.executable, "-c", textwrap.dedent(MEMORY_SCRIPT), str(tmp_path), way]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    if way == "build":
        assert done.returncode == 0, done.stderr
    else:
        assert "MemoryError" in done.stderr
