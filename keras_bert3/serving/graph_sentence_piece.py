"""SentencePiece inside a graph: the operation of tensorflow-text that servers link in."""

from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.tokenizers.sentence_piece import SentencePieceTokenizer


class GraphSentencePiece:
    """Cut texts into the ids of a `SentencePieceTokenizer`, inside a `tf.function`.

    `SentencepieceTokenizeOp` runs the library `sentencepiece` itself, bytes for unknown characters
    included; the newer `TFText>FastSentencepieceTokenize` knows no such bytes.

    It is asked for a list of the best cuts, of length one. That search takes, of cuts whose scores
    are equal, the one whose last piece begins first, as the Python package does. The operation's
    other search compares sums of 64 bits with sums rounded to 32, and takes now one, now another.

    Args:
        tokenizer: the tokenizer to equal.

    Call arguments:
        texts: string `[b]`, UTF-8. Anything else ends the call with InvalidArgument.

    Returns:
        A ragged int32 tensor `[b, None]`.

    Raises:
        ImportError: without tensorflow-text.
    """

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        try:
            from tensorflow_text import SentencepieceTokenizer
        except ImportError as error:
            raise ImportError(
                "Expected tensorflow-text for the tokenizer of DeBERTa v2 and v3: "
                f"pip install 'keras-bert3[serving]'. Received: {error}"
            ) from error
        # the loaded model: made outside of any graph, and saved by whoever saves a graph with it
        model = tokenizer.get_config()["model"]
        self.resource = SentencepieceTokenizer(model, nbest_size=1, return_nbest=True)

    def __call__(self, texts):
        """Return the ids of texts."""
        tf = tensorflow()

        # only asked whether it is UTF-8, which the operation itself does not say
        points = tf.strings.unicode_decode(texts, "UTF-8", errors="strict")
        with tf.control_dependencies([points.values]):
            return self.resource.tokenize(tf.identity(texts))
