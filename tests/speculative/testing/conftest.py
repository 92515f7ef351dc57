from grading import few_cases, simulated_once  # noqa: F401 (fixtures)
