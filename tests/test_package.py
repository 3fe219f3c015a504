import importlib
import pkgutil
import subprocess
import sys

import pytest

import keras_bert3 as kb

FRAMEWORKS = ("keras", "tensorflow", "jax", "torch", "keras_nlp", "keras_hub", "transformers")


def test_importing_the_package_imports_no_framework():
    program = f"import keras_bert3, sys; print([n for n in {FRAMEWORKS} if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.parametrize("name", [name for name in kb.__all__ if name != "__version__"])
def test_every_public_name_is_there(name):
    assert getattr(kb, name) is not None
    assert name in dir(kb)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Bart'"):
        kb.Bart  # noqa: B018


MODULES = [module.name for module in pkgutil.walk_packages(kb.__path__, "keras_bert3.")]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_every_module_can_be_imported(name):
    importlib.import_module(name)
