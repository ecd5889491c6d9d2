"""Rules of shapes, one text each: what a function, a layer, an operator of a recorded graph and one of a file check, and say.

Every rule takes first how an error names what was called. Sizes may be ints, names or None (see `ir.graph`); a rule that cannot
tell a size says None. What is not here is the business of one way in: the words of its arguments, and their types.
"""
