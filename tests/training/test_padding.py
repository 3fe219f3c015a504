from types import SimpleNamespace

import numpy as np

from keras_bert3.training import padding


def test_a_table_has_rows_to_spare_where_devices_do_not_divide_it():
    assert padding.rows_for(30522, 2) == 30522
    assert padding.rows_for(30522, 4) == 30592 == 239 * 128
    assert padding.rows_for(40478, 3) % 3 == 0


def test_values_lose_and_gain_the_rows_to_spare_of_their_variable():
    value = np.ones((3, 2))
    table = SimpleNamespace(shape=(5, 2), used_rows=3, path="a/b")
    plain = SimpleNamespace(shape=(5, 2), path="c")
    assert padding.shape_of(table) == (3, 2) and padding.shape_of(plain) == (5, 2)
    full = padding.filled(table, value)
    np.testing.assert_array_equal(full, [[1, 1]] * 3 + [[0, 0]] * 2)
    np.testing.assert_array_equal(padding.cut(table, full), value)
    assert padding.filled(plain, value) is value and padding.cut(plain, full) is not None
    other = np.ones((4, 2))
    assert padding.filled(table, other) is other  # refused by its shape later


def test_moments_have_the_rows_of_their_variable():
    table = SimpleNamespace(shape=(5, 2), used_rows=3, path="a/b")
    moment = SimpleNamespace(shape=(5, 2), path="adam/a_b_momentum")
    norm = SimpleNamespace(shape=(), path="adam/a_b_norm")
    padding.mark([table], [moment, norm])
    assert moment.used_rows == 3 and not hasattr(norm, "used_rows")
