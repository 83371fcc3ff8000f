"""The JSON of the search engines: requests that go out, answers that come in."""
