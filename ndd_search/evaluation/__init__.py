"""Every method of the field on labelled pairs: `ndd-search evaluate FOLDER...`.

Reading order is data flow: collection (a folder) -> methods (texts -> similarities of pairs) -> measures
and pages (similarities -> figures) -> study (all methods on all collections) -> report (one HTML file).
"""
