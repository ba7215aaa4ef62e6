package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

const maxErrorBody = 64 << 10 // bytes of an error response that are read

// Post sends a request as JSON and returns the response, whose body is an event stream. The error is an *Error unless
// ctx ended.
func Post(ctx context.Context, client *http.Client, address string, header http.Header, body any) (*http.Response, error) {
	raw, err := rawjson.Encode(body)
	if err != nil {
		return nil, FromBreak(ctx, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return nil, FromBreak(ctx, err)
	}
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("User-Agent", "ropewalk")
	response, err := client.Do(r)
	if err != nil {
		return nil, FromBreak(ctx, err)
	}
	if response.StatusCode == http.StatusOK && isPage(response) {
		_ = response.Body.Close()
		return nil, FromBreak(ctx, &url.Error{Op: http.MethodPost, URL: address, Err: errPage})
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		return nil, statusFailure(ctx, response)
	}
	return response, nil
}

// isPage reports whether the response is a web page. It looks at the content, because some servers send a stream with
// the content type of a page.
func isPage(response *http.Response) bool {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		return false
	}
	start := bufio.NewReader(response.Body)
	response.Body = struct {
		io.Reader
		io.Closer
	}{start, response.Body}
	first, _ := peekText(start)
	return first == '<'
}

func statusFailure(ctx context.Context, response *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w := wordsOf(raw)
	e := FromStatus(response.StatusCode, response.Header, w.kind, w.message, err)
	e.Param = w.param
	return e
}

// FromEvent returns the failure that an event of the stream reports.
func FromEvent(data []byte) *Error {
	w := wordsOf(data)
	e := FromStatus(0, nil, w.kind, w.message, nil)
	if e.Failure == Refused {
		e.Failure = Broken // the provider had already started to respond
	}
	e.Reported = true
	return e
}

// words is a provider's description of a failure.
type words struct{ kind, message, param string }

// wordsOf reads an error response, or an event that reports an error. Vendors send an object or a list of one object.
// The error is the object itself or one of its members, and its text is a string or a list.
func wordsOf(raw []byte) words {
	if len(raw) == 0 {
		return words{}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return wordsOf(list[0])
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return words{message: text}
	}
	var body struct {
		Error   json.RawMessage `json:"error"`
		Code    json.RawMessage `json:"code"` // a string, a number or missing, depending on the vendor
		Type    json.RawMessage `json:"type"`
		Param   json.RawMessage `json:"param"`
		Message json.RawMessage `json:"message"`
		Msg     json.RawMessage `json:"msg"`
		Detail  json.RawMessage `json:"detail"`
		Loc     []any           `json:"loc"`
		Meta    struct {
			Raw json.RawMessage `json:"raw"` // the upstream provider's own error: https://openrouter.ai/docs/api-reference/errors
		} `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &body) // a body that is not JSON has no message; members with an unexpected type are ignored
	if inner := wordsOf(body.Error); inner.message != "" || inner.kind != "" {
		return inner
	}
	w := words{kind: cmp.Or(stringOf(body.Code), stringOf(body.Type)), param: stringOf(body.Param), message: stringOf(body.Msg)}
	for _, part := range []json.RawMessage{body.Message, body.Detail} {
		if inner := wordsOf(part); w.message == "" {
			w.message, w.param = inner.message, cmp.Or(w.param, inner.param)
		}
	}
	if w.param == "" && len(body.Loc) > 0 {
		w.param = strings.Trim(fmt.Sprint(body.Loc...), "[]")
	}
	return w.with(body.Meta.Raw)
}

// with adds another provider's words, which are an error response or plain text.
func (w words) with(raw json.RawMessage) words {
	text := stringOf(raw)
	if text != "" {
		raw = json.RawMessage(text)
	}
	inner := wordsOf(raw)
	if detail := cmp.Or(inner.message, text); detail != "" {
		w.message += ": " + detail
	}
	return words{cmp.Or(w.kind, inner.kind), w.message, cmp.Or(w.param, inner.param)}
}

func stringOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // "" if it is not a string
	return text
}
