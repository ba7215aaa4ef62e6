package anthropic

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// BaseURL is the vendor's own address.
const BaseURL = "https://api.anthropic.com"

const apiVersion = "2023-06-01"

// Provider is a model.Provider.
type Provider struct {
	url    string
	key    string
	client *http.Client
}

// New returns a provider; it connects when it is called.
func New(s model.Settings) *Provider {
	return &Provider{url: cmp.Or(s.BaseURL, BaseURL) + "/v1/messages", key: s.APIKey, client: model.NewClient(s)}
}

// Close ends the connections that no call uses.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Call is model.Provider's.
func (p *Provider) Call(ctx context.Context, name string, r model.Request, said func(string)) (model.Answer, error) {
	header := http.Header{"Anthropic-Version": {apiVersion}}
	if p.key != "" {
		header.Set("X-Api-Key", p.key)
	}
	response, err := model.Post(ctx, p.client, p.url, header, newRequest(name, r))
	if err != nil {
		return model.Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var a assembly
	err = a.read(model.NewEventStream(response.Body), said)
	if err == nil && !a.complete {
		err = errors.New("the stream ended before the message did")
	}
	if err != nil {
		return a.answer(), model.FromBreak(ctx, err)
	}
	return a.answer(), nil
}
