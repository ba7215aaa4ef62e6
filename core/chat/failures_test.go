package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/store"
)

func TestProviderFailuresHaveReadableMessages(t *testing.T) {
	for name, c := range map[string]struct {
		fixture string
		code    core.Code
		want    string
		asked   int
	}{
		"an invalid key":                      {`{"match":{},"response":{"error":{"message":"invalid x-api-key","type":"authentication_error"},"status":401}}`, core.CodeProviderAuth, "key", 1},
		"a rate limit for an hour":            {`{"match":{},"response":{"error":{"message":"slow down","type":"rate_limit_error"},"status":429,"retryAfter":3600}}`, core.CodeRateLimited, "is limiting", 1},
		"too long":                            {`{"match":{},"response":{"error":{"message":"prompt is too long: 250000 tokens > 200000 maximum context length","type":"invalid_request_error","code":"context_length_exceeded"},"status":400}}`, core.CodeProviderError, "too long", 1},
		"a request that the provider rejects": {`{"match":{},"response":{"error":{"message":"bad tool schema at /secret","type":"invalid_request_error"},"status":400}}`, core.CodeProviderError, "did not accept", 3},
		"a broken stream":                     {`{"match":{},"response":{"content":"This is a long answer that is never completed, because the stream breaks."},"truncateAfterChunks":5,"chunkSize":5,"latency":40}`, core.CodeProviderError, "broke", 1},
	} {
		for _, protocol := range protocols() {
			t.Run(name+" on "+protocol, func(t *testing.T) {
				h := open(t, protocol, nil)
				h.model.Say(t, c.fixture)
				member := owner()
				member.User.OrgRole = core.RoleMember
				run, err := h.Begin(t.Context(), member, chat.Request{Message: "hi"})
				if err != nil {
					t.Fatal(err)
				}
				events := &tape{}
				_, err = run.Do(t.Context(), events.emit)
				failed := events.data("error")
				if core.CodeOf(err) != c.code || len(failed) != 1 || failed[0]["error"] != string(c.code) || !strings.Contains(failed[0]["message"].(string), c.want) {
					t.Errorf("%v, events %v", err, failed)
				}
				if strings.Contains(text(failed), "secret") || strings.Contains(text(failed), "127.0.0.1") {
					t.Errorf("it shows what the provider said: %v", failed)
				}
				if n := len(h.asked()); n != c.asked {
					t.Errorf("the provider got %d requests", n)
				}
				conversation := events.data("chat.start")[0]["conversationId"].(string)
				messages, err := h.History(t.Context(), owner(), conversation)
				said := events.data("text.delta")
				if err != nil || len(messages) != 2 {
					t.Fatalf("%d messages are kept, %v", len(messages), err)
				}
				var kept struct {
					StopReason, StopMessage   string
					InputTokens, OutputTokens *int
				}
				if err := json.Unmarshal(messages[1].Metadata, &kept); err != nil || kept.StopReason != "provider_error" || kept.StopMessage != failed[0]["message"] {
					t.Errorf("the history says %s, the event %v (%v)", messages[1].Metadata, failed, err)
				}
				if len(said) == 0 && (kept.InputTokens != nil || kept.OutputTokens != nil) {
					t.Errorf("unknown usage is kept as %s", messages[1].Metadata)
				}
				if len(said) > 0 && !strings.HasPrefix(messages[1].Content, "This ") {
					t.Errorf("kept %q", messages[1].Content)
				}
			})
		}
	}
}

// down is a store that fails to save a model's answers.
type down struct{ *store.Store }

func (a down) AppendMessages(ctx context.Context, ref core.ConversationRef, add []core.Message, used ...core.Usage) (core.Conversation, error) {
	if len(used) > 0 {
		return core.Conversation{}, core.Errorf(core.CodeUnavailable, "the database is down")
	}
	return a.Store.AppendMessages(ctx, ref, add)
}

func TestAnInternalFailureHasTheContractsCodeInItsEvent(t *testing.T) {
	h := open(t, "openai", nil)
	h.model.Say(t, `{"match":{},"response":{"content":"Ok."}}`)
	models, err := chat.NewModels(h.config)
	if err != nil {
		t.Fatal(err)
	}
	e := chat.New(chat.Options{Store: down{h.store}, Tools: h.tools, Models: models, Skills: skill.NewLibrary(h.home, nil, hclog.NewNullLogger()), Logger: hclog.NewNullLogger()})
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	run, err := e.Begin(t.Context(), owner(), chat.Request{Message: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	events := &tape{}
	_, err = run.Do(t.Context(), events.emit)
	said := events.data("error")
	if core.CodeOf(err) != core.CodeUnavailable || len(said) != 1 || said[0]["error"] != "engine_error" || said[0]["message"] != "the database is down" {
		t.Errorf("%v, events %v", err, said)
	}
}

func TestAnOverloadedProviderIsRetriedAfterTheDelayItAsksFor(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			h.model.Say(t, titled,
				`{"match":{"userMessage":"hi","sequenceIndex":0},"response":{"error":{"message":"overloaded","type":"overloaded_error"},"status":529,"retryAfter":2}}`,
				`{"match":{"userMessage":"hi"},"response":{"content":"Hello."}}`)
			answer, _ := h.must(chat.Request{Message: "hi"})
			journal := h.model.Journal(t)
			if answer.Response != "Hello." || len(journal) < 2 {
				t.Fatalf("%+v after %d requests", answer, len(journal))
			}
			if pause := time.Duration(journal[1].At-journal[0].At) * time.Millisecond; pause < 500*time.Millisecond || pause > 30*time.Second {
				t.Errorf("it was asked again after %v", pause)
			}
		})
	}
}

func TestAUserWhoDisconnectsEndsTheToolCall(t *testing.T) {
	h := open(t, "anthropic", nil)
	h.apps.add("files", "do", "")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var left time.Time
	h.apps.do["do"] = func(ctx context.Context, _ string, _ func(rpc.Notification)) (string, error) {
		left = time.Now()
		leave()
		<-ctx.Done()
		return ``, ctx.Err()
	}
	h.model.Say(t, titled, `{"match":{"userMessage":"go","hasToolResult":false},"response":{"content":"I begin.","toolCalls":[{"name":"files__do","arguments":{}}]}}`,
		`{"match":{"userMessage":"next"},"response":{"content":"Ok."}}`)
	run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := run.Do(ctx, (&tape{}).emit)
	if err != nil || answer.StopReason != chat.Cancelled || answer.Response != "I begin." || time.Since(left) > 20*time.Second {
		t.Fatalf("%+v, %v, %v after", answer, err, time.Since(left))
	}
	messages, err := h.History(t.Context(), owner(), answer.ConversationID)
	if err != nil || len(messages) != 2 || messages[1].Content != "I begin." || !strings.Contains(string(messages[1].Metadata), `"stopReason":"cancelled"`) {
		t.Fatalf("kept %+v, %v", messages, err)
	}
	h.must(chat.Request{Message: "next", ConversationID: answer.ConversationID})
	asked := h.asked()
	if last := text(asked[len(asked)-1]["messages"]); !strings.Contains(last, "The call was cancelled.") {
		t.Errorf("the call has no answer: %s", last)
	}
}

func TestARunEndsAtItsLimits(t *testing.T) {
	const forever = `{"match":{"userMessage":"go"},"response":{"toolCalls":[{"name":"files__do","arguments":{}}],"usage":{"prompt_tokens":60,"completion_tokens":50}}}`
	t.Run("iterations", func(t *testing.T) {
		h := open(t, "openai", nil)
		h.apps.add("files", "do", "")
		h.model.Say(t, titled, forever)
		two, hundred := 2, 100
		answer, _ := h.must(chat.Request{Message: "go", MaxIterations: &two})
		if answer.StopReason != chat.MaxIterations || answer.Usage.Iterations != 2 || len(answer.ToolCalls) != 2 {
			t.Errorf("%+v", answer)
		}
		for most, want := range map[*int]int{nil: 25, &hundred: 50} {
			if answer, _ = h.must(chat.Request{Message: "go", MaxIterations: most}); answer.Usage.Iterations != want {
				t.Errorf("%d iterations, want %d", answer.Usage.Iterations, want)
			}
		}
	})
	t.Run("tokens", func(t *testing.T) {
		h := open(t, "openai", budget(200))
		h.apps.add("files", "do", "")
		h.model.Say(t, titled, forever)
		if answer, _ := h.must(chat.Request{Message: "go"}); answer.StopReason != chat.TokenBudget || answer.Usage.Iterations != 2 {
			t.Errorf("%+v", answer)
		}
	})
	t.Run("the length of one answer", func(t *testing.T) {
		h := open(t, "openai", nil)
		h.model.Say(t, titled, `{"match":{},"response":{"content":"Half","finishReason":"length"}}`)
		if answer, _ := h.must(chat.Request{Message: "go"}); answer.StopReason != chat.TokenBudget || answer.Response != "Half" {
			t.Errorf("%+v", answer)
		}
	})
}

func TestOnlyAdminsSeeWhyAProviderCannotBeReached(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	h := open(t, "openai", func(c *config.Models) {
		c.Providers["openai"] = config.ModelProvider{Type: config.ProviderOpenAI, BaseURL: secure.URL + "/v1", APIKey: "canary-key"}
	})
	member := owner()
	member.User.OrgRole = core.RoleMember
	for name, c := range map[string]struct {
		caller core.Caller
		cause  bool
	}{"an admin": {owner(), true}, "a member": {member, false}} {
		run, err := h.Begin(t.Context(), c.caller, chat.Request{Message: "hi"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = run.Do(t.Context(), nil)
		if cause := strings.Contains(err.Error(), "127.0.0.1:") && strings.Contains(err.Error(), "TLS: the certificate"); core.CodeOf(err) != core.CodeProviderError || cause != c.cause {
			t.Errorf("%s sees %v", name, err)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("the key is in %v", err)
		}
	}
}

func TestOnlyAdminsSeeTheProvidersOwnWords(t *testing.T) {
	h := open(t, "openai", nil)
	h.model.Say(t, `{"match":{},"response":{"error":{"message":"The model m was retired.","type":"invalid_request_error"},"status":400}}`)
	member := owner()
	member.User.OrgRole = core.RoleMember
	for _, c := range []core.Caller{owner(), member} {
		run, err := h.Begin(t.Context(), c, chat.Request{Message: "hi"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = run.Do(t.Context(), nil)
		if shown := strings.Contains(err.Error(), "did not accept the request. It says: The model m was retired."); shown != c.User.OrgRole.Admin() {
			t.Errorf("%s: %v", c.User.OrgRole, err)
		}
	}
}

func TestAnAPIKeyEchoedByAProviderIsRedacted(t *testing.T) {
	const key = "canary-key-0123456789"
	for _, protocol := range protocols() {
		h := open(t, protocol, func(c *config.Models) {
			p := c.Providers[protocol]
			p.APIKey = key
			c.Providers[protocol] = p
		})
		h.model.Say(t, `{"match":{},"response":{"error":{"message":"Incorrect API key provided: `+key+`.","type":"authentication_error"},"status":401}}`)
		run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "hi"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = run.Do(t.Context(), nil)
		models, newErr := chat.NewModels(h.config)
		if newErr != nil {
			t.Fatal(newErr)
		}
		_, probed := models.Probe(t.Context())
		models.Close()
		for _, err := range []error{err, errors.Unwrap(err), probed} {
			if err == nil || strings.Contains(err.Error(), key) {
				t.Errorf("%s: the failure is %v", protocol, err)
			}
		}
		if !strings.Contains(probed.Error(), "Incorrect API key provided: [redacted].") {
			t.Errorf("%s: the failure is %v", protocol, probed)
		}
	}
}

func TestAnAnswerThatIsWithheldFromTheStartIsExplainedInTheHistory(t *testing.T) {
	h := open(t, "openai", nil)
	h.model.Say(t, titled, `{"match":{"userMessage":"next"},"response":{"content":"Ok."}}`,
		`{"match":{},"response":{"error":{"message":"The response was filtered due to the prompt triggering the content management policy.","type":"invalid_request_error","code":"content_filter"},"status":400}}`)
	answer, _ := h.must(chat.Request{Message: "hi"})
	messages := must2(h.History(t.Context(), owner(), answer.ConversationID))
	if answer.StopReason != chat.ContentFilter || len(messages) != 2 || !strings.Contains(string(messages[1].Metadata), `"stopReason":"content_filter"`) {
		t.Fatalf("%+v, kept %+v", answer, messages)
	}
	h.must(chat.Request{Message: "next", ConversationID: answer.ConversationID})
	asked := h.asked()
	if last := text(asked[len(asked)-1]["messages"]); strings.Contains(last, "assistant\"") {
		t.Errorf("an empty message is sent: %s", last)
	}
}

func TestARunThatPanicsFailsAlone(t *testing.T) {
	for _, at := range []string{chat.EventStart, chat.EventText, chat.EventToolStart, chat.EventToolDone} {
		t.Run(at, func(t *testing.T) { panicsAt(t, at) })
	}
}

func panicsAt(t *testing.T, event string) {
	t.Helper()
	h := open(t, "openai", nil)
	h.apps.add("files", "write", "")
	h.model.Say(t, titled, writes, wrote, `{"match":{},"response":{"content":"Hello."}}`)
	run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "please write it"})
	if err != nil {
		t.Fatal(err)
	}
	events := &tape{each: func(e chat.Event) {
		if e.Name == event {
			panic("odd event")
		}
	}}
	_, err = run.Do(t.Context(), events.emit)
	if said := events.data("error"); core.CodeOf(err) != core.CodeEngineError || len(said) != 1 || said[0]["error"] != "engine_error" {
		t.Errorf("%v, events %v", err, events.names())
	}
	id := events.data("chat.start")[0]["conversationId"].(string)
	messages := must2(h.History(t.Context(), owner(), id))
	if len(messages) != 2 || !strings.Contains(string(messages[1].Metadata), `"stopMessage":"the server failed to run the chat; the reason is in its log"`) {
		t.Errorf("the history has %+v", messages)
	}
	if event == chat.EventToolStart || event == chat.EventToolDone {
		used, err := h.Usage(t.Context(), owner(), core.UsageQuery{GroupBy: core.UsageByModel})
		if err != nil || used.Totals.InputTokens != 10 || used.Totals.OutputTokens != 5 {
			t.Errorf("the usage of the model call is %+v, %v", used.Totals, err)
		}
	}
	h.must(chat.Request{Message: "again", ConversationID: id})
}
