from grading import few_cases, few_forms, simulated_once  # noqa: F401 (fixtures)
