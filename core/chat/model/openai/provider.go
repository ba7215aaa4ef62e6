package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// BaseURL is the vendor's own address.
const BaseURL = "https://api.openai.com/v1"

const maxErrorBody = 64 << 10 // bytes of an error response that are read

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
	response, err := p.send(ctx, p.newRequest(name, r))
	if err != nil {
		return model.Answer{}, model.FromBreak(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return model.Answer{}, statusFailure(ctx, response)
	}
	a := assembly{calls: map[int64]int{}}
	err = a.read(model.NewEventStream(response.Body), said)
	if err == nil && !a.complete {
		err = errors.New("the stream ended before the message did")
	}
	if err != nil {
		return a.answer(), model.FromBreak(ctx, err)
	}
	return a.answer(), nil
}

func (p *Provider) send(ctx context.Context, body request) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("User-Agent", "ropewalk")
	if p.key != "" {
		r.Header.Set("Authorization", "Bearer "+p.key)
	}
	return p.client.Do(r)
}

// failureBody is what is in an error response, and in an event that reports an error.
type failureBody struct {
	Error struct {
		Code    any    `json:"code"` // a string or a number, depending on the vendor
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func (b failureBody) kind() string {
	code, _ := b.Error.Code.(string)
	return cmp.Or(code, b.Error.Type)
}

func statusFailure(ctx context.Context, response *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var body failureBody
	_ = json.Unmarshal(raw, &body) // a body that is not JSON has no message
	return model.FromStatus(response.StatusCode, response.Header, body.kind(), body.Error.Message, err)
}

// streamFailure is the failure that an event in the stream reports.
func streamFailure(b failureBody) error {
	e := model.FromStatus(0, nil, b.kind(), b.Error.Message, nil)
	if e.Failure == model.Refused {
		e.Failure = model.Broken // it had begun to answer
	}
	return e
}
