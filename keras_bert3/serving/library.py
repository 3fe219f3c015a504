"""TensorFlow's C library, as far as it loads and runs SavedModels.

A server links this library, and knows nothing of TensorFlow's Python; neither does this module: it
finds the file in the installed package and never imports that.
"""

import ctypes
import functools
import importlib.util
import platform
from pathlib import Path

import numpy as np

DTYPES = {1: "float32", 2: "float64", 3: "int32", 7: "string", 9: "int64", 10: "bool"}
"""Numbers of tensorflow/core/framework/types.proto."""
NUMBERS = {name: number for number, name in DTYPES.items()}
CODES = {
    "INVALID_ARGUMENT": 3,
    "NOT_FOUND": 5,
    "FAILED_PRECONDITION": 9,
    "UNIMPLEMENTED": 12,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
}
STRING_BYTES = 24
"""Of a TF_TString, which keeps short strings inside."""

_POINTER, _TEXT, _INT, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t


class ServingError(Exception):
    """A request or model that TensorFlow refuses.

    Args:
        code: a number of `CODES`, the same as gRPC's.
        message: what was wrong.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def code_name(self) -> str:
        """Its name, such as INVALID_ARGUMENT."""
        return {number: name for name, number in CODES.items()}.get(self.code, "UNKNOWN")


class Output(ctypes.Structure):
    """One output of an operation (TF_Output)."""

    _fields_ = [("operation", _POINTER), ("index", _INT)]


_FUNCTIONS = {
    "TF_NewStatus": (_POINTER, []),
    "TF_DeleteStatus": (None, [_POINTER]),
    "TF_GetCode": (_INT, [_POINTER]),
    "TF_Message": (_TEXT, [_POINTER]),
    "TF_NewGraph": (_POINTER, []),
    "TF_DeleteGraph": (None, [_POINTER]),
    "TF_NewSessionOptions": (_POINTER, []),
    "TF_DeleteSessionOptions": (None, [_POINTER]),
    "TF_SetConfig": (None, [_POINTER, _TEXT, _SIZE, _POINTER]),
    "TF_NewBuffer": (_POINTER, []),
    "TF_DeleteBuffer": (None, [_POINTER]),
    "TF_LoadSessionFromSavedModel": (
        _POINTER,
        [_POINTER] * 2 + [_TEXT, _POINTER, _INT] + [_POINTER] * 3,
    ),
    "TF_CloseSession": (None, [_POINTER, _POINTER]),
    "TF_DeleteSession": (None, [_POINTER, _POINTER]),
    "TF_GraphOperationByName": (_POINTER, [_POINTER, _TEXT]),
    "TF_SessionRun": (
        None,
        [_POINTER] * 4 + [_INT] + [_POINTER] * 2 + [_INT, _POINTER, _INT] + [_POINTER] * 2,
    ),
    "TF_AllocateTensor": (_POINTER, [_INT, _POINTER, _INT, _SIZE]),
    "TF_DeleteTensor": (None, [_POINTER]),
    "TF_TensorData": (_POINTER, [_POINTER]),
    "TF_TensorByteSize": (_SIZE, [_POINTER]),
    "TF_TensorType": (_INT, [_POINTER]),
    "TF_NumDims": (_INT, [_POINTER]),
    "TF_Dim": (ctypes.c_int64, [_POINTER, _INT]),
    "TF_StringInit": (None, [_POINTER]),
    "TF_StringCopy": (None, [_POINTER, _TEXT, _SIZE]),
    "TF_StringGetDataPointer": (_POINTER, [_POINTER]),
    "TF_StringGetSize": (_SIZE, [_POINTER]),
    "TF_StringDealloc": (None, [_POINTER]),
    "TF_LoadLibrary": (_POINTER, [_TEXT, _POINTER]),
}


@functools.cache
def library(xla: bool = False):
    """Load the library once a process.

    Args:
        xla: leave XLA's compiler on; a server turns it off for processors unless told otherwise,
            and then so does this.

    Raises:
        ImportError: if the package is not installed.
    """
    folder = package_folder("tensorflow")
    suffix = (
        "libtensorflow_cc.2.dylib" if platform.system() == "Darwin" else "libtensorflow_cc.so.2"
    )
    # not RTLD_GLOBAL: its copies of common libraries would replace Python's own
    found = ctypes.CDLL(str(folder / suffix), mode=ctypes.RTLD_LOCAL)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    if not xla:
        found._ZN10tensorflow21DisableXlaCompilationEv()
    return found


def package_folder(name: str) -> Path:
    """Find where a package is installed, without importing it.

    Raises:
        ImportError: where it is not.
    """
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise ImportError(
            f"Expected the package {name}: pip install 'keras-bert3[serving]'. Received: none"
        )
    return Path(next(iter(found.submodule_search_locations)))


class Status:
    """The outcome of calls; raises `ServingError` for those that failed."""

    def __enter__(self):
        self._status = library().TF_NewStatus()
        return self

    def __exit__(self, *_):
        library().TF_DeleteStatus(self._status)

    @property
    def pointer(self):
        """What the library's functions take."""
        return self._status

    def check(self) -> None:
        """Raise if the last call failed."""
        code = library().TF_GetCode(self._status)
        if code:
            message = library().TF_Message(self._status).decode("utf-8", "replace")
            raise ServingError(code, message)


def load_operations(file: Path) -> None:
    """Register the operations of a shared library, as a server has them linked in.

    Raises:
        ServingError: if it cannot be loaded.
    """
    with Status() as status:
        library().TF_LoadLibrary(str(file).encode(), status.pointer)
        status.check()


def to_tensor(array: np.ndarray):
    """Copy an array into a new tensor; strings are an object array of bytes."""
    is_text = array.dtype.kind in "OSU"
    number = NUMBERS["string" if is_text else array.dtype.name]
    size = array.size * STRING_BYTES if is_text else array.nbytes
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    tensor = library().TF_AllocateTensor(number, shape, array.ndim, size)
    data = library().TF_TensorData(tensor)
    if not is_text:
        ctypes.memmove(data, np.ascontiguousarray(array).ctypes.data, size)
        return tensor
    for i, value in enumerate(array.flat):
        content = value.encode("utf-8") if isinstance(value, str) else bytes(value)
        library().TF_StringInit(data + i * STRING_BYTES)
        library().TF_StringCopy(data + i * STRING_BYTES, content, len(content))
    return tensor


def free_input(tensor) -> None:
    """Delete a tensor of `to_tensor`, and the strings it owns."""
    if library().TF_TensorType(tensor) == NUMBERS["string"]:
        data = library().TF_TensorData(tensor)
        for i in range(library().TF_TensorByteSize(tensor) // STRING_BYTES):
            library().TF_StringDealloc(data + i * STRING_BYTES)
    library().TF_DeleteTensor(tensor)


def to_array(tensor) -> np.ndarray:
    """Copy a tensor into an array; strings become an object array of bytes."""
    shape = [library().TF_Dim(tensor, i) for i in range(library().TF_NumDims(tensor))]
    name = DTYPES[library().TF_TensorType(tensor)]
    data = library().TF_TensorData(tensor)
    if name != "string":
        size = library().TF_TensorByteSize(tensor)
        return np.frombuffer(ctypes.string_at(data, size), name).reshape(shape)
    array = np.empty(int(np.prod(shape)), object)
    for i in range(array.size):
        place = data + i * STRING_BYTES
        length = library().TF_StringGetSize(place)
        array[i] = ctypes.string_at(library().TF_StringGetDataPointer(place), length)
    return array.reshape(shape)
