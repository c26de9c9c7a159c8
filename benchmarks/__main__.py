"""Run benchmarks by name, or all: python -m benchmarks [name ...]; and python -m benchmarks papers [paper ...]."""

import importlib
import sys

ALL = ("core", "exact", "embedded", "recipe", "l1", "scaling", "soft", "storage", "faults", "papers")


def main(names: list[str]) -> int:
    """Run the named benchmarks; 1 if something asked was not reached."""
    if names[:1] == ["papers"]:
        return 0 if importlib.import_module("benchmarks.papers").main(names[1:]) else 1
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; there are {', '.join(ALL)}")
    reached = [importlib.import_module(f"benchmarks.{name}").main() for name in names or ALL]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
