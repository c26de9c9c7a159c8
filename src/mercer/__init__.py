"""Kernel clustering at scale."""
