"""Real search engines for the tests: `find` locates or starts one, `launch` runs one from published jars."""
