"""Counts and times of a server's requests, in the text format of Prometheus."""

import threading
from collections import Counter

BOUNDS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
"""Upper bounds of the histogram, in milliseconds."""


class Statistics:
    """Requests by model, signature and outcome; safe from several threads.

    The names are those of TensorFlow Serving's own metrics.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter = Counter()
        self._buckets: Counter = Counter()
        self._totals: dict[str, float] = {}

    def record(self, model: str, status: str, seconds: float) -> None:
        """Count a request."""
        milliseconds = seconds * 1000
        with self._lock:
            self._requests[model, status] += 1
            self._totals[model] = self._totals.get(model, 0.0) + milliseconds
            for bound in BOUNDS:
                self._buckets[model, bound] += milliseconds <= bound

    def text(self) -> str:
        """Write everything down."""
        with self._lock:
            requests, buckets = dict(self._requests), dict(self._buckets)
            totals = dict(self._totals)
        count, latency = ":tensorflow:serving:request_count", ":tensorflow:serving:request_latency"
        lines = [f"# TYPE {count} counter"]
        for (model, status), number in sorted(requests.items()):
            lines.append(f'{count}{{model_name="{model}",status="{status}"}} {number}')
        lines.append(f"# TYPE {latency} histogram")
        for model, total in sorted(totals.items()):
            number = sum(n for (name, _), n in requests.items() if name == model)
            for bound in BOUNDS:
                place = f'{{model_name="{model}",le="{bound}"}}'
                lines.append(f"{latency}_bucket{place} {buckets[model, bound]}")
            lines.append(f'{latency}_bucket{{model_name="{model}",le="+Inf"}} {number}')
            lines.append(f'{latency}_sum{{model_name="{model}"}} {total:.3f}')
            lines.append(f'{latency}_count{{model_name="{model}"}} {number}')
        return "\n".join(lines) + "\n"
