"""Mutation testing of `localparity.counts`, `metrics` and `uncertainty`: ``make mutants``.

Every small change that cosmic-ray's operators make to a line (a mutant) must make a test fail. A mutant that
survives is a line that no test holds; it is answered by a test, or `explained.toml` says why no test can.
Of the two tools that there are, mutmut leaves out every decorated function, which here are all kernels,
metrics and properties, and cosmic-ray runs a whole suite in a new process for each mutant. So cosmic-ray makes
the mutants, and `execution` tries each in a fork of a process that has numpy and the like loaded, on the tests
that reach its line, the quickest first, up to the first failure.
"""
