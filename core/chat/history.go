package chat

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/part"
)

// messageMetadata is the metadata of an assistant message. What is stored is that of one turn; what is
// shown is that of a whole run.
type messageMetadata struct {
	Skill        *string     `json:"skill,omitempty"`
	ToolCalls    []ToolCall  `json:"toolCalls"`
	Parts        []part.Part `json:"parts,omitempty"` // not stored: they follow from the turns
	InputTokens  int64       `json:"inputTokens"`
	OutputTokens int64       `json:"outputTokens"`
	CostUSD      *float64    `json:"costUsd"`
	Model        string      `json:"model"`
	LLMMs        int64       `json:"llmMs"`
	Iterations   int         `json:"iterations"`
	StopReason   StopReason  `json:"stopReason,omitempty"` // when it is not complete
}

// History returns the messages of a conversation, with one assistant message for each run;
// core.CodeNotFound unless it exists and is the caller's.
func (e *Engine) History(ctx context.Context, c core.Caller, id string) ([]core.Message, error) {
	stored, err := e.store.Messages(ctx, c.Conversation(id))
	if err != nil {
		return nil, err
	}
	return mergeRuns(stored), nil
}

// mergeRuns joins each message with those that continue it.
func mergeRuns(stored []core.Message) []core.Message {
	shown := make([]core.Message, 0, len(stored))
	for from := 0; from < len(stored); {
		to := from + 1
		for to < len(stored) && stored[to].Continues {
			to++
		}
		shown = append(shown, mergeMessage(stored[from:to]))
		from = to
	}
	return shown
}

// mergeMessage joins the turns of one run. A message without blocks was not said in a run: it is a user's
// or an imported one, whose metadata is that of the whole message already.
func mergeMessage(turns []core.Message) core.Message {
	whole := turns[0]
	if len(turns) == 1 && (whole.Role != string(model.Assistant) || len(whole.Blocks) == 0) {
		return whole
	}
	var texts []string
	var sum messageMetadata
	said, calls := make([]string, len(turns)), make([]int, len(turns))
	priced, readable := true, true
	for i, t := range turns {
		if said[i] = t.Content; t.Content != "" {
			texts = append(texts, t.Content)
		}
		var m messageMetadata
		if len(t.Metadata) > 0 && json.Unmarshal(t.Metadata, &m) != nil {
			readable = false
			continue
		}
		calls[i] = len(m.ToolCalls)
		priced = priced && m.CostUSD != nil
		sum = sum.plus(m)
	}
	whole.Content = strings.Join(texts, turnSeparator)
	if !priced {
		sum.CostUSD = nil
	}
	if len(sum.ToolCalls) == 0 && len(turns) == 1 {
		return whole
	}
	if len(sum.ToolCalls) > 0 {
		sum.Parts = part.OfTurns(said, calls)
	}
	if raw, err := json.Marshal(sum); err == nil && readable {
		whole.Metadata = raw
	}
	return whole
}

// plus adds the metadata of the next turn.
func (m messageMetadata) plus(next messageMetadata) messageMetadata {
	if next.Skill != nil {
		m.Skill = next.Skill
	}
	m.ToolCalls = append(append([]ToolCall{}, m.ToolCalls...), next.ToolCalls...)
	m.InputTokens += next.InputTokens
	m.OutputTokens += next.OutputTokens
	m.LLMMs += next.LLMMs
	m.Iterations += next.Iterations
	m.StopReason = next.StopReason
	if next.Model != "" {
		m.Model = next.Model
	}
	if next.CostUSD != nil {
		cost := *next.CostUSD
		if m.CostUSD != nil {
			cost += *m.CostUSD
		}
		m.CostUSD = &cost
	}
	return m
}
