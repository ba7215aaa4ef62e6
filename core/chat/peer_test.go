package chat_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/store"
)

// heard records the events of a run as one client receives them.
type heard struct{ ids, names, data []string }

func (h *heard) write(id, name string, data []byte) error {
	h.ids, h.names, h.data = append(h.ids, id), append(h.names, name), append(h.data, string(data))
	return nil
}

func TestAnotherServerRelaysEveryEventWhateverItsSize(t *testing.T) {
	a, b, _ := twoServers(t)
	picture := strings.Repeat("QUFB", 7<<20/4)
	goOn := make(chan struct{})
	a.apps.do["do"] = func(ctx context.Context, _ string, _ func(rpc.Notification)) (string, error) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return `{"content":[{"type":"text","text":"a picture"},{"type":"audio","mimeType":"audio/wav","data":"` + picture + `"}]}`, ctx.Err()
	}
	run, err := a.Begin(t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		t.Fatal(err)
	}
	live := a.Detach(run, context.WithCancel, func() {})
	all, err := a.Conversations(t.Context(), owner(), core.ConversationQuery{})
	if err != nil || len(all.Conversations) != 1 {
		t.Fatal(all, err)
	}
	there, err := b.Live(t.Context(), owner(), all.Conversations[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var here, far heard
	err = there.Follow(t.Context(), "", func(id, name string, data []byte) error {
		if name == "tool.start" {
			close(goOn)
		}
		return far.write(id, name, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Follow(t.Context(), "", here.write); err != nil {
		t.Fatal(err)
	}
	if n := len(far.names); n == 0 || n != len(here.names) || far.names[n-1] != chat.EventDone {
		t.Fatalf("through the other server %q, here %q", far.names, here.names)
	}
	size := 0
	for i := range here.names {
		size = max(size, len(far.data[i]))
		if far.ids[i] != here.ids[i] || far.data[i] != here.data[i] {
			t.Errorf("event %s %s is %s %.100s through the other server", here.ids[i], here.names[i], far.ids[i], far.data[i])
		}
	}
	if size < 7<<20 {
		t.Errorf("the largest event has %d bytes: the result of the tool is missing", size)
	}
	if _, err := b.Live(t.Context(), owner(), all.Conversations[0].ID); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("after the end of the run: %v", err)
	}
}

func TestARunIsStoppedThroughAnotherServer(t *testing.T) {
	a, b, entered := twoServers(t)
	run, err := a.Begin(t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		t.Fatal(err)
	}
	live := a.Detach(run, context.WithCancel, func() {})
	<-entered
	all, err := a.Conversations(t.Context(), owner(), core.ConversationQuery{})
	if err != nil {
		t.Fatal(err)
	}
	id := all.Conversations[0].ID
	stranger := owner()
	stranger.User.ID = "usr_somebody_else"
	if err := b.StopRun(t.Context(), stranger, id); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("another user stopped it: %v", err)
	}
	if _, err := b.Live(t.Context(), stranger, id); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("another user joined it: %v", err)
	}
	if err := b.StopRun(t.Context(), owner(), id); err != nil {
		t.Fatal(err)
	}
	if answer, err := live.Wait(t.Context()); answer.StopReason != chat.Cancelled || err != nil {
		t.Errorf("it ended with %+v, %v", answer, err)
	}
	b.must(chat.Request{Message: "next", ConversationID: id}) // immediately
	if err := b.StopRun(t.Context(), owner(), id); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("without a run: %v", err)
	}
}

func TestAUserFollowsAsManyRunsOnAnotherServerAsStreamsAreAllowed(t *testing.T) {
	const followers = 80
	state, p := store.Options{URL: core.Secret(databases.New(t))}, provider.Provider(t)
	allow := func(o *chat.Options) {
		o.Limits = limits.New(limits.Settings{AtATime: map[limits.Kind]int{limits.Streams: followers}})
	}
	a, b := openOn(t, t.TempDir(), state, p, "openai", nil, allow), openOn(t, t.TempDir(), state, p, "openai", nil, allow)
	p.Say(t, titled, asks(`{"name":"files__do","arguments":{}}`), `{"match":{},"response":{"content":"Ok."}}`)
	a.apps.add("files", "do", "")
	goOn := make(chan struct{})
	a.apps.do["do"] = func(ctx context.Context, _ string, _ func(rpc.Notification)) (string, error) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return ``, ctx.Err()
	}
	run, err := a.Begin(t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		t.Fatal(err)
	}
	a.Detach(run, context.WithCancel, func() {})
	all, err := a.Conversations(t.Context(), owner(), core.ConversationQuery{})
	if err != nil || len(all.Conversations) != 1 {
		t.Fatal(all, err)
	}
	there, err := b.Live(t.Context(), owner(), all.Conversations[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var joined, following sync.WaitGroup
	joined.Add(followers)
	for range followers {
		following.Go(func() {
			join := sync.OnceFunc(joined.Done)
			defer join()
			if err := there.Follow(t.Context(), "", func(_, name string, _ []byte) error {
				if name == "tool.start" { // from then on it waits for the next event
					join()
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	joined.Wait()
	close(goOn)
	following.Wait()
}
