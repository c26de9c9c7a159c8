"""Benchmarks: commands that print ratios measured in one run, beside the ratio asked for."""
