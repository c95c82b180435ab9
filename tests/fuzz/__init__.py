"""Fuzzing: random models, threats, files, tables and command lines. Mirrors no room of the package but all at once.

`drawing` makes cases, `attacking` and `exact` look for what breaks their certificates, `classes` turns several classes
into claims of two, `checking` counts all; `strategies` hands all of it to hypothesis. `make fuzz` runs these tests for
minutes, the usual tests a share.
"""
