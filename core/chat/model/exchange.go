package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
)

const maxErrorBody = 64 << 10 // bytes of an error response that are read

// Post sends a request as JSON and returns the response, whose body is a stream of events. Its error is an
// *Error unless ctx ended.
func Post(ctx context.Context, client *http.Client, url string, header http.Header, body any) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, FromBreak(ctx, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(raw))
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
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		return nil, statusFailure(ctx, response)
	}
	return response, nil
}

// failureBody is what is in an error response, and in an event that reports an error.
type failureBody struct {
	Error struct {
		Code    any    `json:"code"` // a string or a number, or missing, depending on the vendor
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
	return FromStatus(response.StatusCode, response.Header, body.kind(), body.Error.Message, err)
}

// FromEvent is the failure that an event of the stream reports.
func FromEvent(data []byte) *Error {
	var body failureBody
	_ = json.Unmarshal(data, &body) // what differs has no message
	e := FromStatus(0, nil, body.kind(), body.Error.Message, nil)
	if e.Failure == Refused {
		e.Failure = Broken // it had begun to answer
	}
	return e
}
