package chat

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// messageMetadata is the metadata of an assistant message. Stored metadata covers one turn; the metadata that History
// returns covers a whole run.
type messageMetadata struct {
	Skill        *string    `json:"skill,omitempty"`
	ToolCalls    []ToolCall `json:"toolCalls"`
	Parts        []Part     `json:"parts,omitempty"`       // not stored: derived from the turns
	InputTokens  *int64     `json:"inputTokens,omitempty"` // nil if unknown, like OutputTokens
	OutputTokens *int64     `json:"outputTokens,omitempty"`
	CostUSD      *float64   `json:"costUsd"`
	Model        string     `json:"model"`
	LLMMs        int64      `json:"llmMs"`
	Iterations   int        `json:"iterations"`
	StopReason   StopReason `json:"stopReason,omitempty"`  // set if the run did not end as Complete
	StopMessage  string     `json:"stopMessage,omitempty"` // explains StopReason to the person
}

// History returns the messages of a conversation, with one assistant message per run. The error is core.CodeNotFound
// if the conversation does not exist or is not the caller's.
func (e *Engine) History(ctx context.Context, c core.Caller, id string) ([]core.Message, error) {
	stored, err := e.store.Messages(ctx, c.Conversation(id))
	if err != nil {
		return nil, err
	}
	if last := len(stored) - 1; last >= 0 && stored[last].Unfinished && (stored[last].Claimed || e.claims.isActive(id)) {
		stored[last].Metadata = withoutStop(stored[last].Metadata)
	}
	return mergeRuns(stored), nil
}

// withoutStop returns the metadata of an unfinished turn without a stop reason, for a run that is still active.
func withoutStop(metadata json.RawMessage) json.RawMessage {
	without, err := rawjson.Without(metadata, "stopReason", "stopMessage")
	if err != nil {
		return metadata
	}
	return without
}

// mergeRuns joins each message with the messages that continue it.
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

// mergeMessage joins the turns of one run. A message without blocks does not come from a run: it is a person's
// message or an imported one, and its metadata already covers the whole message.
func mergeMessage(turns []core.Message) core.Message {
	whole := turns[0]
	if len(turns) == 1 && (whole.Role != string(model.Assistant) || len(whole.Blocks) == 0) {
		return whole
	}
	var texts []string
	var sum messageMetadata
	parts := make([]turnParts, len(turns))
	hasParts := false // there are parts other than the text
	priced, readable := true, true
	for i, t := range turns {
		parts[i] = turnParts{before: reasoningOf(t.Blocks), text: t.Content}
		hasParts = hasParts || len(parts[i].before) > 0
		if t.Content != "" {
			texts = append(texts, t.Content)
		}
		var m messageMetadata
		if len(t.Metadata) > 0 && json.Unmarshal(t.Metadata, &m) != nil {
			readable = false
			continue
		}
		parts[i].calls = len(m.ToolCalls)
		priced = priced && (m.CostUSD != nil || m.OutputTokens == nil) // a turn with unknown usage has no price
		sum = sum.plus(m)
	}
	whole.Content = strings.Join(texts, turnSeparator)
	if !priced {
		sum.CostUSD = nil
	}
	hasParts = hasParts || len(sum.ToolCalls) > 0
	if !hasParts && len(turns) == 1 {
		return whole
	}
	if hasParts {
		sum.Parts = partsOfTurns(parts)
	}
	if raw, err := json.Marshal(sum); err == nil && readable {
		whole.Metadata = raw
	}
	return whole
}

// plus returns m combined with the metadata of the next turn.
func (m messageMetadata) plus(next messageMetadata) messageMetadata {
	if next.Skill != nil {
		m.Skill = next.Skill
	}
	m.ToolCalls = append(append([]ToolCall{}, m.ToolCalls...), next.ToolCalls...)
	m.InputTokens, m.OutputTokens = core.SumKnown(m.InputTokens, next.InputTokens), core.SumKnown(m.OutputTokens, next.OutputTokens)
	m.LLMMs += next.LLMMs
	m.Iterations += next.Iterations
	m.StopReason, m.StopMessage = next.StopReason, next.StopMessage
	if next.Model != "" {
		m.Model = next.Model
	}
	m.CostUSD = core.SumKnown(m.CostUSD, next.CostUSD)
	return m
}

// reasoningOf returns the reasoning and the summaries in the stored blocks of a turn as parts.
func reasoningOf(blocks json.RawMessage) (parts []Part) {
	var messages []model.Message
	if len(blocks) == 0 || json.Unmarshal(blocks, &messages) != nil {
		return nil
	}
	for _, m := range messages {
		for _, b := range m.Blocks {
			switch {
			case b.Kind == model.Reasoning && (b.Text != "" || b.Ms > 0):
				parts = append(parts, Part{Type: PartReasoning, Text: b.Text, Ms: b.Ms})
			case b.Kind == model.Summary:
				parts = append(parts, Part{Type: PartSummary, Text: b.Text})
			}
		}
	}
	return parts
}
