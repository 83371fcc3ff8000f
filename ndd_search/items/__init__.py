"""Records of several fields: which of them are the same thing, and one merged record for each."""
