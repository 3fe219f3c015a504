"""The versions of one model at a server: the newest is loaded, warmed up, and then asked."""

import contextlib
import functools
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

from keras_bert3.serving import warm_up
from keras_bert3.serving.library import CODES, ServingError, load_operations, package_folder
from keras_bert3.serving.messages import BROKEN
from keras_bert3.serving.operations import LIBRARIES
from keras_bert3.serving.session import SavedModelSession
from keras_bert3.serving.versions import versions

_LOG = logging.getLogger(__name__)
RETRIES = 5
"""How often a version that fails to load is tried, as TensorFlow Serving's default."""


class LoadedVersion:
    """A version in use; it is freed once nobody uses it any more."""

    def __init__(self, number: int, session: SavedModelSession) -> None:
        self.number, self.session = number, session
        self._users, self._is_retired, self._lock = 0, False, threading.Lock()

    @contextlib.contextmanager
    def used(self) -> Iterator["LoadedVersion"]:
        """Keep it loaded for the time of a request."""
        with self._lock:
            self._users += 1
        try:
            yield self
        finally:
            self._release()

    def _release(self) -> None:
        with self._lock:
            self._users -= 1
            is_last = self._is_retired and self._users == 0
        if is_last:
            self.session.close()

    def retire(self) -> None:
        """Free it as soon as the last request is answered."""
        with self._lock:
            self._is_retired = True
            self._users += 1
        self._release()


class Model:
    """The newest version of a model, looked for again and again.

    Args:
        directory: of the versions; its name is the model's.
        threads: see `SavedModelSession`.

    Raises:
        ServingError: if there is no version, or the newest cannot be loaded.
    """

    def __init__(self, directory: str | Path, threads: int | None = None) -> None:
        self.directory = Path(directory).resolve()
        self.name = self.directory.name
        self.threads = threads
        self._lock, self._failures = threading.Lock(), {}
        self._stop = threading.Event()
        found = versions(self.directory)
        if not found:
            raise ServingError(
                CODES["NOT_FOUND"],
                f"Expected numbered versions in '{self.directory}'. Received: none",
            )
        self._current = self._load(found[-1])

    def _load(self, number: int) -> LoadedVersion:
        folder = self.directory / str(number)
        try:
            _load_libraries(folder)
            session = SavedModelSession(folder, self.threads)
            with contextlib.ExitStack() as undo:
                undo.callback(session.close)
                count = warm_up.replay(session, folder)
                undo.pop_all()
        except (OSError, *BROKEN) as error:
            raise ServingError(
                CODES["FAILED_PRECONDITION"],
                f"Expected a whole version in '{folder}'. Received: {error!r}",
            ) from error
        _LOG.info("%s version %d loaded, %d warm-up requests", self.name, number, count)
        return LoadedVersion(number, session)

    @contextlib.contextmanager
    def use(self, number: int | None = None) -> Iterator[LoadedVersion]:
        """Give the current version for the time of a request.

        Raises:
            ServingError: NOT_FOUND for another version than that.
        """
        with self._lock:
            current = self._current
            context = current.used()
            context.__enter__()
        try:
            if number is not None and number != current.number:
                raise ServingError(
                    CODES["NOT_FOUND"],
                    f"Expected version {current.number} of {self.name!r}. Received: {number}",
                )
            yield current
        finally:
            context.__exit__(None, None, None)

    def refresh(self) -> None:
        """Load a newer version, if there is one; the old one answers until then, or for good."""
        with self._lock:
            current = self._current
        newest = max(versions(self.directory), default=current.number)
        if newest <= current.number or self._failures.get(newest, 0) >= RETRIES:
            return
        try:
            loaded = self._load(newest)
        except ServingError as error:
            self._failures[newest] = self._failures.get(newest, 0) + 1
            _LOG.error("%s version %d cannot be loaded: %s", self.name, newest, error)
            return
        with self._lock:
            self._current = loaded
        current.retire()

    def watch(self, seconds: float = 1.0) -> threading.Thread:
        """Look for newer versions in the background until `close`."""

        def look() -> None:
            while not self._stop.wait(seconds):
                self.refresh()

        thread = threading.Thread(target=look, name=f"watch {self.name}", daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Stop looking, and free the version."""
        self._stop.set()
        self._current.retire()


@functools.cache
def _load_library(name: str) -> None:
    load_operations(package_folder("tensorflow_text") / "python" / "ops" / f"{name}.so")


def _load_libraries(version: Path) -> None:
    """Register the operations of tensorflow-text that a version says it needs, if allowed."""
    report = version / "export.json"
    needed = json.loads(report.read_text("utf-8"))["operations"] if report.exists() else []
    for operation in needed:
        if operation in LIBRARIES:
            _load_library(LIBRARIES[operation])
