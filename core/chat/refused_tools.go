package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// A provider that rejects one tool's definition rejects the whole request. The chat then finds that tool with
// probes, which are requests for a single token, and continues without it.

const (
	maxProbes   = 10
	maxSuspects = 2 // tools that are probed because a rejection mentions them
	probeTime   = time.Minute
	verdictAge  = 24 * time.Hour // a new version of a server may accept what the old one rejected
)

// hashOf returns a hash of tools in the form that providers receive.
func hashOf(tools ...model.Tool) string {
	sent := make([][3]string, len(tools))
	for i, t := range tools {
		sent[i] = [3]string{model.SafeName(t.Name), t.Description, string(model.SafeSchema(t.Schema))}
	}
	raw, _ := json.Marshal(sent) // cannot fail for strings
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// putVerdicts stores a model's verdicts about sets of tools. If that fails, later runs have to probe again.
func (l *loop) putVerdicts(ctx context.Context, all ...core.ToolVerdict) {
	for i := range all {
		all[i].Origin, all[i].Model, all[i].At = l.llm.origin, l.llm.full, time.Now()
	}
	if err := l.e.store.PutToolVerdicts(ctx, all...); err != nil {
		l.e.log.Warn("could not store a model's verdicts on tools", "model", l.llm.full, "error", err)
	}
}

// verdicts returns the verdicts about sets of tools by the model with an origin, or by all models for the origin "".
func (e *Engine) verdicts(ctx context.Context, origin string) ([]core.ToolVerdict, error) {
	return e.store.ToolVerdicts(ctx, origin, time.Now().Add(-verdictAge))
}

// RefusedTools returns an app's tools that models rejected. Their definitions are left out of requests to these
// models.
func (e *Engine) RefusedTools(ctx context.Context, c core.Caller, server string) (refused []core.RefusedTool, err error) {
	verdicts, err := e.verdicts(ctx, "")
	if err != nil || len(verdicts) == 0 {
		return nil, err
	}
	s := e.newToolset(e.tools, c, nil, nil, "", nil, nil)
	s.tools()
	for _, t := range s.known {
		if t.tool.Server != server {
			continue
		}
		hash := hashOf(t.model)
		for _, v := range verdicts {
			if v.Hash == hash && v.Reason != "" {
				refused = append(refused, core.RefusedTool{Name: t.tool.Name, Model: v.Model, Reason: v.Reason})
			}
		}
	}
	return refused, nil
}

// tools returns the tools to offer in the next turn, without those that the model is known to reject.
func (l *loop) tools(ctx context.Context) []model.Tool {
	all := l.toolset.tools()
	verdicts, err := l.e.verdicts(ctx, l.llm.origin)
	if err != nil {
		l.e.log.Warn("could not read which tools a model rejects", "model", l.llm.full, "error", err)
	}
	if len(verdicts)+len(l.leftOut) == 0 {
		return all
	}
	refused := maps.Clone(l.leftOut)
	if refused == nil {
		refused = map[string]bool{}
	}
	for _, v := range verdicts {
		refused[v.Hash] = refused[v.Hash] || v.Reason != ""
	}
	return slices.DeleteFunc(slices.Clone(all), func(t model.Tool) bool { return refused[hashOf(t)] })
}

// isRefusal returns the failure if a provider rejected a request because of its content.
func isRefusal(err error) (*model.Error, bool) {
	failed, ok := errors.AsType[*model.Error](err)
	return failed, ok && failed.Failure == model.Refused &&
		slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError}, failed.Status)
}

// leaveOutRefused finds the tools because of which the provider rejected a request. It reports whether to call the model again,
// without them. It probes at most once per run.
func (l *loop) leaveOutRefused(ctx context.Context, answer model.Answer, err error) bool {
	_, refused := isRefusal(err)
	if !refused || len(answer.Blocks) > 0 || l.probed {
		return false
	}
	offered := l.tools(ctx)
	if len(offered) == 0 {
		return false
	}
	verdicts, _ := l.e.verdicts(ctx, l.llm.origin) // tools has logged an error
	hash := hashOf(offered...)
	if slices.ContainsFunc(verdicts, func(v core.ToolVerdict) bool { return v.Hash == hash && v.Reason == "" }) {
		return false // the model has accepted these tools, so they are not the reason for the rejection
	}
	l.probed = true
	l.turn.end()
	p := &prober{loop: l, left: maxProbes}
	reasons, unknown := p.search(ctx, offered)
	l.leftOut, verdicts = map[string]bool{}, nil
	for i, reason := range reasons {
		hash := hashOf(offered[i])
		l.leftOut[hash] = true
		verdicts = append(verdicts, core.ToolVerdict{Hash: hash, Reason: reason})
		l.e.log.Warn("model rejects a tool; leaving it out of chats with this model", "model", l.llm.full, "tool", offered[i].Name, "reason", reason)
	}
	for _, i := range unknown {
		l.leftOut[hashOf(offered[i])] = true
	}
	if len(unknown) > 0 {
		l.e.log.Warn("model rejects more tools than could be identified; tools that it may accept are left out of this run", "model", l.llm.full, "tools", len(unknown))
	}
	l.putVerdicts(ctx, verdicts...)
	return len(l.leftOut) > 0
}

// prober makes the probes of one search.
type prober struct {
	loop    *loop
	left    int  // probes that may still be made
	lost    bool // a probe failed for another reason, which ends the search
	accepts bool // the provider has accepted a probe
	bare    bool // a request without tools has been sent
}

// search returns the reasons why the provider rejects tools, by index. Each of them is confirmed by a probe, because a
// rejection may mention another app's tool, since apps choose the names in their definitions. unknown contains the tools that were
// neither rejected nor accepted when the probes ran out. search finds nothing if the provider rejected the request for a
// reason other than its tools.
func (p *prober) search(ctx context.Context, all []model.Tool) (refused map[int]string, unknown []int) {
	refused = map[int]string{}
	accepted, why := p.probe(ctx, all, refused)
	if accepted {
		p.loop.putVerdicts(ctx, core.ToolVerdict{Hash: hashOf(all...)})
	}
	if accepted || p.lost {
		return nil, nil
	}
	good := 0 // all[:good] without the refused ones is accepted
	for !accepted && p.left > 0 && !p.lost {
		if p.left <= maxSuspects && !p.acceptsWithout(ctx) {
			return nil, nil
		}
		if !p.confirm(ctx, all, why, refused) && (!p.acceptsWithout(ctx) || !p.bisect(ctx, all, &good, why, refused)) {
			break
		}
		accepted, why = p.probe(ctx, all, refused)
	}
	if p.lost || !p.acceptsWithout(ctx) {
		return nil, nil
	}
	for i := good; i < len(all) && !accepted; i++ {
		if refused[i] == "" {
			unknown = append(unknown, i)
		}
	}
	if len(refused)+len(unknown) == len(all) {
		return nil, nil // the model does not accept tools at all
	}
	return refused, unknown
}

// acceptsWithout reports whether the provider accepts a request without tools, or with some of them.
func (p *prober) acceptsWithout(ctx context.Context) bool {
	if !p.accepts && !p.bare {
		p.bare = true
		p.probe(ctx, nil, nil)
	}
	return p.accepts
}

// confirm probes the tools that a rejection mentions, each on its own. It reports whether one of them was rejected.
func (p *prober) confirm(ctx context.Context, all []model.Tool, why string, refused map[int]string) (found bool) {
	for _, i := range namedIn(why, all, refused) {
		if p.left == 0 || p.lost {
			break
		}
		if accepted, reason := p.probe(ctx, all[i:i+1], nil); !accepted && !p.lost {
			refused[i], found = reason, true
		}
	}
	return found
}

// bisect finds the first rejected tool after all[:good]. It returns false if it ran out of probes.
func (p *prober) bisect(ctx context.Context, all []model.Tool, good *int, why string, refused map[int]string) bool {
	lo, hi := *good, len(all) // all[:lo] is accepted, all[:hi] is refused
	for hi-lo > 1 {
		if p.left == 0 || p.lost {
			*good = lo
			return false
		}
		middle := (lo + hi) / 2
		accepted, reason := p.probe(ctx, all[:middle], refused)
		switch {
		case p.lost:
		case accepted:
			lo = middle
		default:
			hi, why = middle, reason
		}
	}
	refused[hi-1], *good = why, hi
	return true
}

// probe reports whether the provider accepts a request with tools, without the rejected ones among them. If not, it
// returns the provider's message.
func (p *prober) probe(ctx context.Context, tools []model.Tool, refused map[int]string) (accepted bool, why string) {
	if p.left == 0 {
		return false, ""
	}
	p.left--
	request := tinyRequest(1)
	for i, t := range tools {
		if refused[i] == "" {
			request.Tools = append(request.Tools, t)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	l, start := p.loop, time.Now()
	answer, err := l.llm.provider.Call(ctx, l.llm.name, request, model.Pieces{})
	used := l.llm.usage(l.caller, answer.Usage, start)
	used.Conversation = l.conversation
	l.e.metrics.ModelCall(used, err != nil && ctx.Err() == nil)
	if answer.Usage != (model.Usage{}) {
		l.totals.add(used)
		if failed := l.e.store.PutUsage(ctx, used); failed != nil {
			p.lost = true
			return false, ""
		}
	}
	failed, isRefused := isRefusal(err)
	switch {
	case err == nil || isRefused && strings.Contains(failed.Message, "max_tokens or model output limit"): // OpenAI's reasoning models need more than one token
		p.accepts = true
		return true, ""
	case !isRefused:
		p.lost = true
		return false, ""
	}
	return false, cleanReason(failed.Message)
}

const maxReason = 500 // how many characters of a provider's words are kept

// cleanReason returns a provider's message in a form that is safe to show.
func cleanReason(message string) string {
	message = strings.Join(strings.Fields(strings.ToValidUTF8(message, "\ufffd")), " ")
	if r := []rune(message); len(r) > maxReason {
		message = string(r[:maxReason-1]) + "…"
	}
	if message == "" {
		message = "The provider gave no reason."
	}
	return message
}

var (
	functionAt = regexp.MustCompile(`function_declarations\[(\d+)\]`) // Gemini, whose tools are one element of another list
	toolAt     = regexp.MustCompile(`tools(?:\[(\d+)\]|\.(\d+))`)     // Anthropic, OpenAI, Mistral
)

// namedIn returns the indexes of the first tools that a provider's message mentions, by position in the request or by
// name. The request did not contain the tools in refused.
func namedIn(why string, all []model.Tool, refused map[int]string) (named []int) {
	var sent []int
	at := map[int]int{} // where a tool is mentioned
	for i, t := range all {
		if refused[i] != "" {
			continue
		}
		sent = append(sent, i)
		if found := indexWord(why, model.SafeName(t.Name)); found >= 0 {
			at[i] = found
		}
	}
	match := functionAt.FindStringSubmatch(why)
	if match == nil {
		match = toolAt.FindStringSubmatch(why)
	}
	if match != nil {
		if position, err := strconv.Atoi(strings.Join(match[1:], "")); err == nil && position < len(sent) {
			at[sent[position]] = -1
		}
	}
	named = slices.SortedFunc(maps.Keys(at), func(a, b int) int { return at[a] - at[b] })
	return named[:min(len(named), maxSuspects)]
}

// indexWord returns where a tool's name occurs in text on its own, rather than as a part of a longer name, or -1.
func indexWord(text, name string) int {
	isPart := func(c byte) bool {
		return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return -1
		}
		at += from
		end := at + len(name)
		if (at == 0 || !isPart(text[at-1])) && (end == len(text) || !isPart(text[end])) {
			return at
		}
		from = at + 1
	}
}
