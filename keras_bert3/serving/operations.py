"""Which operations an exported graph may use: old ones of TensorFlow, one of tensorflow-text."""

from collections.abc import Iterable

OPERATIONS = frozenset(
    (
        # the graph's own furniture
        """
    Assert Cast Const Identity IdentityN If LogicalAnd LogicalNot LogicalOr MergeV2Checkpoints NoOp
    Pack PartitionedCall Placeholder ReadVariableOp RestoreV2 SaveV2 Select SelectV2 ShardedFilename
    StatefulPartitionedCall StatelessIf StatelessWhile StaticRegexFullMatch StringJoin VarHandleOp
    AssignVariableOp While StopGradient PreventGradient EnsureShape
    """
        # arithmetic
        """
    Abs Add AddV2 ArgMax BatchMatMulV2 Ceil ClipByValue Cumsum Div DivNoNan Einsum Equal Erf Erfc
    Exp Floor FloorDiv FloorMod Greater GreaterEqual Less LessEqual Log Log1p LogSoftmax MatMul Max
    Maximum Mean Min Minimum Mod Mul Neg NotEqual Pow Prod RealDiv Relu Round Rsqrt Sigmoid Sign
    Softmax Softplus SparseSegmentSum Sqrt Square SquaredDifference Sub Sum Tanh
    UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentSum TopKV2
    All Any AddN BiasAdd Conv2D IsFinite LowerBound Unique UpperBound
    """
        # shapes and places
        """
    BroadcastArgs BroadcastTo ConcatV2 ExpandDims Fill Gather GatherNd GatherV2 OneHot OnesLike Pad
    PadV2 RaggedGather RaggedRange RaggedTensorToTensor RaggedTensorToVariant Range Rank Reshape
    ReverseV2 ScatterNd Shape Size Slice Split SplitV SegmentSum Squeeze StridedSlice
    TensorListFromTensor TensorListGetItem TensorListReserve TensorListSetItem TensorListStack
    TensorScatterUpdate Tile Transpose Unpack Where ZerosLike MatrixBandPart SortV2 Bitcast
    """
        # text
        """
    StringLength StringSplitV2 StringToHashBucketFast UnicodeDecode UnicodeEncode Substr
    """
    ).split()
)
"""Every one is registered by TensorFlow 2.4 and later, on CPU without XLA."""
LIBRARIES = {"SentencepieceTokenizeOp": "_sentencepiece_tokenizer"}
"""Operations of tensorflow-text that servers link in and an export may need, with their files."""


def operations_of(graph_definition) -> set[str]:
    """List the operations of a graph and of the functions it calls.

    Args:
        graph_definition: a GraphDef.
    """
    nodes = [*graph_definition.node]
    for function in graph_definition.library.function:
        nodes += function.node_def
    called = {function.signature.name for function in graph_definition.library.function}
    return {node.op for node in nodes} - called


def check_operations(found: Iterable[str]) -> None:
    """Refuse operations that a stock server may not have, or may not be allowed to run.

    Raises:
        ValueError: naming them. `XlaCallModule` is among them: a server runs no XLA on CPUs unless
            it is told to.
    """
    unknown = sorted(set(found) - OPERATIONS - set(LIBRARIES))
    if unknown:
        raise ValueError(
            "Expected a graph of operations that every TensorFlow Serving runs (see "
            f"keras_bert3/serving/operations.py). Received: {', '.join(unknown)} too"
        )
