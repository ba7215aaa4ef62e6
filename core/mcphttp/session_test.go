package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

func TestAClientIsAskedOnlyQuestionsThatItSupports(t *testing.T) {
	for _, c := range []struct {
		capabilities, method, params string
		code                         int // the code of the refusal; 0 if the question is asked
	}{
		{`{}`, "elicitation/create", `{}`, -32601},
		{`{"elicitation":null}`, "elicitation/create", `{}`, -32601},
		{`{"elicitation":{}}`, "elicitation/create", `{}`, 0},
		{`{"elicitation":{}}`, "elicitation/create", `{"mode":"form"}`, 0},
		{`{"elicitation":{}}`, "elicitation/create", `{"mode":"url"}`, -32602},
		{`{"elicitation":{"url":{}}}`, "elicitation/create", `{"mode":"url"}`, 0},
		{`{"elicitation":{"url":{}}}`, "elicitation/create", `{}`, -32602},
		{`{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{}`, 0},
		{`{"sampling":{}}`, "sampling/createMessage", `{}`, 0},
		{`{"roots":{}}`, "sampling/createMessage", `{}`, -32601},
		{`{"roots":{}}`, "roots/list", ``, 0},
		{``, "roots/list", ``, -32601},
		{`{"roots":{}}`, "tools/list", ``, -32601},
	} {
		t.Run(c.capabilities+c.method+c.params, func(t *testing.T) {
			s := &session{Capabilities: json.RawMessage(c.capabilities)}
			_, err := s.timeoutOf(c.method, json.RawMessage(c.params))
			failure, _ := errors.AsType[*rpc.Error](err)
			if c.code == 0 && err != nil || c.code != 0 && (failure == nil || failure.Code != c.code) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestQuestionsAreAnsweredOnceWithinTheirTimeAndCountLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(core.Caller{}, sessionstore.Record{}, json.RawMessage(`{"roots":{},"elicitation":{}}`))
		ask := func(method string) error {
			_, err := s.Ask(t.Context(), nil, rpc.Question{Method: method})
			return err
		}
		if err := ask("roots/list"); err == nil || !strings.Contains(err.Error(), "no open stream") {
			t.Errorf("without a stream: %v", err)
		}
		out := s.OpenStream(-1)
		begin := time.Now()
		if err := ask("roots/list"); err == nil || time.Since(begin) != programTimeout {
			t.Errorf("if there is no answer: %v after %v", err, time.Since(begin))
		}
		if sent, _ := out.Take(); len(sent) != 2 || !strings.Contains(string(sent[1].Text), "notifications/cancelled") {
			t.Errorf("sent %v", sent)
		}
		failed := make(chan error)
		go func() { failed <- ask("elicitation/create") }()
		synctest.Wait()
		s.Answer(json.RawMessage(`"ask-3"`), json.RawMessage(`{"code":-1,"message":"User rejected","data":{"n":1.0}}`), true)
		if failure, ok := errors.AsType[*rpc.Error](<-failed); !ok || failure.Code != -1 || string(failure.Data) != `{"n":1.0}` {
			t.Errorf("an error from the client: %v", failure)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range maxQuestions {
			go func() { _, _ = s.Ask(ctx, nil, rpc.Question{Method: "elicitation/create"}) }()
		}
		synctest.Wait()
		if err := ask("elicitation/create"); err == nil || !strings.Contains(err.Error(), "which is the limit") {
			t.Errorf("one question over the limit: %v", err)
		}
		cancel()
		synctest.Wait()
		if len(s.questions) != 0 {
			t.Errorf("%d questions remain", len(s.questions))
		}
	})
}

func TestAChangeThatAStreamCouldNotSendIsSentByTheNextOne(t *testing.T) {
	s := newSession(core.Caller{}, sessionstore.Record{}, nil)
	first := s.OpenStream(-1)
	s.ListChanged(core.KindTools)
	s.CloseStream(first)
	second := s.OpenStream(-1)
	frames, _ := second.Take()
	if len(frames) != 1 || string(frames[0].Text) != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Errorf("%v", frames)
	}
	s.CloseStream(second)
	if frames, _ := s.OpenStream(-1).Take(); len(frames) != 0 {
		t.Errorf("the change was sent twice: %v", frames)
	}
}
