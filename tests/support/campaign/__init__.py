"""Thousands of bad files and argument lists for every command: make campaign."""
