package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// How long a client may take to answer an app's question. People take longer than programs.
const (
	personTimeout  = 10 * time.Minute
	programTimeout = 30 * time.Second
)

// maxQuestions is how many questions may be pending for one client at once.
const maxQuestions = 64

var errNotAsked = errors.New("the client has no open stream to receive the question on")

// answer is a client's answer: a result, or an error as *rpc.Error.
type answer struct {
	result json.RawMessage
	err    error
}

// openQuestion is a question that the client has not answered yet.
type openQuestion struct {
	answer chan answer            // capacity 1; closed when the session ends
	token  json.RawMessage        // the app's progress token; nil if there is none
	notify func(rpc.Notification) // see rpc.Question
}

// Ask sends an app's question to the session's client and waits for the answer. It sends the question on the response
// to call c, or else wherever the client listens. It refuses a question for which the client did not declare the
// capability. If ctx ends first, or the client takes too long, it notifies the client that the question is cancelled.
func (s *session) Ask(ctx context.Context, c *call, q rpc.Question) (json.RawMessage, error) {
	timeout, err := s.timeoutOf(q.Method, q.Params)
	if err != nil {
		return nil, err
	}
	id, open, params, err := s.openQuestion(q)
	if err != nil {
		return nil, err
	}
	defer s.closeQuestion(id)
	if !s.send(c, rpc.EncodeRequest(json.RawMessage(id), q.Method, params)) {
		return nil, errNotAsked
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	var reason string
	select {
	case a, ok := <-open.answer:
		if !ok {
			return nil, errEnded
		}
		return a.result, a.err
	case <-ctx.Done():
		reason, err = "the app withdrew its question", ctx.Err()
	case <-late.C:
		reason, err = "the answer took too long", fmt.Errorf("the client did not answer %s within %v", q.Method, timeout)
	}
	s.send(c, rpc.Notification{Method: "notifications/cancelled", Params: json.RawMessage(`{"requestId":` + id + `,"reason":` + strconv.Quote(reason) + `}`)}.Encode())
	return nil, err
}

// timeoutOf returns how long the answer to a question may take. It returns an error if the client does not support the
// question.
func (s *session) timeoutOf(method string, params json.RawMessage) (time.Duration, error) {
	var declared struct {
		Roots       json.RawMessage
		Sampling    json.RawMessage
		Elicitation map[string]json.RawMessage
	}
	_ = json.Unmarshal(s.Capabilities, &declared) // malformed capabilities declare nothing
	switch method {
	case "roots/list":
		if declared.Roots != nil {
			return programTimeout, nil
		}
	case "sampling/createMessage":
		if declared.Sampling != nil {
			return personTimeout, nil
		}
	case "elicitation/create":
		var asked struct{ Mode string }
		_ = json.Unmarshal(params, &asked)
		_, form := declared.Elicitation["form"]
		_, url := declared.Elicitation["url"]
		if declared.Elicitation == nil {
			break
		}
		if asked.Mode == "url" && !url || asked.Mode != "url" && url && !form { // an empty object means form
			return 0, &rpc.Error{Code: rpc.CodeInvalidParams, Message: "the client does not support this elicitation mode"}
		}
		return personTimeout, nil
	}
	return 0, &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "the client does not support " + method}
}

// openQuestion registers a question and returns the params to send. Two apps may have chosen the same progress token,
// so the params have the question's ID as the token instead.
func (s *session) openQuestion(q rpc.Question) (id string, open *openQuestion, params json.RawMessage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", nil, nil, errEnded
	}
	if len(s.questions) >= maxQuestions {
		return "", nil, nil, fmt.Errorf("%d questions are already waiting for this client, which is the limit", maxQuestions)
	}
	s.lastQuestion++
	id = `"ask-` + strconv.FormatInt(s.lastQuestion, 10) + `"`
	open = &openQuestion{answer: make(chan answer, 1)}
	params = q.Params
	if q.Notify != nil {
		if params, open.token = replaceToken(q.Params, id); open.token != nil {
			open.notify = q.Notify
		}
	}
	if s.questions == nil {
		s.questions = map[string]*openQuestion{}
	}
	s.questions[id] = open
	return id, open, params, nil
}

// replaceToken returns params with another progress token, and the previous token or nil.
func replaceToken(params json.RawMessage, token string) (other, had json.RawMessage) {
	meta, err := rawjson.Find(params, "_meta")
	if err != nil || meta.Empty() {
		return params, nil
	}
	at, err := rawjson.Find(meta.In(params), "progressToken")
	if err != nil || at.Empty() {
		return params, nil
	}
	at = at.After(meta.From)
	return rawjson.Replace(params, at, []byte(token)), at.In(params)
}

// Progress forwards a client's progress on a question that it has not answered yet.
func (s *session) Progress(n rpc.Notification, token json.RawMessage) {
	s.mu.Lock()
	q := s.questions[string(token)]
	s.mu.Unlock()
	if q != nil && q.notify != nil {
		q.notify(n.WithToken(q.token))
	}
}

func (s *session) closeQuestion(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.questions, id)
}

// Answer passes a client's response to the question that it answers. A response that does not match an open question
// is dropped. payload is the error if failed is set, and otherwise the result.
func (s *session) Answer(id, payload json.RawMessage, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.questions[string(id)]
	if q == nil {
		return
	}
	delete(s.questions, string(id))
	if !failed {
		q.answer <- answer{result: payload}
		return
	}
	failure := &rpc.Error{}
	if json.Unmarshal(payload, failure) != nil {
		failure = &rpc.Error{Code: rpc.CodeInternalError, Message: "the client answered with a malformed error"}
	}
	q.answer <- answer{err: failure}
}

// send sends a message on the response to a call. If that has ended, it uses the GET stream, or else the response to
// the newest call, because an app with several calls in a session does not say which one its question is about. It
// returns false if the client is not listening anywhere.
func (s *session) send(c *call, text []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock() // while mu is held, no other goroutine can answer the call and end its response
	if c == nil || s.calls[c.number] != c {
		if s.stream != nil {
			s.stream.Push(text)
			return true
		}
		if c = s.newest(); c == nil {
			return false
		}
	}
	c.out.Notify(text)
	return true
}

// newest returns the newest in-flight call, or nil if there is none. The caller holds mu.
func (s *session) newest() (found *call) {
	for _, c := range s.calls {
		if found == nil || c.number > found.number {
			found = c
		}
	}
	return found
}
