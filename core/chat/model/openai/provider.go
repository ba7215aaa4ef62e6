package openai

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// BaseURL is the vendor's own address.
const BaseURL = "https://api.openai.com/v1"

// Provider is a model.Provider.
type Provider struct {
	url    string
	key    string
	client *http.Client
	own    bool // it is the vendor's own service
}

// New returns a provider; it connects when it is called.
func New(s model.Settings) *Provider {
	return &Provider{
		url: cmp.Or(s.BaseURL, BaseURL) + "/chat/completions", key: s.APIKey, client: model.NewClient(s),
		own: s.BaseURL == "" || s.BaseURL == BaseURL,
	}
}

// Close ends the connections that no call uses.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Call is model.Provider's.
func (p *Provider) Call(ctx context.Context, name string, r model.Request, said func(string)) (model.Answer, error) {
	header := http.Header{}
	if p.key != "" {
		header.Set("Authorization", "Bearer "+p.key)
	}
	response, err := model.Post(ctx, p.client, p.url, header, p.newRequest(name, r))
	if err != nil {
		return model.Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	a := assembly{calls: map[int64]int{}}
	err = a.read(response.Body, said)
	if err == nil && !a.complete {
		err = errors.New("the stream ended before the message did")
	}
	if err != nil {
		return a.answer(), model.FromBreak(ctx, err)
	}
	return a.answer(), nil
}
