package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// A result that is too long for a model's context is stored as a resource. The model receives the beginning, the end
// and a description of it, and can read the rest with system__read_result. This happens in chats (FitText), and for
// callers who request it (fitResult).

// Results stores results that are too long for their callers. *store.Store implements it.
type Results interface {
	KeepResult(ctx context.Context, r core.KeptResult) error
	// KeptResult returns a part of a stored result. See store.Store.KeptResult.
	KeptResult(ctx context.Context, r core.KeptResult, offset, length int) (core.KeptResult, error)
}

const (
	resultBudgetDefault = 12_500
	leastBudget         = 100 // the smallest that a caller can request

	resultKept  = time.Hour
	keptTimeout = 30 * time.Second // time limit for storing a result

	readResultName = "read_result"

	// metaResultBudget is the _meta member of tools/call that requests results of limited size: true, or a number
	// of tokens. In tools/list, it requests that system__read_result be listed.
	metaResultBudget = "ropewalk/resultBudget"
	// metaResult is the _meta member of a result that was shortened to fit. It describes what was stored.
	metaResult = "ropewalk/result"
)

// AsksToFit reports whether the _meta of a request asks for results of limited size.
func AsksToFit(meta json.RawMessage) bool {
	at, err := rawjson.Find(meta, metaResultBudget)
	return err == nil && !at.Empty() && meta[at.From] != 'f' && meta[at.From] != 'n'
}

// budgetOf returns how many tokens the text of a result may have according to the _meta of the call, or 0 if it sets
// no budget.
func (n *Namespace) budgetOf(meta json.RawMessage) (int, error) {
	if !bytes.Contains(meta, []byte("resultBudget")) || !AsksToFit(meta) {
		return 0, nil
	}
	at, _ := rawjson.Find(meta, metaResultBudget) // AsksToFit has found it
	asked := string(at.In(meta))
	if asked == "true" {
		return n.o.ResultBudget, nil
	}
	tokens, err := strconv.ParseFloat(asked, 64)
	if err != nil || tokens != math.Trunc(tokens) || tokens < leastBudget || tokens > math.MaxInt32 {
		return 0, core.Errorf(core.CodeBadRequest, "_meta[%q] must be true or a whole number of tokens, at least %d", metaResultBudget, leastBudget)
	}
	return int(tokens), nil
}

// FitText returns the text of a result as a model in a chat receives it: in full, or as an excerpt with the full text
// stored. tool is the full name that Call.Chose was given.
func (n *Namespace) FitText(ctx context.Context, c core.Caller, tool, text string) string {
	if Tokens(len(text)) <= n.o.ResultBudget || isReadResult(tool) {
		return text
	}
	s := shapeOf(text)
	kept, err := n.keep(ctx, c, tool, text, s)
	if err != nil {
		n.o.Logger.Warn("could not keep a long result", "tool", tool, "workspace", c.Workspace.ID, "error", err)
	}
	return excerpt(text, n.o.ResultBudget, s, kept.ID)
}

func isReadResult(tool string) bool { return tool == SystemServer+"__"+readResultName }

// fitResult shortens the text of a result to at most budget tokens and stores the full text. Other content is left
// unchanged, including structured content. A result that cannot be stored is returned in full.
func (n *Namespace) fitResult(ctx context.Context, c core.Caller, tool string, budget int, result json.RawMessage) json.RawMessage {
	if Tokens(len(result)) <= budget || isReadResult(tool) {
		return result
	}
	at, err := rawjson.Find(result, "content")
	if err != nil || at.Empty() {
		return result
	}
	var texts []string
	var parts []json.RawMessage
	first := -1
	for part := range rawjson.Elements(at.In(result)) {
		text, ok := textOf(part)
		if ok {
			texts = append(texts, text)
		}
		switch {
		case !ok:
			parts = append(parts, part)
		case first < 0:
			first, parts = len(parts), append(parts, part)
		}
	}
	text := strings.Join(texts, "\n")
	if Tokens(len(text)) <= budget {
		return result
	}
	s := shapeOf(text)
	kept, err := n.keep(ctx, c, tool, text, s)
	if err != nil {
		n.o.Logger.Warn("sending a long result in full, because it could not be kept", "tool", tool, "workspace", c.Workspace.ID, "error", err)
		return result
	}
	return orUnchanged(result, func() (json.RawMessage, error) {
		parts[first], err = withText(parts[first], excerpt(text, budget, s, kept.ID))
		if err != nil {
			return nil, err
		}
		about, err := json.Marshal(map[string]any{
			"uri": kept.URI(), "mimeType": s.mediaType, "characters": s.characters, "lines": s.lines, "tokens": Tokens(len(text)), "expiresAt": core.Stamp(kept.ExpiresAt),
		})
		if err != nil {
			return nil, err
		}
		fitted, err := rawjson.Set(result, rawjson.Member{Name: "content", Value: rawjson.Array(parts)})
		if err != nil {
			return nil, err
		}
		return withMeta(fitted, rawjson.Member{Name: metaResult, Value: about})
	})
}

// textOf returns the text of a content part or of its embedded resource.
func textOf(part json.RawMessage) (text string, ok bool) {
	var p struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		Resource struct {
			Text *string `json:"text"`
		} `json:"resource"`
	}
	if json.Unmarshal(part, &p) != nil {
		return "", false
	}
	switch {
	case p.Type == "text" && p.Text != nil:
		return *p.Text, true
	case p.Type == "resource" && p.Resource.Text != nil:
		return *p.Resource.Text, true
	}
	return "", false
}

// withText replaces the text of a content part. An embedded resource becomes a text part.
func withText(part json.RawMessage, text string) (json.RawMessage, error) {
	with, err := rawjson.Set(part, rawjson.Member{Name: "type", Value: json.RawMessage(`"text"`)}, rawjson.Member{Name: "text", Value: rawjson.Quote(text)})
	if err != nil {
		return nil, err
	}
	return rawjson.Without(with, "resource")
}

// keep stores the text of a result for its caller.
func (n *Namespace) keep(ctx context.Context, c core.Caller, tool, text string, s shape) (core.KeptResult, error) {
	if n.o.Results == nil {
		return core.KeptResult{}, core.Errorf(core.CodeUnavailable, "this server does not keep results")
	}
	r := keptBy(c, core.RandomID("res_")+core.RandomID(""))
	r.Tool, r.MediaType, r.Text, r.Length, r.ExpiresAt = tool, s.mediaType, text, s.characters, time.Now().Add(resultKept)
	ctx, cancel := context.WithTimeout(ctx, keptTimeout)
	defer cancel()
	if err := n.o.Results.KeepResult(ctx, r); err != nil {
		return core.KeptResult{}, err
	}
	return r, nil
}

func keptBy(c core.Caller, id string) core.KeptResult {
	return core.KeptResult{ID: id, Workspace: c.Workspace.ID, User: c.User.ID, Key: c.Scope.Key}
}

// shape describes the form of some text.
type shape struct {
	mediaType  string
	kind       string // the kind of the text, in words
	characters int
	lines      int
}

func shapeOf(text string) shape {
	s := shape{mediaType: "text/plain", kind: "text", characters: utf8.RuneCountInString(text), lines: strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1}
	trimmed := strings.TrimSpace(text)
	if !json.Valid([]byte(trimmed)) {
		return s
	}
	s.mediaType, s.kind = "application/json", "JSON"
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case trimmed[0] == '[' && json.Unmarshal([]byte(trimmed), &list) == nil:
		s.kind = fmt.Sprintf("a JSON array with %d elements", len(list))
	case trimmed[0] == '{' && json.Unmarshal([]byte(trimmed), &object) == nil:
		s.kind = fmt.Sprintf("a JSON object with %d members", len(object))
	}
	return s
}

// noteBytes is how many bytes of a budget are reserved for the note in an excerpt.
const noteBytes = 380

// excerpt returns the beginning and the end of text that exceeds a budget. A note between them says what was left
// out and how to read it. If id is "", the text is not stored.
func excerpt(text string, budget int, s shape, id string) string {
	room := max(4*budget-noteBytes, 0)
	head := wholeLines(text[:cut(text, room*3/4)])
	tail := text[cutAfter(text, len(text)-room/4):]
	from := utf8.RuneCountInString(head)
	note := fmt.Sprintf("[%d of %d characters are left out here. The whole result is %s with %d lines, about %d tokens. ",
		s.characters-from-utf8.RuneCountInString(tail), s.characters, s.kind, s.lines, Tokens(len(text)))
	if id == "" {
		note += "The rest is not kept: call the tool again in a way that returns less.]"
	} else {
		note += fmt.Sprintf(`It is kept for an hour as %s. To read on, call %s__%s with {"id":%q,"offset":%d}.]`, core.KeptResult{ID: id}.URI(), SystemServer, readResultName, id, from)
	}
	return head + "\n\n" + note + "\n\n" + tail
}

// cut returns the last position at or before at where text can be cut without splitting a character. cutAfter
// returns the first such position at or after at.
func cut(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return min(at, len(text))
}

func cutAfter(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// wholeLines drops an incomplete last line, unless that would remove too much.
func wholeLines(head string) string {
	if end := strings.LastIndexByte(head, '\n') + 1; end > len(head)*3/4 {
		return head[:end]
	}
	return head
}

// ReadResult returns system__read_result.
func (n *Namespace) ReadResult() System {
	return System{
		Name: readResultName, Title: "Read more of a result", ReadOnly: true, ShortResults: true,
		Description: "Reads more of a tool result that was too long to send whole and is kept for an hour. The excerpt contains the id and the offset.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"id":{"type":"string","minLength":1,"description":"the id of the result, or its URI"},` +
			`"offset":{"type":"integer","minimum":0,"default":0,"description":"the character to start at"},` +
			`"length":{"type":"integer","minimum":1,"description":"how many characters to return; by default, as many as fit"}},` +
			`"required":["id"],"additionalProperties":false}`),
		Run: func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
			in := struct {
				ID     string `json:"id"`
				Offset int    `json:"offset"`
				Length int    `json:"length"`
			}{}
			if err := Arguments(arguments, &in); err != nil {
				return nil, err
			}
			if id, ok := core.KeptResultID(in.ID); ok {
				in.ID = id
			}
			return n.readMore(ctx, c, in.ID, min(in.Offset, math.MaxInt32/2), min(in.Length, math.MaxInt32/2))
		},
	}
}

// readMore returns a part of a stored result that fits, and says where the next part starts.
func (n *Namespace) readMore(ctx context.Context, c core.Caller, id string, offset, length int) (plainText, error) {
	room := 4*n.o.ResultBudget - noteBytes
	if length == 0 || length > room {
		length = room
	}
	r, err := n.kept(ctx, c, id, offset, length)
	if err != nil {
		return "", err
	}
	if offset >= r.Length {
		return "", core.Errorf(core.CodeBadRequest, "offset is %d, but the result has %d characters", offset, r.Length)
	}
	part := r.Text[:cut(r.Text, min(room, len(r.Text)))]
	end := offset + utf8.RuneCountInString(part)
	note := "That is the end of the result."
	if end < r.Length {
		note = fmt.Sprintf("To continue, use offset %d.", end)
	}
	return plainText(fmt.Sprintf("%s\n\n[Characters %d-%d of %d. %s]", part, offset, end-1, r.Length, note)), nil
}

// kept returns a part of a stored result. The error is core.CodeNotFound if the caller has no such result, or if the
// caller's views do not show its tool.
func (n *Namespace) kept(ctx context.Context, c core.Caller, id string, offset, length int) (core.KeptResult, error) {
	if n.o.Results == nil {
		return core.KeptResult{}, core.Errorf(core.CodeNotFound, "there is no kept result %.80q", id)
	}
	r, err := n.o.Results.KeptResult(ctx, keptBy(c, id), offset, length)
	if err == nil && !n.ShowsTool(c, "", r.Tool) {
		return core.KeptResult{}, core.Errorf(core.CodeNotFound, "there is no kept result %.80q", id)
	}
	return r, err
}

// readKept implements resources/read for a stored result.
func (n *Namespace) readKept(ctx context.Context, c core.Caller, id string) (json.RawMessage, error) {
	uri := core.KeptResult{ID: id}.URI()
	r := &appRequest{n: n, caller: c, method: "resources/read", name: uri, find: func() error { return nil }}
	r.answer = func(ctx context.Context) (json.RawMessage, error) {
		kept, err := n.kept(ctx, c, id, 0, math.MaxInt32/2)
		switch {
		case core.CodeOf(err) == core.CodeNotFound:
			return nil, noResource(uri)
		case err != nil:
			return nil, err
		}
		return json.Marshal(map[string]any{"contents": []any{map[string]any{"uri": kept.URI(), "mimeType": kept.MediaType, "text": kept.Text}}})
	}
	result, _, err := n.perform(ctx, c, r)
	return result, err
}
