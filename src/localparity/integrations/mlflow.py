"""MLflow: an evaluator that measures local disparity, found by its entry point."""

__all__: list[str] = []
