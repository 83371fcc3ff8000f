"""Programs that prove promises on generated cases: `python -m tests.prove --help`, `make prove`.

A case is JSON that a number and a seed determine. Each program draws a case and checks it against `oracle`, which is
written with sets and shares no code with the library. A case that fails is made smaller before it is reported.
"""
