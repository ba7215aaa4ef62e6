"""The plugin's main: complete the handshake with the server that started it, then serve until it ends."""

import asyncio
import os
import signal
import sys
from pathlib import Path

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # its own log lines are not JSON
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gen"))

import handshake  # noqa: E402
import hclog  # noqa: E402
import serve  # noqa: E402

KIND = "auth"
WIRE = 1


async def main() -> None:
    """Serves; returns when the server asked for the end, or SIGTERM came."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, end.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # a Ctrl-C is for the server

    place = handshake.Place.choose()
    security = handshake.Security.make(os.environ.get("PLUGIN_CLIENT_CERT", ""))
    server, adapter = await serve.build(end.set)
    serve.listen(server, place.target, security)
    await server.start()
    handshake.announce(WIRE, place, security)
    try:
        await end.wait()
    finally:
        await server.stop(grace=1)
        await adapter.close()
        place.remove()


if __name__ == "__main__":
    refusal = handshake.refuse(os.environ, KIND, WIRE)
    if refusal:
        print(refusal, file=sys.stderr)
        sys.exit(1)
    hclog.setup()
    asyncio.run(main())
