"""HTML pages, SVG plots, Markdown tables and marked texts, shared by the reports of records, collections and tuning."""
