"""pytest: a plugin, found by its entry point, that asserts a bound on MCDP."""

__all__: list[str] = []
