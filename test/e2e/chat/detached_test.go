package chat

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestADetachedRunContinuesAndCanBeJoined(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "anthropic"))
	p.Say(t,
		`{"match":{"userMessage":"short"},"response":{"content":"`+strings.Repeat("word ", 60)+`the end"},"chunkSize":20,"latency":500}`,
		`{"match":{"userMessage":"long"},"response":{"content":"`+strings.Repeat("word ", 5000)+`"},"chunkSize":5,"latency":20}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	history := func(id string) string { return s.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body }

	id := s.Leave(t, "short")
	if a := s.Do(t, "POST", "/v1/chat", `{"message":"me too","conversationId":"`+id+`"}`); a.Status != 409 {
		t.Errorf("while a detached run continues: %d %s", a.Status, a.Body)
	}
	status, ids, names, output := s.Join(t, id, "")
	if status != 200 || len(names) < 3 || names[0] != "chat.start" || names[len(names)-1] != "done" || !strings.Contains(output, "the end") || len(ids) != len(names) {
		t.Fatalf("joined: %d %q %q %s", status, ids, names, output)
	}
	if got := history(id); !strings.Contains(got, "the end") || strings.Contains(got, "stopReason") {
		t.Errorf("the history is %s", got)
	}
	if status, _, _, output := s.Join(t, id, ""); status != 404 || !strings.Contains(output, "its messages are in its history") {
		t.Errorf("after the end: %d %s", status, output)
	}

	id = s.Leave(t, "short")
	if _, all, _, _ := s.Join(t, id, ids[len(ids)-1]); len(all) != len(ids) { // the ID of an event in another run
		t.Errorf("after an event ID of another run, got %d events, want all %d", len(all), len(ids))
	}
	var begun string
	s.Chat(t.Context(), t, `{"message":"short","detach":true}`, func(e harness.ChatEvent) bool {
		id, _ = e.Data["conversationId"].(string)
		begun, _ = e.Data["runId"].(string)
		return true
	})
	if _, rest, names, _ := s.Join(t, id, begun+".3"); len(rest) != len(ids)-3 || names[0] != "text.delta" || rest[0] != begun+".4" {
		t.Errorf("after the third event, got %q, want the last %d", rest, len(ids)-3)
	}

	id = s.Leave(t, "long")
	if a := s.Do(t, "DELETE", "/v1/conversations/"+id+"/run", nil); a.Status != 200 || !strings.Contains(history(id), `"stopReason":"cancelled"`) {
		t.Errorf("stopping the run: %d %s; the history is %s", a.Status, a.Body, history(id))
	}
	if a := s.Do(t, "DELETE", "/v1/conversations/"+id+"/run", nil); a.Status != 404 {
		t.Errorf("stopping the run again: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "POST", "/v1/chat", `{"message":"next","conversationId":"`+id+`"}`); a.Status != 200 {
		t.Errorf("after the run was stopped: %d %s", a.Status, a.Body)
	}

	id = s.Leave(t, "long")
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !testkit.Within(harness.Timeout, s.Exited) {
		t.Fatal("a detached run should not delay the shutdown")
	}
	s.Start()
	if got := history(id); !strings.Contains(got, `"content":"word`) || !strings.Contains(got, `"stopReason":"incomplete"`) {
		t.Errorf("after the restart, the history is %s", got)
	}
}

func TestAMessageIsQueuedDuringARun(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "anthropic"))
	p.Say(t,
		`{"match":{"userMessage":"long"},"response":{"content":"`+strings.Repeat("word ", 5000)+`"},"chunkSize":5,"latency":20}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	id := s.Leave(t, "long")
	queue := func(path, message string) harness.Response {
		return s.Do(t, "POST", path, `{"message":"`+message+`","conversationId":"`+id+`","queue":true}`)
	}
	address := "/v1/conversations/" + id + "/queue"
	history := func() string { return s.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body }
	if a := queue("/v1/chat/stream", "and then?"); a.Status != 202 || a.Object(t)["stopReason"] != "queued" || a.Header.Get("Location") != address {
		t.Fatalf("queued: %d %s, at %q", a.Status, a.Body, a.Header.Get("Location"))
	}
	if a := queue("/v1/chat", "too much"); a.Status != 409 || a.Object(t)["error"] != "conflict" || !strings.Contains(a.Body, "queued") {
		t.Errorf("a second queued message: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "GET", address, nil); a.Status != 200 || !strings.Contains(a.Body, `"queued":{"id":"que_`) || !strings.Contains(a.Body, `"content":"and then?"`) {
		t.Errorf("the queued message is shown as %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "DELETE", address, nil); a.Status != 200 || !strings.Contains(a.Body, "and then?") {
		t.Errorf("withdrawing the message: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "GET", address, nil); a.Status != 200 || !strings.Contains(a.Body, `"queued":null`) {
		t.Errorf("after the withdrawal: %d %s", a.Status, a.Body)
	}
	if a := queue("/v1/chat", "or this?"); a.Status != 202 {
		t.Fatalf("queued: %d %s", a.Status, a.Body)
	}
	s.Do(t, "DELETE", "/v1/conversations/"+id+"/run", nil)
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(history(), `"content":"Ok."`) }) || strings.Contains(history(), "and then?") || !strings.Contains(history(), "or this?") {
		t.Errorf("the history is %s", history())
	}

	id = s.Leave(t, "long")
	if a := queue("/v1/chat", "not lost"); a.Status != 202 {
		t.Fatalf("queued: %d %s", a.Status, a.Body)
	}
	s.Kill()
	s.Start()
	// With PostgreSQL, another server may own the run until the run's lease expires.
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(history(), `"role":"user","content":"not lost"`) }) {
		t.Errorf("after a kill, the history is %s", history())
	}
	if a := s.Do(t, "GET", "/v1/conversations/"+id+"/queue", nil); !strings.Contains(a.Body, `"queued":null`) {
		t.Errorf("after a kill, the message is still queued: %d %s", a.Status, a.Body)
	}
}

func TestADetachedRunEndsWhenItsUserLosesAccess(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "anthropic"), harness.Env("SERVICE_API_KEY="+harness.APIKey))
	owner := "Authorization: Bearer " + harness.APIKey
	p.Say(t, `{"match":{},"response":{"content":"`+strings.Repeat("word ", 5000)+`"},"chunkSize":5,"latency":20}`)
	made := s.Do(t, "POST", "/v1/keys", `{"name":"k","role":"admin"}`, owner).Object(t)
	key, _ := made["key"].(string)
	keyID, _ := made["id"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/chat/stream", strings.NewReader(`{"message":"go","detach":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 200)
	_, _ = resp.Body.Read(first)
	cancel()
	resp.Body.Close()
	left := func() int64 {
		asked := requestsWith(t, p, "go")
		if len(asked) == 0 {
			return 0
		}
		return asked[0].Response.Left
	}
	if !testkit.Within(harness.Timeout, func() bool { return len(requestsWith(t, p, "go")) > 0 }) {
		t.Fatal("the model was not called")
	}
	if left() != 0 {
		t.Fatal("the run should continue after its client disconnects")
	}
	if a := s.Do(t, "DELETE", "/v1/keys/"+keyID, nil, owner); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if !testkit.Within(harness.Timeout, func() bool { return left() > 0 }) {
		t.Error("the run should end when its key is deleted")
	}
}

// proxy forwards connections to a server. cut closes all of these connections.
func proxy(t *testing.T, s *harness.Server) (address string, cut func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return "http://" + listener.Addr().String(), func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
		open = nil
	}
}

func TestTheCommandRejoinsAndStopsItsRun(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "anthropic"))
	p.Say(t,
		`{"match":{"userMessage":"short"},"response":{"content":"begin `+strings.Repeat("word ", 60)+`the end"},"chunkSize":20,"latency":500}`,
		`{"match":{"userMessage":"long"},"response":{"content":"begin `+strings.Repeat("word ", 5000)+`"},"chunkSize":5,"latency":20}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	address, cut := proxy(t, s)
	start := func(message string) (cmd *exec.Cmd, out, notes *testkit.Log) {
		cmd = exec.CommandContext(t.Context(), harness.Binary(t), "chat", message, "--server", address)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, notes = &testkit.Log{}, &testkit.Log{}
		cmd.Stdout, cmd.Stderr = out, notes
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !testkit.Within(harness.Timeout, func() bool { return out.Contains("begin") }) {
			t.Fatalf("the answer did not start: %s %s", out, notes)
		}
		return cmd, out, notes
	}
	cmd, out, notes := start("short")
	cut()
	err := cmd.Wait()
	if output := out.String(); err != nil || strings.Count(output, "begin") != 1 || strings.Count(output, "word") != 60 || !strings.Contains(output, "the end") || !strings.Contains(notes.String(), "The connection was lost") {
		t.Errorf("after its connection was cut: %v %q %q", err, output, notes)
	}

	cmd, _, _ = start("long")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit status is an error, because the command was interrupted
	list := s.Do(t, "GET", "/v1/conversations", nil).Body
	id := "conv_" + strings.SplitN(strings.SplitN(list, `"conv_`, 2)[1], `"`, 2)[0]
	if got := s.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body; !strings.Contains(got, `"stopReason":"cancelled"`) {
		t.Errorf("after the command was interrupted, the history is %s", got)
	}
}
