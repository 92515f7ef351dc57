from grading import few_cases, few_forms, time_to_name  # noqa: F401 (fixtures)
