from grading import few_cases  # noqa: F401 (a fixture)
