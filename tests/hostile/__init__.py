"""Malicious and broken files: one script makes every one of them, tests load each, and a report says what each took.

`cases` says what a case is; a module `make_<format>.py` holds those of a format; `child` loads one in a process of its own and
watches; `test_hostile_files.py` holds all of them to the promises of SECURITY.md; ``python -m tests.hostile`` prints the table.
"""
