"""Real search engines for the tests: `find` says where one is to be had, `launch` runs one from published jars."""
