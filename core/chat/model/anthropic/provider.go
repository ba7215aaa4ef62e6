package anthropic

import (
	"context"
	"errors"
	"net/http"
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
	efforts map[string]effortWay // learned from rejected requests, by model
}

// New returns a provider. It connects on the first call.
func New(s model.Settings) *Provider {
	base, query := s.Endpoint(BaseURL)
	base = strings.TrimSuffix(base, "/v1")
	return &Provider{url: base + "/v1/messages" + query, list: base + "/v1/models" + query, key: s.APIKey, client: model.NewClient(s), efforts: map[string]effortWay{}}
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
		err = errors.New("the stream ended before the message did")
	}
	if err != nil {
		return a.answer(), model.FromBreak(ctx, err)
	}
	return a.answer(), nil
}

// post sends a request. If the model rejects the effort, post tries the next way to send it, and remembers it for the
// model.
func (p *Provider) post(ctx context.Context, name string, r model.Request) (*http.Response, error) {
	header := p.header()
	p.mu.Lock()
	way := p.efforts[name]
	p.mu.Unlock()
	for {
		body := newRequest(name, r, way)
		response, err := model.Post(ctx, p.client, p.url, header, body)
		refused, ok := errors.AsType[*model.Error](err)
		if err == nil || !ok || body.Thinking == nil || !aboutEffort(refused) {
			return response, err
		}
		way++
		p.mu.Lock()
		p.efforts[name] = max(way, p.efforts[name])
		p.mu.Unlock()
	}
}

func aboutEffort(e *model.Error) bool {
	m := strings.ToLower(e.Message)
	return e.Status == http.StatusBadRequest && !strings.Contains(m, "signature") && !strings.Contains(m, "messages.") &&
		(strings.Contains(m, "thinking") || strings.Contains(m, "effort") || strings.Contains(m, "output_config") || strings.Contains(m, "adaptive"))
}
