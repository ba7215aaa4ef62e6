"""One thing that the provider publishes, kept so that nobody asks for it too often."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from errors import Away

T = TypeVar("T")
log = logging.getLogger(__name__)

RENEW_EVERY = 12.0  # seconds between two questions for the same thing, at least
TIMEOUT = 10.0  # seconds for one question, with everything that it takes


class Cached(Generic[T]):
    """Fetches when first wanted, in the background once the value is `fresh` seconds old, and keeps
    it for `keep` seconds while the provider is away. However many wait, one question is asked, and
    it goes on when the call that began it is cancelled."""

    def __init__(self, what: str, fetch: Callable[[], Awaitable[T]], fresh: float, keep: float) -> None:
        self.what, self.fetch, self.fresh, self.keep = what, fetch, fresh, keep
        self.value: T | None = None
        self.fetched = 0.0
        self.next = 0.0  # no question before
        self.failed = ""  # why the last question brought nothing
        self.flight: asyncio.Task[None] | None = None

    async def get(self) -> T:
        age = time.monotonic() - self.fetched
        if self.value is None or age > self.keep:
            return await self.renew()
        if age > self.fresh and self.flight is None and time.monotonic() >= self.next:
            self.flight = asyncio.create_task(self.ask())
        return self.value

    async def renew(self) -> T:
        """Asks, unless that was done less than RENEW_EVERY ago: then what came of it holds."""
        if self.flight is None and time.monotonic() >= self.next:
            self.flight = asyncio.create_task(self.ask())
        if self.flight is not None:
            await asyncio.shield(self.flight)
        if self.failed or self.value is None:
            raise Away(f"the provider's {self.what} cannot be had: {self.failed}")
        return self.value

    async def ask(self) -> None:
        self.next = time.monotonic() + RENEW_EVERY
        try:
            value = await asyncio.wait_for(self.fetch(), TIMEOUT)
        except Exception as error:  # noqa: BLE001, whatever it is: the provider was not asked
            self.failed = str(error) or type(error).__name__
            fields = {"what": self.what, "error": self.failed}
            log.warning("The identity provider did not answer; what is known stays in use.", extra={"fields": fields})
        else:
            if self.value is None:
                self.next = 0.0  # the first load does not count
            self.value, self.fetched, self.failed = value, time.monotonic(), ""
        finally:
            self.flight = None
