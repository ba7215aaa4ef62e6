package chat_test

import (
	"context"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// twoServers returns two engines on one PostgreSQL. The first has a tool that runs until it is cancelled.
func twoServers(t *testing.T) (a, b *fixture, entered chan struct{}) {
	t.Helper()
	state, p := store.Options{URL: core.Secret(databases.New(t))}, provider.Provider(t)
	a, b = openOn(t, t.TempDir(), state, p, "openai", nil), openOn(t, t.TempDir(), state, p, "openai", nil)
	p.Say(t, titled, asks(`{"name":"files__do","arguments":{}}`), `{"match":{},"response":{"content":"Ok."}}`)
	a.apps.add("files", "do", "")
	entered = make(chan struct{})
	a.apps.do["do"] = func(ctx context.Context, _ string, _ func(rpc.Notification)) (string, error) {
		close(entered)
		<-ctx.Done()
		return ``, ctx.Err()
	}
	return a, b, entered
}

func TestAConversationHasOneRunInTheWholeCluster(t *testing.T) {
	a, b, entered := twoServers(t)
	first, _ := b.must(chat.Request{Message: "hi"})
	id := first.ConversationID
	run, err := a.Begin(t.Context(), owner(), chat.Request{Message: "go", ConversationID: id})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	over := make(chan chat.Answer)
	go func() {
		answer, _ := run.Do(ctx, (&tape{}).emit)
		over <- answer
	}()
	<-entered
	for end := time.Now().Add(lease + lease/2); time.Now().Before(end); <-time.After(20 * time.Millisecond) { // the lease is renewed
		_, err := b.Begin(t.Context(), owner(), chat.Request{Message: "me too", ConversationID: id})
		if code := core.CodeOf(err); code != core.CodeRunInProgress && code != core.CodeUnavailable { // PostgreSQL may be too slow on a busy machine
			t.Fatalf("a second run through another server returned %v", err)
		}
	}
	b.must(chat.Request{Message: "other"}) // in another conversation
	leave()
	if answer := <-over; answer.StopReason != chat.Cancelled {
		t.Errorf("the run ended with %+v", answer)
	}
	b.must(chat.Request{Message: "next", ConversationID: id}) // immediately
}

func TestARunEndsWhenItsConversationIsDeletedThroughAnotherServer(t *testing.T) {
	a, b, entered := twoServers(t)
	run, err := a.Begin(t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		t.Fatal(err)
	}
	events, over := &tape{}, make(chan chat.Answer)
	go func() {
		answer, err := run.Do(t.Context(), events.emit)
		if err != nil {
			t.Error(err)
		}
		over <- answer
	}()
	<-entered
	id := events.data("chat.start")[0]["conversationId"].(string)
	if err := b.Delete(t.Context(), owner(), id); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if answer := <-over; answer.StopReason != chat.Cancelled || time.Since(start) > 30*time.Second {
		t.Errorf("after %v the run ended with %+v", time.Since(start), answer)
	}
}

func TestAConversationIsFreeAgainWhenItsServerIsKilled(t *testing.T) {
	a, b, _ := twoServers(t)
	first, _ := a.must(chat.Request{Message: "hi"})
	ref := owner().Conversation(first.ConversationID)
	if err := a.store.ClaimRun(t.Context(), ref, "run_of_one_that_was_killed", lease); err != nil { // never renewed
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := b.Begin(t.Context(), owner(), chat.Request{Message: "go on", ConversationID: ref.ID}); core.CodeOf(err) != core.CodeRunInProgress {
		t.Fatalf("at first it returned %v", err)
	}
	testkit.Eventually(t, "the lease is free", func() bool {
		run, err := b.Begin(t.Context(), owner(), chat.Request{Message: "go on", ConversationID: ref.ID})
		if err == nil {
			run.Abandon()
		}
		return err == nil
	})
	if took := time.Since(start); took > lease+30*time.Second {
		t.Errorf("it was free after %v", took)
	}
}
