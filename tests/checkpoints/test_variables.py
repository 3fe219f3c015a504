import keras
import numpy as np
import pytest

from keras_bert3.checkpoints.report import LoadReport
from keras_bert3.checkpoints.variables import assign, check_complete, variables_by_path
from tests.checkpoints.models import masked_lm
from tests.layer_checks import to_numpy


def test_paths_start_below_the_backbone_and_at_the_heads():
    task = masked_lm()
    named = variables_by_path(task.backbone, task.heads)
    assert named["block_1/attention/query/kernel"] is task.backbone.blocks[1].attention.query.kernel
    assert named["masked_lm_head/dense/kernel"] is task.masked_lm_head.dense.kernel
    assert len(named) == len(task.weights)


def test_a_value_is_cast_and_its_shape_checked():
    variable = keras.Variable(np.zeros((2, 3), "float32"))
    assign(variable, np.full((2, 3), 2, "float64"), "a/b", "`x` in 'file'")
    np.testing.assert_array_equal(to_numpy(variable), 2)
    with pytest.raises(ValueError, match=r"\(2, 3\) for `a/b`.*\(3, 2\) from `x` in 'file'"):
        assign(variable, np.ones((3, 2)), "a/b", "`x` in 'file'")
    with pytest.raises(ValueError, match="floating-point values for `a/b`. Received: int8 from"):
        assign(variable, np.ones((2, 3), "int8"), "a/b", "`x` in 'file'")


def test_what_may_be_absent():
    report = LoadReport(
        loaded=("block_0/kernel", "half/kernel"),
        newly_initialised=("pooler/bias", "whole/kernel", "half/bias"),
    )
    heads = {"whole": None, "half": None}
    with pytest.raises(ValueError, match="in 'there'. Received: none for half/bias$"):
        check_complete(report, heads, ("pooler/",), "there")
    with pytest.raises(ValueError, match="none for pooler/bias, half/bias$"):
        check_complete(report, heads, (), "there")
    check_complete(LoadReport(newly_initialised=("whole/kernel",)), heads, (), "there")
