"""Log lines as the server reads them: one JSON object per line on standard error."""

import json
import logging
import sys
from datetime import datetime, timezone


class Formatter(logging.Formatter):
    """Writes what hclog writes. `extra={"fields": {...}}` of a call become fields of the line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "@level": {"WARNING": "warn", "CRITICAL": "error"}.get(record.levelname, record.levelname.lower()),
            "@message": record.getMessage(),
            "@timestamp": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def setup() -> None:
    """Sends the log of this process to the server. The server's own level says what is kept of it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for chatty in ("httpx", "httpcore"):  # they log addresses of requests, which may hold codes
        logging.getLogger(chatty).setLevel(logging.WARNING)
