package openai

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// BaseURL is the vendor's own base URL.
const BaseURL = "https://api.openai.com/v1"

// Provider implements model.Provider.
type Provider struct {
	url    string
	list   string // the URL of the list of models
	header http.Header
	client *http.Client
	own    bool // BaseURL is the vendor's own

	mu      sync.Mutex
	learned map[string]dialect // by model
}

// New returns a provider. It connects on the first call.
func New(s model.Settings) *Provider {
	base, query := s.Endpoint(BaseURL)
	p := &Provider{
		url: base + "/chat/completions" + query, list: base + "/models" + query, header: http.Header{}, client: model.NewClient(s), own: base == BaseURL, learned: map[string]dialect{},
	}
	switch {
	case s.APIKey == "":
	case strings.Contains(query, "api-version=") || isAzure(base): // https://learn.microsoft.com/azure/ai-foundry/openai/reference
		p.header.Set("Api-Key", s.APIKey)
	default:
		p.header.Set("Authorization", "Bearer "+s.APIKey)
	}
	return p
}

func isAzure(base string) bool {
	at, err := url.Parse(base)
	return err == nil && strings.HasSuffix(at.Hostname(), ".azure.com")
}

// Close closes idle connections.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Window implements model.Provider.
func (p *Provider) Window(ctx context.Context, name string) int {
	return model.ListedWindow(ctx, p.client, p.list, p.header, name)
}

// Call implements model.Provider.
func (p *Provider) Call(ctx context.Context, name string, r model.Request, pieces model.Pieces) (model.Answer, error) {
	response, err := p.post(ctx, name, r)
	if err != nil {
		return model.Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var a assembly
	err = a.read(response.Body, pieces)
	a.endThinking(pieces)
	if err == nil && !a.complete {
		err = errors.New("the stream ended before the message was complete")
	}
	if err == nil && a.finish == "error" {
		err = &model.Error{Failure: model.Broken, Reported: true, Message: "the answer ended with an error"}
	}
	if err != nil {
		return a.answer(), model.FromBreak(ctx, err)
	}
	return a.answer(), nil
}

// post sends a request, and repeats it as long as there is something to learn from the error.
func (p *Provider) post(ctx context.Context, name string, r model.Request) (*http.Response, error) {
	d := p.dialect(name)
	for {
		body := newRequest(name, r, d)
		response, err := model.Post(ctx, p.client, p.url, p.header, body)
		refused, ok := errors.AsType[*model.Error](err)
		if err == nil || !ok || !d.learn(refused, body) {
			if err == nil && !d.temporary {
				p.remember(name, d)
			}
			return response, err
		}
	}
}

func (p *Provider) dialect(name string) dialect {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d, ok := p.learned[name]; ok {
		return d
	}
	return dialect{completionTokens: p.own}
}

// remember stores the dialect in which a request was accepted.
func (p *Provider) remember(name string, d dialect) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.learned[name] = d
}
