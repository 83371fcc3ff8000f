"""The access log of the proxy: one JSON object for each request, and where the lines of all logs go."""

from __future__ import annotations

import json
import logging
import sys
import time

from ndd_search.serving.proxy.http_exchange import Exchange
from ndd_search.serving.ui.application import Message

access = logging.getLogger("ndd_search.access")


def log_to_output(access_log: bool) -> None:
    """Log warnings to standard error, and the lines of the access log to standard output."""
    for name in ("ndd_search", "uvicorn.error"):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if access_log:
        access.addHandler(logging.StreamHandler(sys.stdout))
        access.setLevel(logging.INFO)
        access.propagate = False


def log_request(exchange: Exchange, scope: Message, seconds: float) -> None:
    """Log a request: no parameters, headers or bodies, as these may hold secrets."""
    now = time.time()
    entry = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z",
        "client": (scope.get("client") or ("", 0))[0],
        "method": exchange.method,
        "path": exchange.path,
        "status": exchange.status,
        "bytes": exchange.sent,
        "ms": round(seconds * 1000, 3),
        "kind": exchange.kind,
        **({"pages": exchange.pages} if exchange.pages else {}),
        **({"unsketched": exchange.unsketched} if exchange.unsketched else {}),
    }
    access.info("%s", json.dumps(entry))
