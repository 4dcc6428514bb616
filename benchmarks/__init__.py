"""Measurements of time and memory, each a ratio within one run."""
