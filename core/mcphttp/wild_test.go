package mcphttp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// wildTime is how long the clients and the app keep acting at random.
const wildTime = 2 * time.Second

// crowd is a large number of clients of a wild app.
type crowd struct {
	*rig
	until   time.Time
	keys    atomic.Int64
	answers atomic.Int64
	streams atomic.Int64
}

// Each call gets exactly one answer, which is its own. The app's notifications about the call arrive before the answer,
// and in order. At the end, no call, session or stream remains.
func TestEveryCallIsAnsweredExactlyOnceInRandomConditions(t *testing.T) {
	w := newWild(t)
	r := start(t, func(o *Options) { o.Tools = w })
	c := &crowd{rig: r, until: time.Now().Add(wildTime)}
	var all sync.WaitGroup
	for range 4 {
		all.Go(c.session)
	}
	for range 4 {
		all.Go(c.callWithoutSession)
	}
	all.Wait()
	w.close()
	for _, s := range r.endpoint.live.All() {
		if left := s.Calls(); len(left) > 0 {
			t.Errorf("%d calls remain", len(left))
		}
	}
	t.Logf("%d answers, %d of them streams", c.answers.Load(), c.streams.Load())
	if c.answers.Load() == 0 || c.streams.Load() == 0 {
		t.Error("no call was made")
	}
}

// session opens sessions one after another and makes concurrent calls in each.
func (c *crowd) session() {
	for time.Now().Before(c.until) {
		w := alice
		resp, _ := c.say("POST", w, strings.Replace(hello("2025-11-25"), `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
		if w.session = resp.Header.Get("Mcp-Session-Id"); w.session == "" {
			c.Errorf("initialize: %d", resp.StatusCode)
			return
		}
		ctx, cancel := context.WithDeadline(c.Context(), c.until)
		ctx, stop := context.WithTimeout(ctx, 20*time.Millisecond+rand.N(200*time.Millisecond))
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				for ctx.Err() == nil {
					c.call(w)
				}
			})
		}
		<-ctx.Done()
		if rand.IntN(2) == 0 { // while calls are in flight
			c.say("DELETE", w, "")
		}
		all.Wait()
		c.say("DELETE", w, "")
		stop()
		cancel()
	}
}

// callWithoutSession makes calls without sessions.
func (c *crowd) callWithoutSession() {
	for time.Now().Before(c.until) {
		c.call(alice)
	}
}

// call makes a call, and may disconnect or cancel it.
func (c *crowd) call(w who) {
	args := c.arguments()
	text, _ := json.Marshal(args) // strings and a number always encode
	progress := ""
	if args.Steps > 0 {
		progress = `"_meta":{"progressToken":"` + args.Key + `"}`
	}
	id := strconv.FormatInt(c.keys.Add(1), 10)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"demo__wild","arguments":%s,%s}}`, id, text, progress)
	body = strings.Replace(body, ",}}", "}}", 1)
	var header []string
	if w.session == "" {
		body, header = statelessRequest("tools/call", `"name":"demo__wild","arguments":`+string(text))
		body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":"`+args.Key+`",`, 1)
		header = append(header, "Mcp-Name: demo__wild")
		id = "7"
	}
	var cancelling sync.WaitGroup
	defer cancelling.Wait()
	ctx, leave := context.WithTimeout(c.Context(), time.Minute)
	defer leave()
	left := false
	if rand.IntN(10) == 0 || w.session == "" && args.Does == wildSilent {
		left = true
		time.AfterFunc(rand.N(5*time.Millisecond), leave)
	}
	if w.session != "" && (args.Does == wildSilent || left || rand.IntN(10) == 0) {
		cancelling.Go(func() { c.cancel(ctx, w, id) })
	}
	resp, err := c.client.Do(c.request("POST", w, body, header...).WithContext(ctx))
	if err == nil {
		err = c.read(ctx, w, resp, id, args)
	}
	if err != nil && !left {
		c.Errorf("a call that %s: %v", args.Does, err)
	}
}

func (c *crowd) arguments() wildArgs {
	args := wildArgs{Key: "key-" + strconv.FormatInt(c.keys.Add(1), 10), Does: wilds()[rand.IntN(len(wilds()))]}
	if rand.IntN(2) == 0 {
		args.Steps = rand.IntN(20)
	}
	switch n := rand.IntN(400); {
	case n == 0:
		args.Does = wildDies
	case n < 20: // more than a pipe's buffer holds
		args.Pad = strings.Repeat("x", 100_000+rand.IntN(200_000))
	}
	return args
}

// cancel cancels a call repeatedly until it is answered or the session is gone, because the first cancellation may
// arrive before the call.
func (c *crowd) cancel(ctx context.Context, w who, id string) {
	for ctx.Err() == nil {
		again := time.NewTimer(rand.N(20 * time.Millisecond))
		select {
		case <-again.C:
		case <-ctx.Done():
		}
		resp, err := c.client.Do(c.request("POST", w, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
		if err != nil {
			c.Errorf("cancel: %v", err)
			return
		}
		_ = resp.Body.Close()
	}
}

// read reads a response and checks it.
func (c *crowd) read(ctx context.Context, w who, resp *http.Response, id string, args wildArgs) error {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound { // the session has ended
		return nil
	}
	streamed := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	lines := bufio.NewReaderSize(resp.Body, 1<<16)
	progress, answers := 0, 0
	for {
		line, err := lines.ReadString('\n')
		text, isData := strings.CutPrefix(line, "data: ")
		if streamed && !isData {
			text = ""
		}
		if text = strings.TrimSpace(text); text != "" {
			if answers > 0 {
				return fmt.Errorf("something arrived after the answer: %.300s", text)
			}
			if err := c.heard(ctx, w, text, id, args, &progress, &answers); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF && answers == 1:
			c.answers.Add(1)
			if streamed {
				c.streams.Add(1)
			}
			return nil
		case err != nil:
			return fmt.Errorf("status %d, after %d answers: %w", resp.StatusCode, answers, err)
		}
	}
}

// heard checks one message of a response and counts it.
func (c *crowd) heard(ctx context.Context, w who, text, id string, args wildArgs, progress, answers *int) error {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProgressToken string
			Progress      int
		}
		Result *struct {
			Key string
			Pad int
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return fmt.Errorf("%w in %.300s", err, text)
	}
	switch {
	case m.Method == "notifications/progress":
		if *progress++; m.Params.Progress != *progress || m.Params.ProgressToken != args.Key || *progress > args.Steps {
			return fmt.Errorf("progress %d of %d arrived: %s", *progress, args.Steps, text)
		}
	case m.Method == "elicitation/create":
		body := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept","content":{}}}`
		resp, err := c.client.Do(c.request("POST", w, body).WithContext(ctx))
		if err == nil {
			_ = resp.Body.Close()
		}
	case m.Method != "": // a question was cancelled
	case string(m.ID) != id || (m.Result == nil) == (m.Error == nil):
		return fmt.Errorf("received the answer to another call: %.300s", text)
	case m.Result != nil && (m.Result.Key != args.Key || m.Result.Pad != len(args.Pad) || *progress != args.Steps):
		return fmt.Errorf("after %d of %d, the answer to %s is %.300s", *progress, args.Steps, args.Key, text)
	default:
		*answers++
	}
	return nil
}
