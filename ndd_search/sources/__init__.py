"""Reads documents from files, standard input and folders of texts."""
