package chat

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// saveEvery bounds how much of an answer a server that is killed loses.
const saveEvery = 1500 * time.Millisecond

// unfinished is the turn that a run is in. What it has so far is saved from time to time, until the turn ends.
type unfinished struct {
	save  func(ctx context.Context, t *turn)
	began time.Time

	saving sync.Mutex // held while something is saved

	mu      sync.Mutex
	timer   *time.Timer // nil while there is nothing new to save
	ended   bool
	text    strings.Builder
	thought strings.Builder
	asked   []model.Block
	calls   []ToolCall
	results []model.Block
}

// newUnfinished returns a turn without anything. A nil save saves nothing.
func newUnfinished(save func(ctx context.Context, t *turn)) *unfinished {
	u := &unfinished{save: save, began: time.Now(), ended: save == nil}
	u.change(func() {})
	return u
}

// change changes the turn, which will be saved.
func (u *unfinished) change(do func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	do()
	if u.timer == nil {
		u.timer = time.AfterFunc(saveEvery, u.flush)
	}
}

func (u *unfinished) flush() {
	u.saving.Lock()
	defer u.saving.Unlock()
	u.mu.Lock()
	u.timer = nil
	t, ended := u.turn(), u.ended
	u.mu.Unlock()
	if ended {
		return
	}
	u.save(context.Background(), &t)
}

// turn is the turn so far, as one that ended here. The caller holds the mutex.
func (u *unfinished) turn() turn {
	t := turn{text: u.text.String(), calls: slices.Clone(u.calls), stopped: Incomplete}
	t.used.LLM = time.Since(u.began)
	var said []model.Block
	if u.thought.Len() > 0 {
		said = append(said, model.Block{Kind: model.Reasoning, Text: u.thought.String()})
	}
	if len(u.asked) > 0 {
		said = slices.Clone(u.asked)
	} else if t.text != "" {
		said = append(said, model.Block{Kind: model.Text, Text: t.text})
	}
	if len(said) > 0 {
		t.messages = append(t.messages, model.Message{Role: model.Assistant, Blocks: said})
	}
	if len(u.results) > 0 {
		t.messages = append(t.messages, model.Message{Role: model.User, Blocks: slices.Clone(u.results)})
	}
	return t
}

// called adds the calls that the model asks for: blocks is all that it said.
func (u *unfinished) called(blocks []model.Block) {
	u.change(func() {
		u.asked = slices.Clone(blocks)
		for i := range u.asked {
			if u.asked[i].Kind == model.ToolUse {
				removeInvalidInput(&u.asked[i])
			}
		}
	})
}

// answered adds the result of a call.
func (u *unfinished) answered(call ToolCall, result model.Block) {
	u.change(func() { u.calls, u.results = append(u.calls, call), append(u.results, result) })
}

// end stops saving: nothing is saved any more when it returns.
func (u *unfinished) end() {
	u.mu.Lock()
	u.ended = true
	if u.timer != nil {
		u.timer.Stop()
	}
	u.mu.Unlock()
	u.saving.Lock() // of a save that has begun
	defer u.saving.Unlock()
}
