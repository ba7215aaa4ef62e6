package chat

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// saveEvery limits how much of an answer is lost when the server is killed.
const saveEvery = 1500 * time.Millisecond

// unfinished is the current turn of a run. Its content so far is saved periodically until the turn ends.
type unfinished struct {
	save  func(ctx context.Context, t *turn)
	began time.Time

	saving sync.Mutex // held during a save

	mu      sync.Mutex
	timer   *time.Timer // nil if there is nothing new to save
	ended   bool
	text    strings.Builder
	thought strings.Builder
	asked   []model.Block
	calls   []ToolCall
	results []model.Block
	used    core.Usage // of the model call; zero until it completes
}

// newUnfinished returns an empty turn. With a nil save, nothing is saved.
func newUnfinished(save func(ctx context.Context, t *turn)) *unfinished {
	u := &unfinished{save: save, began: time.Now(), ended: save == nil}
	u.change(func() {})
	return u
}

// change applies a change to the turn and schedules a save.
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

// turn returns the content so far as a turn that ended as Incomplete. The caller must hold u.mu.
func (u *unfinished) turn() turn {
	t := turn{text: u.text.String(), calls: slices.Clone(u.calls), stopped: Incomplete, used: u.used}
	if t.used.At.IsZero() {
		t.used.LLM = time.Since(u.began)
	}
	var blocks []model.Block
	if u.thought.Len() > 0 {
		blocks = append(blocks, model.Block{Kind: model.Reasoning, Text: u.thought.String()})
	}
	if len(u.asked) > 0 {
		blocks = slices.Clone(u.asked)
	} else if t.text != "" {
		blocks = append(blocks, model.Block{Kind: model.Text, Text: t.text})
	}
	if len(blocks) > 0 {
		t.messages = append(t.messages, model.Message{Role: model.Assistant, Blocks: blocks})
	}
	if len(u.results) > 0 {
		t.messages = append(t.messages, model.Message{Role: model.User, Blocks: slices.Clone(u.results)})
	}
	return t
}

// called records the tool calls that the model requested. blocks is everything the model said, and used is what it
// cost.
func (u *unfinished) called(blocks []model.Block, used core.Usage) {
	u.change(func() {
		u.used = used
		u.asked = slices.Clone(blocks)
		for i := range u.asked {
			if u.asked[i].Kind == model.ToolUse {
				removeInvalidInput(&u.asked[i])
			}
		}
	})
}

// answered adds the result of a tool call.
func (u *unfinished) answered(call ToolCall, result model.Block) {
	u.change(func() { u.calls, u.results = append(u.calls, call), append(u.results, result) })
}

// end stops saving, and returns the content so far. Nothing is saved after it returns. ok is false if the turn had ended
// before.
func (u *unfinished) end() (t turn, ok bool) {
	u.mu.Lock()
	t, ok = u.turn(), !u.ended
	u.ended = true
	if u.timer != nil {
		u.timer.Stop()
	}
	u.mu.Unlock()
	u.saving.Lock() // wait for a save in progress
	defer u.saving.Unlock()
	return t, ok
}
