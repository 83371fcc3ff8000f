"""The transports of elasticsearch-py and opensearch-py."""
