package chat

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

const (
	titlesAtOnce = 4
	titleTimeout = 30 * time.Second
	titleLength  = 80   // characters
	titleSource  = 2000 // characters of each message that the model sees
	titleTokens  = 64

	titlePrompt = "Write a title for the conversation that the person's message begins. At most six words, in the person's language, " +
		"no quotation marks, no full stop. Answer with the title alone."
)

// titles generates conversation titles in the background.
type titles struct {
	ctx  context.Context // ends with the server
	stop context.CancelFunc
	free chan struct{} // limits concurrent titles
	wg   *sync.WaitGroup
	mu   *sync.Mutex // serializes wg.Go with close
}

func newTitles() titles {
	t := titles{free: make(chan struct{}, titlesAtOnce), wg: &sync.WaitGroup{}, mu: &sync.Mutex{}}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

func (t titles) close(ctx context.Context) error {
	t.mu.Lock()
	t.stop()
	t.mu.Unlock()
	return core.Await(ctx, t.wg.Wait)
}

// start runs a function in the background, unless the server is shutting down.
func (t titles) start(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() == nil {
		t.wg.Go(do)
	}
}

// startTitle generates a title for a conversation in the background. If too many are being generated, it does
// nothing, and the next run tries again.
func (e *Engine) startTitle(c core.Caller, ref core.ConversationRef, message, answer string) {
	t := e.titles
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return
	}
	select {
	case t.free <- struct{}{}:
	default:
		return
	}
	t.wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				e.log.Error("finding a title panicked", "conversation", ref.ID, "panic", p, "stack", string(debug.Stack()))
			}
			<-t.free
		}()
		ctx, cancel := context.WithTimeout(t.ctx, titleTimeout)
		defer cancel()
		if err := e.findTitle(ctx, c, ref, message, answer); err != nil && t.ctx.Err() == nil && core.CodeOf(err) != core.CodeNotFound {
			e.log.Debug("could not find a title for a conversation", "conversation", ref.ID, "error", err)
		}
	})
}

func (e *Engine) findTitle(ctx context.Context, c core.Caller, ref core.ConversationRef, message, reply string) error {
	llm, err := e.selectFastModel(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	answer, err := model.Call(ctx, llm.provider, llm.name, model.Request{
		System: []string{titlePrompt}, MaxTokens: titleTokens,
		Messages: []model.Message{model.TextMessage(model.User, "The person wrote:\n"+head(message, titleSource)+"\n\nThe assistant answered:\n"+head(reply, titleSource))},
	}, model.Pieces{}, func(*model.Error, time.Duration) {})
	used := llm.usage(c, answer.Usage, start)
	e.metrics.ModelCall(used, err != nil && ctx.Err() == nil)
	if answer.Usage != (model.Usage{}) {
		used.Conversation = ref.ID
		if err := e.store.PutUsage(ctx, used); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	title := plainTitle(answer.Text(), titleLength)
	if title == "" {
		return nil
	}
	changed, err := e.store.UpdateConversation(ctx, ref, core.ConversationPatch{Title: &title, OnlyUntitled: true})
	if err == nil && changed.Title == title {
		e.publishTitle(ref, title)
	}
	return err
}

func (e *Engine) publishTitle(ref core.ConversationRef, title string) {
	e.publish(ref, core.EventConversationUpdated, core.ConversationUpdated{ID: ref.ID, Title: title})
}

// publish publishes an event to the owner of a conversation only.
func (e *Engine) publish(ref core.ConversationRef, name string, data any) {
	if e.events != nil {
		e.events.Publish(core.Event{Name: name, Workspace: ref.Workspace, Owner: ref.Owner, Data: data})
	}
}
