"""Figures on matplotlib axes that people compose."""
