"""HTML pages, SVG plots and Markdown tables, shared by evaluation and tuning."""
