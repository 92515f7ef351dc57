from grading import few_cases, few_forms  # noqa: F401 (fixtures)
