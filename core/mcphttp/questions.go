package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/link"
)

// How long a client may take to answer what an app asks. People take their time; programs do not.
const (
	patienceOfPeople   = 10 * time.Minute
	patienceOfPrograms = 30 * time.Second
)

// maxQuestions is how many questions may wait for one client at a time.
const maxQuestions = 64

// answer is what a client says to a question: a result, or an error as *link.RPCError.
type answer struct {
	result json.RawMessage
	err    error
}

// ask puts an app's question (elicitation/create, sampling/createMessage, roots/list) to the
// session's client, and waits for its answer: on the POST of call k, else on the GET stream. What the
// client did not say that it can is refused without asking. When ctx ends first, or patience, the
// client is told to forget it.
func (s *session) ask(ctx context.Context, k *call, method string, params json.RawMessage) (json.RawMessage, error) {
	patience, err := s.can(method, params)
	if err != nil {
		return nil, err
	}
	id, answered, err := s.expect()
	if err != nil {
		return nil, err
	}
	defer s.forgetQuestion(id)
	if !s.tell(k, requestBody(id, method, params)) {
		return nil, errors.New("the client has no stream open on which it could be asked")
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	var why string
	select {
	case a, ok := <-answered:
		if !ok {
			return nil, errors.New("the session was closed")
		}
		return a.result, a.err
	case <-ctx.Done():
		why, err = "the app no longer asks", ctx.Err()
	case <-late.C:
		why, err = "the answer took too long", errors.New("the client did not answer "+method+" within "+patience.String())
	}
	s.tell(k, notificationBody("notifications/cancelled", []byte(`{"requestId":`+id+`,"reason":`+strconv.Quote(why)+`}`)))
	return nil, err
}

// can reports how long a question may take, or why the client cannot be asked it.
func (s *session) can(method string, params json.RawMessage) (time.Duration, error) {
	var said struct {
		Roots       json.RawMessage
		Sampling    json.RawMessage
		Elicitation map[string]json.RawMessage
	}
	_ = json.Unmarshal(s.capabilities, &said) // what is malformed was not said
	switch method {
	case "roots/list":
		if said.Roots != nil {
			return patienceOfPrograms, nil
		}
	case "sampling/createMessage":
		if said.Sampling != nil {
			return patienceOfPeople, nil
		}
	case "elicitation/create":
		var asked struct{ Mode string }
		_ = json.Unmarshal(params, &asked)
		_, form := said.Elicitation["form"]
		_, url := said.Elicitation["url"]
		if said.Elicitation == nil {
			break
		}
		if asked.Mode == "url" && !url || asked.Mode != "url" && url && !form { // {} alone means form
			return 0, &link.RPCError{Code: jsonrpc.CodeInvalidParams, Message: "the client does not support elicitation of this mode"}
		}
		return patienceOfPeople, nil
	}
	return 0, &link.RPCError{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support " + method}
}

// expect makes a place for an answer. The channel is closed when the session ends.
func (s *session) expect() (id string, answered <-chan answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", nil, errors.New("the session was closed")
	}
	if len(s.questions) >= maxQuestions {
		return "", nil, errors.New("too many questions wait for this client")
	}
	s.lastQuestion++
	id = `"ask-` + strconv.FormatInt(s.lastQuestion, 10) + `"`
	c := make(chan answer, 1)
	if s.questions == nil {
		s.questions = map[string]chan answer{}
	}
	s.questions[id] = c
	return id, c, nil
}

func (s *session) forgetQuestion(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.questions, id)
}

// answered hands a client's response to the question it answers. One that answers nothing, any
// more or ever, is dropped.
func (s *session) answered(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.questions[string(m.id)]
	if c == nil {
		return
	}
	delete(s.questions, string(m.id))
	if !m.failed {
		c <- answer{result: m.payload}
		return
	}
	var failure struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(m.payload, &failure) != nil {
		failure.Code, failure.Message = jsonrpc.CodeInternalError, "the client answered with a malformed error"
	}
	c <- answer{err: &link.RPCError{Code: failure.Code, Message: failure.Message, Data: failure.Data}}
}

// tell sends a message on the stream of a call, else on the GET stream. It is false when neither is
// there.
func (s *session) tell(k *call, text []byte) bool {
	if k != nil && s.call(k.number) == k {
		k.out.notify(text)
		return true
	}
	return s.notify(text)
}

// requestBody is a JSON-RPC request around params that are not decoded.
func requestBody(id, method string, params json.RawMessage) []byte {
	b := notificationBody(method, params)
	return append([]byte(`{"jsonrpc":"2.0","id":`+id+`,`), b[len(`{"jsonrpc":"2.0",`):]...)
}
