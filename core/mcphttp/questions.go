package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// How long a client may take to answer what an app asks. People take their time; programs do not.
const (
	patienceOfPeople   = 10 * time.Minute
	patienceOfPrograms = 30 * time.Second
)

// maxQuestions is how many questions may wait for one client at a time.
const maxQuestions = 64

// answer is what a client says to a question: a result, or an error as *rpc.Error.
type answer struct {
	result json.RawMessage
	err    error
}

// question is what an app asks of a client: elicitation/create, sampling/createMessage or roots/list.
type question struct {
	method string
	params json.RawMessage
	heard  func(rpc.Notification) // gets what the client says about it before it answers; nil for nobody
}

// waiting is a question that a client has yet to answer.
type waiting struct {
	answer chan answer            // holds one; closed when the session ends
	token  json.RawMessage        // the app's progress token; nil when it gave none
	heard  func(rpc.Notification) // as question's
}

// ask puts an app's question to the session's client, and waits for its answer: on the POST of call
// k, else where it listens. What the client did not say that it can is refused without asking. When
// ctx ends first, or patience, the client is told to forget it.
func (s *session) ask(ctx context.Context, k *call, q question) (json.RawMessage, error) {
	patience, err := s.can(q.method, q.params)
	if err != nil {
		return nil, err
	}
	id, open, params, err := s.expect(q)
	if err != nil {
		return nil, err
	}
	defer s.forgetQuestion(id)
	if !s.tell(k, requestBody(id, q.method, params)) {
		return nil, errors.New("the client has no stream open on which it could be asked")
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	var why string
	select {
	case a, ok := <-open.answer:
		if !ok {
			return nil, errors.New("the session was closed")
		}
		return a.result, a.err
	case <-ctx.Done():
		why, err = "the app no longer asks", ctx.Err()
	case <-late.C:
		why, err = "the answer took too long", errors.New("the client did not answer "+q.method+" within "+patience.String())
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
			return 0, &rpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the client does not support elicitation of this mode"}
		}
		return patienceOfPeople, nil
	}
	return 0, &rpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support " + method}
}

// expect makes a place for an answer, and gives the params under which the question is to be asked:
// two apps may have chosen the same progress token, so the client gets the question's id for it.
func (s *session) expect(q question) (id string, open *waiting, params json.RawMessage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", nil, nil, errors.New("the session was closed")
	}
	if len(s.questions) >= maxQuestions {
		return "", nil, nil, errors.New("too many questions wait for this client")
	}
	s.lastQuestion++
	id = `"ask-` + strconv.FormatInt(s.lastQuestion, 10) + `"`
	open = &waiting{answer: make(chan answer, 1)}
	params = q.params
	if q.heard != nil {
		if params, open.token = withProgress(q.params, id); open.token != nil {
			open.heard = q.heard
		}
	}
	if s.questions == nil {
		s.questions = map[string]*waiting{}
	}
	s.questions[id] = open
	return id, open, params, nil
}

// withProgress is params with another progress token, and the one they had; nil when they had none.
func withProgress(params json.RawMessage, token string) (other, had json.RawMessage) {
	fields, ok := object(orEmpty(params))
	if !ok {
		return params, nil
	}
	meta, ok := object(orEmpty(fields["_meta"]))
	if had = meta["progressToken"]; !ok || had == nil {
		return params, nil
	}
	own := members{{"progressToken", token}}.into(fields["_meta"])
	return members{{"_meta", string(own)}}.into(params), had
}

// progressed passes on what a client says about a question that it has yet to answer.
func (s *session) progressed(m message) {
	token := m.fields["progressToken"]
	s.mu.Lock()
	q := s.questions[string(token)]
	s.mu.Unlock()
	if q != nil && q.heard != nil {
		q.heard(rpc.Notification{Method: m.method, Params: members{{"progressToken", string(q.token)}}.into(m.params)})
	}
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
	q := s.questions[string(m.id)]
	if q == nil {
		return
	}
	delete(s.questions, string(m.id))
	if !m.failed {
		q.answer <- answer{result: m.payload}
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
	q.answer <- answer{err: &rpc.Error{Code: failure.Code, Message: failure.Message, Data: failure.Data}}
}

// tell sends a message on the stream of a call. When that is over it goes out on the GET stream, else on
// that of the newest call: an app with several calls of a session does not say about which it asks. It
// is false when the client listens nowhere.
func (s *session) tell(k *call, text []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock() // nobody answers the call meanwhile, after which its stream has ended
	if k == nil || s.calls[k.number] != k {
		if s.outlet != nil {
			s.outlet.push(text)
			return true
		}
		if k = s.newest(); k == nil {
			return false
		}
	}
	k.out.notify(text)
	return true
}

// newest is the newest call in flight, nil when there is none. The caller holds the lock.
func (s *session) newest() (found *call) {
	for _, k := range s.calls {
		if found == nil || k.number > found.number {
			found = k
		}
	}
	return found
}

// requestBody is a JSON-RPC request around params that are not decoded.
func requestBody(id, method string, params json.RawMessage) []byte {
	b := notificationBody(method, params)
	return append([]byte(`{"jsonrpc":"2.0","id":`+id+`,`), b[len(`{"jsonrpc":"2.0",`):]...)
}
