package mcphttp

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
)

// exchange is the answer to one POST: its responses, and before them whatever the calls send while
// they run. It is plain JSON unless something must be sent before the last response.
type exchange struct {
	*queue
	batch    bool
	waiting  atomic.Int64 // calls without a response
	streamed atomic.Bool  // something else than a response has come
	life     *lifetime    // of a call that runs past the SDK; nil for the others
}

func newExchange(calls int, batch bool) *exchange {
	x := &exchange{queue: newQueue(), batch: batch}
	x.waiting.Store(int64(calls))
	return x
}

// answer adds a response. The last one ends the exchange.
func (x *exchange) answer(response []byte) {
	x.deliver(response)
	if x.waiting.Add(-1) == 0 {
		x.close()
		if x.life != nil {
			x.life.end()
		}
	}
}

// notify adds a message that belongs to a call.
func (x *exchange) notify(text []byte) {
	x.streamed.Store(true)
	x.push(text)
}

// streamAfter is how long a call may be silent before its answer begins as a stream: clients and
// proxies give up on an answer whose head does not come, and what is a stream can be resumed.
const streamAfter = 15 * time.Second

// beStream lets the answer be a stream from now on, whatever it will say.
func (x *exchange) beStream() {
	x.streamed.Store(true)
	x.begin()
	x.signal()
}

// ready waits until the shape of the answer is known, and reports whether it is a stream.
func (x *exchange) ready() (streamed bool) {
	if known, streamed := x.shape(); known {
		return streamed
	}
	silent := time.NewTimer(streamAfter)
	defer silent.Stop()
	for {
		select {
		case <-x.wake:
		case <-silent.C:
			x.beStream()
		}
		if known, streamed := x.shape(); known {
			return streamed
		}
	}
}

// shape is what the answer will be, once that is known. Of a stream, its reader is woken.
func (x *exchange) shape() (known, streamed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.streamed.Load() {
		x.signal()
		return true, true
	}
	return x.closed, false
}

// rest waits for the end of the exchange and returns all of it.
func (x *exchange) rest() []frame {
	var all []frame
	for {
		<-x.wake
		events, open := x.take()
		if all = append(all, events...); !open {
			return all
		}
	}
}

// send writes the answer once it can be: with a Content-Length, or as a stream of events.
func (x *exchange) send(c *fiber.Ctx) error {
	uncached(c)
	if x.ready() {
		c.Set(fiber.HeaderContentType, "text/event-stream")
		c.Set("X-Accel-Buffering", "no")    // proxies that buffer would hold progress back
		if !c.Request().Header.IsHTTP11() { // knows no chunks: gets the whole stream at its end
			return c.Status(fiber.StatusOK).Send(x.framed(x.rest()))
		}
		c.Context().SetBodyStream(newReply(x.queue, c.Context().Conn()), -1)
		return nil
	}
	events, _ := x.take()
	if !x.batch && len(events) == 1 {
		return sendJSON(c, fiber.StatusOK, events[0].text)
	}
	responses := make([][]byte, 0, len(events))
	for _, e := range events {
		responses = append(responses, e.text)
	}
	return sendJSON(c, fiber.StatusOK, append(append([]byte{'['}, bytes.Join(responses, []byte{','})...), ']'))
}

// uncached sets the headers of an answer that no one may keep or change on its way.
func uncached(c *fiber.Ctx) {
	c.Response().Header.SetCanonical(utils.UnsafeBytes(fiber.HeaderCacheControl), utils.UnsafeBytes("no-cache, no-transform")) // both are copied
}
