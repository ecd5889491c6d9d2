"""Wrong, odd and huge arguments for everything public: calls that are right, values to put in their places, and the judge.

``python -m tests.arguments --rounds N`` goes on for longer than tests/test_arguments.py does.
"""
