"""Starts the plugin."""

import os
import sys
from pathlib import Path

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC's own log lines are not JSON
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gen"))

from adapter import Adapter  # noqa: E402
from plugin import serve  # noqa: E402

if __name__ == "__main__":
    serve.run(Adapter())
