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
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// A provider that refuses the definition of one tool refuses the whole request. The chat then finds that tool by
// probes, which are requests for a single token, and continues without it.

const (
	maxProbes  = 10
	probeTime  = time.Minute
	verdictAge = 24 * time.Hour // a new version of a server may accept what the old one refused
	maxVerdict = 10_000
)

// verdicts remembers what models accept and refuse. It is safe for concurrent use.
type verdicts struct {
	mu    sync.Mutex
	known map[verdictKey]verdict
}

// verdictKey identifies a set of tool definitions for a model.
type verdictKey struct{ origin, hash string } // of model.Origin and hashOf

// verdict is what a model said to a set of tools.
type verdict struct {
	model  string // provider:model
	reason string // why the tool was refused; "" if the tools were accepted
	at     time.Time
}

// hashOf returns a hash of tools in the form that providers receive.
func hashOf(tools ...model.Tool) string {
	sent := make([][3]string, len(tools))
	for i, t := range tools {
		sent[i] = [3]string{model.SafeName(t.Name), t.Description, string(model.SafeSchema(t.Schema))}
	}
	raw, _ := json.Marshal(sent) // strings always marshal
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func (v *verdicts) put(llm selected, reason string, tools ...model.Tool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= maxVerdict {
		v.known = map[verdictKey]verdict{}
	}
	v.known[verdictKey{llm.origin, hashOf(tools...)}] = verdict{llm.full, reason, time.Now()}
}

// get returns the verdict of a model on a set of tools, unless it is too old.
func (v *verdicts) get(origin string, tools ...model.Tool) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.known[verdictKey{origin, hashOf(tools...)}]
	return known, ok && time.Since(known.at) < verdictAge
}

// origins returns the origins of the models that refused a tool.
func (v *verdicts) origins() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	found := map[string]bool{}
	for key, known := range v.known {
		if known.reason != "" {
			found[key.origin] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// without returns the tools that a model is not known to refuse.
func (v *verdicts) without(origin string, tools []model.Tool) []model.Tool {
	if !slices.Contains(v.origins(), origin) {
		return tools
	}
	kept := make([]model.Tool, 0, len(tools))
	for _, t := range tools {
		if known, ok := v.get(origin, t); !ok || known.reason == "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// RefusedTools returns the tools of an app that models refused on this server. Their definitions are left out of
// requests to these models.
func (e *Engine) RefusedTools(c core.Caller, server string) (refused []core.RefusedTool) {
	origins := e.verdicts.origins()
	if len(origins) == 0 {
		return nil
	}
	s := e.newToolset(e.tools, c, nil, nil, "", nil, nil)
	s.tools()
	for _, t := range s.known {
		for _, origin := range origins {
			if known, ok := e.verdicts.get(origin, t.model); ok && known.reason != "" && t.tool.Server == server {
				refused = append(refused, core.RefusedTool{Name: t.tool.Name, Model: known.model, Reason: known.reason})
			}
		}
	}
	return refused
}

// tools returns the tools to offer in the next turn, without those that the model is known to refuse.
func (l *loop) tools() []model.Tool {
	return l.e.verdicts.without(l.llm.origin, l.toolset.tools())
}

// isRefusal returns the failure if a provider refused a request for what it contains.
func isRefusal(err error) (*model.Error, bool) {
	failed, ok := errors.AsType[*model.Error](err)
	return failed, ok && failed.Failure == model.Refused && (failed.Status == http.StatusBadRequest || failed.Status == http.StatusUnprocessableEntity)
}

// leaveOutRefused finds the tools for which the provider refused a request. It reports whether to call the model
// again, without them. It probes once in a run.
func (l *loop) leaveOutRefused(ctx context.Context, answer model.Answer, err error) bool {
	_, refused := isRefusal(err)
	if !refused || len(answer.Blocks) > 0 || l.probed {
		return false
	}
	offered := l.tools()
	if _, known := l.e.verdicts.get(l.llm.origin, offered...); known || len(offered) == 0 {
		return false // it is known to accept these tools
	}
	l.probed = true
	l.turn.end()
	p := &prober{loop: l, left: maxProbes}
	reasons := p.search(ctx, offered)
	for i, reason := range reasons {
		l.e.verdicts.put(l.llm, reason, offered[i])
		l.e.log.Warn("model refuses a tool, which is left out of its chats", "model", l.llm.full, "tool", offered[i].Name, "reason", reason)
	}
	return len(reasons) > 0
}

// prober makes the probes of one search.
type prober struct {
	loop *loop
	left int  // probes that may still be made
	lost bool // a probe failed for another reason, so the search is over
}

// search returns why the provider refuses tools, by their index. It returns nil if the tools are not why it refused
// the request. If there are too many to find each, those that were not accepted count as refused.
func (p *prober) search(ctx context.Context, all []model.Tool) map[int]string {
	reasons := map[int]string{}
	accepted, why := p.accepts(ctx, all, reasons)
	if accepted {
		p.loop.e.verdicts.put(p.loop.llm, "", all...)
	}
	if accepted || p.lost {
		return nil
	}
	good := 0      // all[:good] without the refused ones is accepted
	based := false // it is known that the provider accepts a request without tools, or with some
	for {
		if named := namedIn(why, all, reasons); len(named) > 0 {
			for _, i := range named {
				reasons[i] = why
			}
		} else {
			if !based {
				if based, _ = p.accepts(ctx, nil, nil); !based {
					return nil
				}
			}
			if !p.bisect(ctx, all, &good, why, reasons) {
				return p.rest(all, good, why, reasons)
			}
		}
		if len(reasons) == len(all) {
			return nil // the model does not take tools at all
		}
		if accepted, why = p.accepts(ctx, all, reasons); accepted {
			return reasons
		}
		if p.lost || p.left == 0 {
			return p.rest(all, good, why, reasons)
		}
	}
}

// bisect finds the first refused tool after all[:good]. It returns false if it ran out of probes.
func (p *prober) bisect(ctx context.Context, all []model.Tool, good *int, why string, reasons map[int]string) bool {
	lo, hi := *good, len(all) // all[:lo] is accepted, all[:hi] is refused
	for hi-lo > 1 {
		if p.left == 0 || p.lost {
			*good = lo
			return false
		}
		middle := (lo + hi) / 2
		accepted, reason := p.accepts(ctx, all[:middle], reasons)
		switch {
		case p.lost:
		case accepted:
			lo = middle
		default:
			hi, why = middle, reason
		}
	}
	reasons[hi-1], *good = why, hi
	return true
}

// rest adds the tools after all[:good], which were not accepted, to the refused ones.
func (p *prober) rest(all []model.Tool, good int, why string, reasons map[int]string) map[int]string {
	if p.lost {
		return nil
	}
	for i := good; i < len(all); i++ {
		if reasons[i] == "" {
			reasons[i] = "It was refused together with other tools: " + why
		}
	}
	if len(reasons) == len(all) {
		return nil // the model does not take tools at all
	}
	return reasons
}

// accepts reports whether the provider accepts a request with tools, without the refused ones among them. If not, it
// returns the provider's words.
func (p *prober) accepts(ctx context.Context, tools []model.Tool, refused map[int]string) (accepted bool, why string) {
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
	if err == nil {
		return true, ""
	}
	failed, isRefused := isRefusal(err)
	switch {
	case !isRefused:
		p.lost = true
		return false, ""
	case strings.Contains(failed.Message, "max_tokens or model output limit"): // OpenAI's reasoning models need more than one token
		return true, ""
	}
	return false, cleanReason(failed.Message)
}

const maxReason = 500 // characters of a provider's words that are kept

// cleanReason returns a provider's words in a form that is safe to show.
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

// namedIn returns the indexes of the tools that a provider's words name, by name or by position in the request. The
// request did not have those in refused.
func namedIn(why string, all []model.Tool, refused map[int]string) (named []int) {
	var sent []int
	for i, t := range all {
		if refused[i] != "" {
			continue
		}
		sent = append(sent, i)
		if hasWord(why, model.SafeName(t.Name)) {
			named = append(named, i)
		}
	}
	if len(named) > 0 {
		return named
	}
	match := functionAt.FindStringSubmatch(why)
	if match == nil {
		match = toolAt.FindStringSubmatch(why)
	}
	if match != nil {
		if at, err := strconv.Atoi(strings.Join(match[1:], "")); err == nil && at < len(sent) {
			return []int{sent[at]}
		}
	}
	return nil
}

// hasWord reports whether a tool's name occurs in text on its own, rather than as a part of a longer name.
func hasWord(text, name string) bool {
	isPart := func(c byte) bool {
		return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(name)
		if (at == 0 || !isPart(text[at-1])) && (end == len(text) || !isPart(text[end])) {
			return true
		}
		from = at + 1
	}
}
