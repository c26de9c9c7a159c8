"""Memory that a call takes at most, as Python's allocator sees it."""

import tracemalloc


def peak_bytes(function, *arguments, **options):
    """Peak of what is allocated while `function` runs."""
    tracemalloc.start()
    try:
        function(*arguments, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
