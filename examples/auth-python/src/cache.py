"""Caches a document that the provider publishes."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from plugin.errors import Unavailable

T = TypeVar("T")
log = logging.getLogger(__name__)

RENEW_EVERY = 12.0  # the minimum time between two fetches of a document, in seconds
TIMEOUT = 10.0  # per fetch, in seconds


class Cached(Generic[T]):
    """Fetches a value on first use, again in the background once it is `fresh` seconds old, and uses it
    for up to `keep` seconds while the provider is unavailable. Waiting calls share one fetch, which continues
    even if the call that started it is cancelled."""

    def __init__(self, what: str, fetch: Callable[[], Awaitable[T]], fresh: float, keep: float) -> None:
        self.what, self.fetch, self.fresh, self.keep = what, fetch, fresh, keep
        self.value: T | None = None
        self.fetched = 0.0
        self.next = 0.0  # the earliest time for the next fetch
        self.failed = ""  # why the last fetch failed
        self.fetching: asyncio.Task[None] | None = None

    async def get(self) -> T:
        age = time.monotonic() - self.fetched
        if self.value is None or age > self.keep:
            return await self.renew()
        if age > self.fresh and self.fetching is None and time.monotonic() >= self.next:
            self.fetching = asyncio.create_task(self.renew_now())
        return self.value

    async def renew(self) -> T:
        """Fetches the value, or reuses the result of the last fetch if that started less than RENEW_EVERY ago."""
        if self.fetching is None and time.monotonic() >= self.next:
            self.fetching = asyncio.create_task(self.renew_now())
        if self.fetching is not None:
            await asyncio.shield(self.fetching)
        if self.failed or self.value is None:
            raise Unavailable(f"the provider's {self.what} cannot be fetched: {self.failed}")
        return self.value

    async def renew_now(self) -> None:
        self.next = time.monotonic() + RENEW_EVERY
        try:
            value = await asyncio.wait_for(self.fetch(), TIMEOUT)
        except Unavailable as error:  # the address is unknown, so there was no request
            self.failed, self.next = str(error), 0.0
        except Exception as error:  # noqa: BLE001, any error means that nothing was fetched
            self.failed = str(error) or type(error).__name__
            fields = {"what": self.what, "error": self.failed}
            log.warning("The identity provider is unavailable; the cached document stays in use.", extra={"fields": fields})
        else:
            if self.value is None:
                self.next = 0.0  # the first load does not count
            self.value, self.fetched, self.failed = value, time.monotonic(), ""
        finally:
            self.fetching = None
