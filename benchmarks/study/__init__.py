"""Compare near-duplicate detection methods on labelled pairs: `python -m benchmarks.study FOLDER...`.

Modules in the order of the data flow: collection (reads a folder) -> methods (texts to similarities of pairs) ->
measures and pages (similarities to quality figures) -> study (all methods on all collections) -> tables and report.
"""
