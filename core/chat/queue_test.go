package chat_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// queue queues a message with a detached run.
func (h *fixture) queue(id, message string) (*core.QueuedMessage, error) {
	h.t.Helper()
	return h.Queue(h.t.Context(), owner(), chat.Request{Message: message, ConversationID: id}, func(ctx context.Context, r chat.Request) error {
		run, err := h.Begin(ctx, owner(), r)
		if err == nil {
			h.Detach(run, context.WithCancel, func() {})
		}
		return err
	})
}

// said returns the history of a conversation: each text with the first letter of its role.
func (h *fixture) said(id string) string {
	h.t.Helper()
	all, err := h.History(h.t.Context(), owner(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	var texts []string
	for _, m := range all {
		texts = append(texts, m.Role[:1]+":"+m.Content)
	}
	return strings.Join(texts, " ")
}

// waits returns the message that is waiting in a conversation, or "" if there is none.
func (h *fixture) waits(id string) string {
	h.t.Helper()
	q, err := h.Queued(h.t.Context(), owner(), id)
	if core.CodeOf(err) == core.CodeNotFound {
		return ""
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return q.Message.Content
}

// busy returns a conversation with a detached run that continues until goOn is called.
func (h *fixture) busy() (id string, goOn func()) {
	h.t.Helper()
	h.model.Forget(h.t)
	h.model.Say(h.t, titled, `{"match":{"userMessage":"go","hasToolResult":false},"response":{"toolCalls":[{"id":"c1","name":"files__do","arguments":{}}]}}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	h.apps.add("files", "do", "")
	entered, gate := make(chan struct{}), make(chan struct{})
	h.apps.do["do"] = func(ctx context.Context, _ string, _ func(rpc.Notification)) (string, error) {
		close(entered)
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return `{"content":[]}`, ctx.Err()
	}
	run, err := h.Begin(h.t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Detach(run, context.WithCancel, func() {})
	<-entered
	all, err := h.Conversations(h.t.Context(), owner(), core.ConversationQuery{})
	if err != nil {
		h.t.Fatal(err)
	}
	return all.Conversations[0].ID, func() { close(gate) }
}

func TestAQueuedMessageRunsWhenTheCurrentRunEnds(t *testing.T) {
	h := open(t, "openai", nil)
	id, goOn := h.busy()
	q, err := h.queue(id, "and then?")
	if err != nil || q == nil || h.waits(id) != "and then?" {
		t.Fatalf("queued: %+v %v, and %q waits", q, err, h.waits(id))
	}
	if _, err := h.queue(id, "too much"); core.CodeOf(err) != core.CodeConflict || !strings.Contains(err.Error(), "queued") {
		t.Errorf("a second one: %v", err)
	}
	if got := h.said(id); got != "u:go" {
		t.Errorf("meanwhile the history is %s", got)
	}
	goOn()
	testkit.Eventually(t, "the run of the queued message", func() bool { return h.said(id) == "u:go a:Ok. u:and then? a:Ok." })
	if h.waits(id) != "" {
		t.Errorf("%q still waits", h.waits(id))
	}
	testkit.Eventually(t, "the conversation is free", func() bool {
		run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "and now?", ConversationID: id})
		if err == nil {
			run.Abandon()
		}
		return err == nil
	})
	if q, err := h.queue(id, "at once"); q != nil || err != nil {
		t.Errorf("a message was queued without a run: %+v %v", q, err)
	}
}

func TestAWithdrawnQueuedMessageIsNotRun(t *testing.T) {
	h := open(t, "openai", nil)
	id, goOn := h.busy()
	if _, err := h.queue(id, "no"); err != nil {
		t.Fatal(err)
	}
	if q, err := h.Withdraw(t.Context(), owner(), id); err != nil || q.Message.Content != "no" {
		t.Errorf("withdrawn: %+v %v", q, err)
	}
	if _, err := h.Withdraw(t.Context(), owner(), id); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("withdrawn again: %v", err)
	}
	if _, err := h.queue(id, "yes"); err != nil {
		t.Fatal(err)
	}
	goOn()
	testkit.Eventually(t, "the run of the other one", func() bool { return h.said(id) == "u:go a:Ok. u:yes a:Ok." })
}

func TestAWithdrawnQueuedMessageReturnsItsFiles(t *testing.T) {
	h := open(t, "openai", nil)
	id, goOn := h.busy()
	files := []chat.Attachment{
		{Name: "a.txt", MIMEType: "text/plain", Data: encoded("the words")},
		{Name: "b.png", MIMEType: "image/png", URL: "https://example.com/b.png"},
	}
	start := func(context.Context, chat.Request) error { return nil }
	if _, err := h.Queue(t.Context(), owner(), chat.Request{Message: "look", ConversationID: id, Attachments: files}, start); err != nil {
		t.Fatal(err)
	}
	q, err := h.Withdraw(t.Context(), owner(), id)
	if got := chat.AttachmentsOf(q); err != nil || !slices.Equal(got, files) {
		t.Errorf("withdrawn with %+v, %v", got, err)
	}
	goOn()
	testkit.Eventually(t, "the end of the run", func() bool { return h.said(id) == "u:go a:Ok." })
}

func TestAQueuedMessageSurvivesItsServersShutdown(t *testing.T) {
	h := open(t, "openai", nil)
	id, _ := h.busy()
	if _, err := h.queue(id, "and then?"); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.said(id); !strings.HasPrefix(got, "u:go ") || !strings.HasSuffix(got, " u:and then?") || h.waits(id) != "" {
		t.Errorf("the history is %s, and %q waits", got, h.waits(id))
	}
}

func TestAMessageIsQueuedAndWithdrawnThroughAnotherServer(t *testing.T) {
	a, b, _ := twoServers(t)
	id, goOn := a.busy()
	if _, err := b.queue(id, "no"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.queue(id, "too much"); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("a second one, through the other server: %v", err)
	}
	if a.waits(id) != "no" {
		t.Errorf("on the other server %q waits", a.waits(id))
	}
	if _, err := a.Withdraw(t.Context(), owner(), id); err != nil {
		t.Error(err)
	}
	if _, err := b.queue(id, "yes"); err != nil {
		t.Fatal(err)
	}
	goOn()
	testkit.Eventually(t, "the run of the queued message", func() bool { return a.said(id) == "u:go a:Ok. u:yes a:Ok." })
	queued := func() string { // the other server publishes the event for the withdrawal
		var all []any
		for _, e := range b.bus.All() {
			if e.Name == core.EventConversationQueued {
				all = append(all, e.Data.(core.ConversationQueued).Queued)
			}
		}
		return text(all)
	}
	testkit.Eventually(t, "the events of the queue", func() bool { return queued() == "[true,true,false]" })
}
