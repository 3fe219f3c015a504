"""PyTorch's products, as oneDNN computes them, against double precision."""

import keras
import numpy as np
import pytest

from keras_bert3.training import torch_products

pytestmark = pytest.mark.skipif(keras.backend.backend() != "torch", reason="PyTorch's products")


@pytest.fixture(autouse=True, scope="module")
def _as_they_were():
    """On other processors the tests after these, and their processes, compute by MKL again."""
    yield
    if not torch_products.is_amd():
        torch_products._replace_products.cache_clear()  # what it returned is collected


@pytest.fixture(scope="module")
def torch():
    import torch

    if torch_products._replace_products() is None:
        pytest.skip("no oneDNN beside MKL here")
    return torch


@pytest.mark.parametrize(
    "view",
    [
        lambda x: (x, x.T),
        lambda x: (x.T, x),
        lambda x: (x[::2], x.T[:, ::3]),
        lambda x: (x[:, ::2], x.T[::2]),
        lambda x: (x[:1], x.T[:, :1]),
        lambda x: (x[:0], x.T),
        lambda x: (x[:, :0], x.T[:0]),
    ],
    ids=["rows", "columns", "steps", "steps inside", "one", "none", "none inside"],
)
def test_product(torch, view):
    a, b = view(torch.randn(37, 50))
    product = torch.mm(a, b)
    assert product.dtype == torch.float32
    np.testing.assert_allclose(product, a.double() @ b.double(), atol=2e-5)


def test_product_is_oneDNNs(torch):
    with torch.profiler.profile() as profile:
        torch.mm(torch.ones(3, 4), torch.ones(4, 5))
    assert any("mkldnn::_linear_pointwise" in event.name for event in profile.events())


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int64"])
def test_other_dtypes(torch, dtype):
    a = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    product = a @ a.T
    assert product.dtype == a.dtype
    assert product.tolist() == [[5, 14], [14, 50]]


def test_gradients(torch):
    a, b = torch.randn(4, 3, requires_grad=True), torch.randn(3, 2, requires_grad=True)
    (a @ b).square().sum().backward()
    x, y = a.detach().double(), b.detach().double()
    np.testing.assert_allclose(a.grad, 2 * x @ y @ y.T, atol=1e-5)
    np.testing.assert_allclose(b.grad, 2 * x.T @ x @ y, atol=1e-5)


def test_what_does_not_fit_is_refused(torch):
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.ones(2, 3) @ torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="dtype"):
        torch.ones(2, 3) @ torch.ones(3, 2).double()


def test_only_on_amd_and_unless_switched_off(monkeypatch):
    monkeypatch.setattr(torch_products, "is_amd", lambda: True)
    assert torch_products.use_onednn()
    monkeypatch.setenv(torch_products.OFF, "1")
    assert not torch_products.use_onednn()
    monkeypatch.delenv(torch_products.OFF)
    monkeypatch.setattr(torch_products, "is_amd", lambda: False)
    assert not torch_products.use_onednn()
