"""Log lines as the server reads them: one JSON object per line on standard error."""

import json
import logging
import sys
from datetime import datetime, timezone


class Formatter(logging.Formatter):
    """Formats records as hclog does. Fields passed as `extra={"fields": {...}}` become fields of the line."""

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
    """Sends this process's log to the server, whose log level determines which lines are kept."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for chatty in ("httpx", "httpcore"):  # they log request URLs, which may contain codes
        logging.getLogger(chatty).setLevel(logging.WARNING)
