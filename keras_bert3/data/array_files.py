"""Files that are written as they grow, and that appear whole or not at all."""

import contextlib
import io
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.lib import format as npy_format


class ArrayWriter:
    """Append rows to an `.npy` file without knowing how many will come.

    The header is written for zero rows, with the room that numpy leaves for a growing first axis,
    and written again when the writer closes.

    Args:
        path: the file to write.
        dtype: type of the numbers.
        row_shape: shape of one row, `()` for a file of numbers.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "numbers.npy"
        >>> with ArrayWriter(path, np.int64) as writer:
        ...     writer.append([1, 2])
        ...     writer.append([3])
        >>> np.load(path).tolist()
        [1, 2, 3]
    """

    def __init__(self, path: str | Path, dtype: type, row_shape: tuple[int, ...] = ()):
        self.num_rows = 0
        self._dtype = np.dtype(dtype)
        self._row_shape = row_shape
        self._file = open(path, "wb")
        self._file.write(self._header())

    def append(self, rows: np.ndarray | list) -> None:
        """Write rows at the end: numbers of shape [rows, *row_shape]."""
        block = np.asarray(rows, self._dtype).reshape(-1, *self._row_shape)
        self._file.write(block.tobytes())
        self.num_rows += len(block)

    def close(self) -> None:
        """Write the number of rows into the header and close the file."""
        self._file.seek(0)
        self._file.write(self._header())
        self._file.close()

    def _header(self) -> bytes:
        header = {
            "descr": npy_format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self.num_rows, *self._row_shape),
        }
        buffer = io.BytesIO()
        npy_format.write_array_header_1_0(buffer, header)
        return buffer.getvalue()

    def __enter__(self) -> "ArrayWriter":
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file; after an error too."""
        self.close()


@contextlib.contextmanager
def whole_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; what is there at the end is renamed to `path`.

    After an error the temporary file or folder is removed, and nothing bears the name `path`.

    Args:
        path: the file or folder to make.

    Raises:
        ValueError: `path` already exists.
    """
    path = Path(path)
    if path.exists():
        raise ValueError(f"Expected a new path to write. Received: {path}, which exists.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.partial-{uuid.uuid4().hex[:8]}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        temporary.unlink(missing_ok=True)
