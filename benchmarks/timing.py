"""Timing on a shared machine: rivals take turns, the best of several rounds counts, and what is stated is a ratio."""

import time
from collections.abc import Callable
from dataclasses import dataclass

_QUIET = 0.1


@dataclass(frozen=True)
class Row:
    """One comparison: what, ours and theirs in seconds, the ratio asked for."""

    what: str
    ours: float
    rival: str
    theirs: float
    asked: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.theirs / self.ours


def race(rivals: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """Best seconds of each rival over interleaved rounds, after one round to warm up.

    Idle threads of BLAS and OpenMP spin for some milliseconds after a call: each rival waits until those of the one
    before it sleep.
    """
    best = dict.fromkeys(rivals, float("inf"))
    for turn in range(rounds + 1):
        for name, run in rivals.items():
            time.sleep(_QUIET)
            started = time.perf_counter()
            run()
            if turn:
                best[name] = min(best[name], time.perf_counter() - started)
    return best


def show(title: str, rows: list[Row]) -> bool:
    """Print a table; whether every ratio reached what was asked."""
    print(f"\n{title}")
    print(f"{'what':52} {'ours':>10} {'theirs':>10}  {'against':34} {'ratio':>7} {'asked':>7}")
    for row in rows:
        mark = "" if row.ratio >= row.asked else "  <-- short"
        print(
            f"{row.what:52} {row.ours * 1e3:7.2f} ms {row.theirs * 1e3:7.1f} ms  {row.rival:34} "
            f"{row.ratio:6.1f}x {row.asked:6.1f}x{mark}"
        )
    return all(row.ratio >= row.asked for row in rows)
