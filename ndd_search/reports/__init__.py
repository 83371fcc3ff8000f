"""HTML pages, SVG plots, Markdown tables and marked texts, shared by the reports of evaluation, tuning and commands."""
