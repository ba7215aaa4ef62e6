package anthropic

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// BaseURL is the vendor's own base URL.
const BaseURL = "https://api.anthropic.com"

const apiVersion = "2023-06-01"

// Provider implements model.Provider.
type Provider struct {
	url    string
	list   string // the URL of the list of models
	key    string
	client *http.Client

	mu      sync.Mutex
	learned map[string]dialect // by model
}

// dialect describes what a model accepts, as learned from rejected requests.
type dialect struct {
	way       effortWay
	efforts   model.EffortSubstitutes
	maxTokens int  // the highest answer limit that it accepts; 0 until it has rejected a higher one
	noCache   bool // it rejects cache_control, as do some other servers that use the vendor's protocol
}

// New returns a provider. It connects on the first call.
func New(s model.Settings) *Provider {
	base, query := s.Endpoint(BaseURL)
	base = strings.TrimSuffix(base, "/v1")
	return &Provider{url: base + "/v1/messages" + query, list: base + "/v1/models" + query, key: s.APIKey, client: model.NewClient(s), learned: map[string]dialect{}}
}

// Close closes idle connections.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Window implements model.Provider.
func (p *Provider) Window(ctx context.Context, name string) int {
	return model.ListedWindow(ctx, p.client, p.list, p.header(), name)
}

func (p *Provider) header() http.Header {
	header := http.Header{"Anthropic-Version": {apiVersion}}
	if p.key != "" {
		header.Set("X-Api-Key", p.key)
	}
	return header
}

// Call implements model.Provider.
func (p *Provider) Call(ctx context.Context, name string, r model.Request, pieces model.Pieces) (model.Answer, error) {
	response, err := p.post(ctx, name, r)
	if err != nil {
		return model.Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var a assembly
	err = a.read(model.NewEventStream(response.Body), pieces)
	a.watch.Stop(pieces)
	if err == nil && !a.complete {
		err = errors.New("the stream ended before the message was complete")
	}
	if err != nil {
		return a.answer(), model.FromBreak(ctx, err)
	}
	return a.answer(), nil
}

// post sends a request. If it is rejected for a known reason, post changes the request and sends it again.
func (p *Provider) post(ctx context.Context, name string, r model.Request) (*http.Response, error) {
	header := p.header()
	p.mu.Lock()
	d := p.learned[name]
	p.mu.Unlock()
	for {
		body := newRequest(name, r, d)
		response, err := model.Post(ctx, p.client, p.url, header, body)
		refused, ok := errors.AsType[*model.Error](err)
		switch {
		case err == nil || !ok || refused.Status != http.StatusBadRequest:
			return response, err
		case body.Thinking != nil && wantsThoughts(refused): // this is true of the conversation, not of the model
			r.Effort = ""
			continue
		case aboutFiles.MatchString(refused.Message): // the files stay in the conversation, and must not make every later call fail
			if without, had := model.WithoutFiles(r.Messages); had {
				r.Messages = without
				continue
			}
			return response, err
		case !d.learn(refused, body):
			return response, err
		}
		p.mu.Lock()
		p.learned[name] = d
		p.mu.Unlock()
	}
}

// learn updates the dialect from the error for a rejected request. It returns false if there is nothing to learn.
func (d *dialect) learn(e *model.Error, r request) bool {
	if lower := e.AnswerLimit(r.MaxTokens); lower > 0 {
		d.maxTokens = lower
		return true
	}
	if strings.Contains(e.Message, "cache_control") && !d.noCache {
		d.noCache = true
		return true
	}
	if r.Thinking == nil || !aboutEffort(e) {
		return false
	}
	if r.OutputConfig == nil || !d.efforts.Learn(e.Message, r.OutputConfig.Effort) {
		d.way++
	}
	return true
}

// aboutFiles matches complaints about a file that is broken, too large or not at its address.
var aboutFiles = regexp.MustCompile(`(?i)\b(?:image|pdf)|\.document\b|download the file`)

// wantsThoughts reports whether a request was rejected because the last tool call in it, made by another model, is not
// preceded by a thinking block. https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
func wantsThoughts(e *model.Error) bool {
	return strings.Contains(e.Message, "must start with a thinking block") || strings.Contains(e.Message, "Expected `thinking`")
}

func aboutEffort(e *model.Error) bool {
	m := strings.ToLower(e.Message)
	return !strings.Contains(m, "signature") && !strings.Contains(m, "messages.") &&
		(strings.Contains(m, "thinking") || strings.Contains(m, "effort") || strings.Contains(m, "output_config") || strings.Contains(m, "adaptive"))
}
