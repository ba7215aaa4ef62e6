package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// person answers the questions of apps.
type person struct {
	answer func(method string, params json.RawMessage) (json.RawMessage, error)

	mu    sync.Mutex
	asked []string
}

func (p *person) Ask(_ context.Context, q rpc.Question) (json.RawMessage, error) {
	method, params := q.Method, q.Params
	p.mu.Lock()
	p.asked = append(p.asked, method+" "+string(params))
	p.mu.Unlock()
	return p.answer(method, params)
}

func (p *person) questions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

func saysWord(word string) *person {
	return &person{answer: func(string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept","content":{"word":"` + word + `"}}`), nil
	}}
}

var canElicit = json.RawMessage(`{"elicitation":{}}`)

// askTool makes the test bundle ask the question in text, and returns the tool's result.
func askTool(ctx context.Context, y *Manager, text string, client *interact.Client, asker interact.Asker) (string, error) {
	raw, err := y.Call(ctx, ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(fmt.Sprintf(`{"name":"ask","arguments":{"text":%q}}`, text))}, Client: client, Asker: asker})
	if err != nil {
		return "", err
	}
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", err
	}
	if result.IsError {
		return "", errors.New(result.Content[0].Text)
	}
	return result.Content[0].Text, nil
}

func installNotes(t *testing.T, mode string, change func(*Options)) *Manager {
	t.Helper()
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), change)
	install(t, y, source.Request{Path: bundleDir(t, "notes", mode, nil)})
	return y
}

func TestAnAppThatAsksGetsAnInstanceForEachSession(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	shared := look(t, y, "notes").PID
	alice, bob := interact.NewClient("alice", false, canElicit), interact.NewClient("bob", false, canElicit)
	first, err := askTool(t.Context(), y, "first", alice, saysWord("red"))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "the first answer, through the shared instance", first, fmt.Sprintf("red %d", shared))
	var pids []string
	for _, c := range []struct {
		client *interact.Client
		word   string
	}{{alice, "green"}, {bob, "blue"}, {alice, "white"}} {
		p := saysWord(c.word)
		got, err := askTool(t.Context(), y, "hello", c.client, p)
		if err != nil {
			t.Fatal(err)
		}
		word, pid, _ := strings.Cut(got, " ")
		expect(t, "the answer", word, c.word)
		expect(t, "questions of that person", len(p.questions()), 1)
		pids = append(pids, pid)
	}
	if pids[0] != pids[2] || pids[0] == pids[1] || pids[0] == fmt.Sprint(shared) || pids[1] == fmt.Sprint(shared) {
		t.Errorf("the shared instance is %d, the instances of alice, bob and alice are %v", shared, pids)
	}
	expect(t, "a client that cannot be asked keeps the shared instance", look(t, y, "notes").PID, shared)
	y.EndSession("alice")
	var gone int
	_, _ = fmt.Sscan(pids[0], &gone)
	expectGone(t, gone)
	again, err := askTool(t.Context(), y, "hello", alice, saysWord("black"))
	if err != nil || strings.HasSuffix(again, " "+pids[0]) {
		t.Errorf("after her session ended, alice got %q (%v)", again, err)
	}
}

func TestQuestionsOfConcurrentCallsReachTheirOwnClientsOnly(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	if _, err := askTool(t.Context(), y, "so that it is known", interact.NewClient("first", false, canElicit), saysWord("x")); err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	for _, who := range []string{"alice", "bob"} {
		client := interact.NewClient(who, false, canElicit)
		for i := range 20 {
			working.Go(func() {
				nonce := fmt.Sprintf("%s-%d", who, i)
				p := &person{answer: func(_ string, params json.RawMessage) (json.RawMessage, error) {
					var q struct{ Message string }
					_ = json.Unmarshal(params, &q)
					if !strings.HasPrefix(q.Message, who) {
						t.Errorf("%s was asked %q", who, q.Message)
					}
					return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":{"word":%q}}`, q.Message)), nil
				}}
				got, err := askTool(t.Context(), y, nonce, client, p)
				if word, _, _ := strings.Cut(got, " "); err != nil || word != nonce {
					t.Errorf("%s got %q (%v)", nonce, got, err)
				}
			})
		}
	}
	working.Wait()
}

func TestAFirstQuestionIsRefusedWhileAnotherCallRuns(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	ctx, cancel := context.WithCancel(t.Context())
	hanging := make(chan struct{})
	go func() {
		defer close(hanging)
		_, _ = y.Call(ctx, ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"hang","arguments":{"text":""}}`)}})
	}()
	waitForFile(t, y, "hanging")
	alice, p := interact.NewClient("alice", false, canElicit), saysWord("red")
	if got, err := askTool(t.Context(), y, "whose is it?", alice, p); err == nil || !strings.Contains(err.Error(), "calls from several clients") {
		t.Errorf("the tool said %q (%v)", got, err)
	}
	expect(t, "questions", len(p.questions()), 0)
	if _, err := askTool(t.Context(), y, "and now?", alice, p); err != nil {
		t.Errorf("the next call: %v", err)
	}
	cancel()
	<-hanging
}

func TestAClientIsNotAskedForWhatItDidNotDeclare(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	for name, c := range map[string]*interact.Client{
		"no client":          nil,
		"no capabilities":    interact.NewClient("alice", false, nil),
		"other capabilities": interact.NewClient("alice", false, json.RawMessage(`{"sampling":{},"roots":{},"elicitation":{"url":{}}}`)),
		"odd capabilities":   interact.NewClient("alice", false, json.RawMessage(`{"elicitation":7}`)),
		"no session":         interact.NewClient("", false, nil),
	} {
		t.Run(name, func(t *testing.T) {
			p := saysWord("red")
			if got, err := askTool(t.Context(), y, "hello", c, p); err == nil {
				t.Errorf("the tool said %q", got)
			}
			expect(t, "questions", len(p.questions()), 0)
		})
	}
}

func TestSessionInstancesAreBoundedAndEndWhenIdle(t *testing.T) {
	y := installNotes(t, modeTalk, func(o *Options) { o.MaxSessionInstances, o.SessionInstanceIdle = 1, 300*time.Millisecond })
	if _, err := askTool(t.Context(), y, "known", interact.NewClient("x", false, canElicit), saysWord("x")); err != nil {
		t.Fatal(err)
	}
	alice, bob := interact.NewClient("alice", false, canElicit), interact.NewClient("bob", false, canElicit)
	got, err := askTool(t.Context(), y, "hello", alice, &person{answer: func(string, json.RawMessage) (json.RawMessage, error) {
		if _, err := askTool(t.Context(), y, "hello", bob, saysWord("blue")); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("one instance too many: %v", err)
		}
		return json.RawMessage(`{"action":"accept","content":{"word":"red"}}`), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := askTool(t.Context(), y, "hello", bob, saysWord("blue")); err != nil {
		t.Errorf("an idle instance does not make room: %v", err)
	}
	var pid int
	_, _ = fmt.Sscanf(got, "red %d", &pid)
	expectGone(t, pid)
	deadline := time.Now().Add(time.Minute)
	for sessionInstances(y) > 0 && time.Now().Before(deadline) {
		wait(t.Context(), 20*time.Millisecond)
	}
	expect(t, "instances after the idle time", sessionInstances(y), 0)
}

func TestADeadInstanceOfASessionAffectsThatSessionOnly(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	alice, p := interact.NewClient("alice", false, canElicit), saysWord("red")
	var pids [3]int
	for i := range pids {
		got, err := askTool(t.Context(), y, "hello", alice, p)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Sscanf(got, "red %d", &pids[i])
		if i != 1 {
			continue
		}
		_, err = y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"exit","arguments":{"text":""}}`)}, Client: alice, Asker: p})
		expect(t, "the call during which it died", core.CodeOf(err), core.CodeUnavailable)
		expectGone(t, pids[1])
	}
	expect(t, "the shared instance", look(t, y, "notes").PID, pids[0])
	if pids[2] == pids[1] || pids[2] == pids[0] {
		t.Errorf("alice was served by %v", pids)
	}
	health := y.Health(ws)
	expect(t, "restarts of the app", health[0].RestartCount, 0)
}

func TestStoppingAnAppEndsItsSessionInstances(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	alice := interact.NewClient("alice", false, canElicit)
	var pids [2]int
	for i := range pids {
		got, err := askTool(t.Context(), y, "hello", alice, saysWord("red"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Sscanf(got, "red %d", &pids[i])
	}
	if _, err := y.Stop(t.Context(), ws, "notes"); err != nil {
		t.Fatal(err)
	}
	expectGone(t, pids[:]...)
}

func TestABundleOfTheNewRevisionServesClientsOfBothRevisions(t *testing.T) {
	y := installNotes(t, modeNew, nil)
	expect(t, "tools", names(y.Tools(ws)), "notes__word")
	call := &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"word","arguments":{},"_meta":{"x":1}}`)}}
	if _, err := y.Call(t.Context(), ws, "notes", call.Again(call.Params, "")); err == nil || !strings.Contains(err.Error(), "did not declare") {
		t.Errorf("a caller who cannot be asked got %v", err)
	}
	p := saysWord("red")
	call.Client, call.Asker = interact.NewClient("alice", false, canElicit), p
	raw, err := y.Call(t.Context(), ws, "notes", call.Again(call.Params, ""))
	if err != nil || !strings.Contains(string(raw), "the word is red") {
		t.Errorf("a client of the older revisions got %s (%v)", raw, err)
	}
	if q := p.questions(); len(q) != 1 || !strings.Contains(q[0], `capabilities are {\"elicitation\":{}}`) {
		t.Errorf("it was asked %q", q)
	}
	call.Client, call.Asker = interact.NewClient("", true, nil), nil
	call.Params = json.RawMessage(`{"name":"word","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`)
	raw, err = y.Call(t.Context(), ws, "notes", call.Again(call.Params, ""))
	want := `{"resultType":"input_required","requestState":"s1","inputRequests":{"word":{"method":"elicitation/create","params":{"message":"capabilities are {\"roots\":{}}","requestedSchema":{}}}}}`
	if err != nil || string(raw) != want {
		t.Errorf("a client of the new revision got %s (%v), want the result unchanged", raw, err)
	}
	expect(t, "instances besides the shared one", sessionInstances(y), 0)
}

func TestABundleThatSpeaksBothRevisionsHasAConnectionForEach(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	shared := look(t, y, "notes").PID
	call := &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"inside","arguments":{"text":""},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)}, Client: interact.NewClient("", true, nil)}
	for range 2 {
		raw, err := y.Call(t.Context(), ws, "notes", call.Again(call.Params, ""))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), `"resultType":"complete"`) || strings.Contains(string(raw), fmt.Sprintf(`"PID\":%d,`, shared)) {
			t.Errorf("the result did not come from a connection with the new revision: %.300s", raw)
		}
	}
	expect(t, "instances besides the shared one", sessionInstances(y), 1)
	call.Client = interact.NewClient("s", false, nil)
	raw, err := y.Call(t.Context(), ws, "notes", call.Again(call.Params, ""))
	if err != nil || strings.Contains(string(raw), "resultType") || !strings.Contains(string(raw), fmt.Sprintf(`\"PID\":%d,`, shared)) {
		t.Errorf("a client of an older revision got %.300s (%v)", raw, err)
	}
}

func TestNotificationsOfAnAppStayInItsWorkspace(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	heard := make(chan Notification, 100)
	defer y.Listen(ws, func(x Notification) { heard <- x })()
	defer y.Listen("ws_other", func(x Notification) { t.Errorf("another workspace heard %v", x) })()
	if err := y.Subscribe(t.Context(), ws, "notes", "alice", "usr_1", "ui://view/main"); err != nil {
		t.Fatal(err)
	}
	_, _ = callTool(t, y, "notes", "touch", "ui://view/main")
	x, _ := testkit.Receive(t, "the update", heard)
	expect(t, "what was heard", x.Server+" "+x.Session+x.Method+" "+uri(x.Params), "notes notifications/resources/updated ui://view/main")
	syscallExit(t, y)
	_, _ = callTool(t, y, "notes", "touch", "ui://view/main")
	x, _ = testkit.Receive(t, "the update after a restart", heard)
	expect(t, "what was received after a restart", x.Method, "notifications/resources/updated")
	if err := y.Unsubscribe(t.Context(), ws, "notes", "alice", "usr_1", "ui://view/main"); err != nil {
		t.Fatal(err)
	}
	_, _ = callTool(t, y, "notes", "touch", "ui://view/main")
	if _, err := callTool(t, y, "notes", "echo", "after it"); err != nil {
		t.Fatal(err)
	}
	expect(t, "updates received without a subscription", len(heard), 0)
}

func TestLogMessagesFollowTheirCall(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	y.SetLogLevel(t.Context(), ws, "debug")
	var notes []string
	_, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"log","arguments":{"text":"for my eyes"}}`), Notify: func(n rpc.Notification) { notes = append(notes, n.Method+" "+string(n.Params)) }}})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "for my eyes") {
		t.Errorf("the caller heard %q (%v)", notes, err)
	}
}

// waitForFile waits until the app has created a file with this name in its data directory.
func waitForFile(t *testing.T, y *Manager, name string) {
	t.Helper()
	path := filepath.Join(source.LayoutOf(y.o.Home, ws).DataDir("notes"), name)
	testkit.Eventually(t, "there is a file "+name, func() bool { return files.Exists(path) })
}

func uri(params json.RawMessage) string {
	var said struct{ URI string }
	_ = json.Unmarshal(params, &said)
	return said.URI
}

// syscallExit makes the app exit, and waits until it is serving again.
func syscallExit(t *testing.T, y *Manager) {
	t.Helper()
	before := look(t, y, "notes").PID
	_, _ = callTool(t, y, "notes", "exit", "")
	if look(t, y, "notes").PID == before {
		t.Fatal("the app was not restarted")
	}
}

// sessionInstances counts the instances of the session pool.
func sessionInstances(y *Manager) (n int) {
	for _, a := range y.allApps() {
		n += len(a.dialog.Instances())
	}
	return n
}
