"""How block tasks run: threads, buffers and memory limits."""
