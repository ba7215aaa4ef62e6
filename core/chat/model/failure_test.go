package model

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAProvidersHTTP500IsAProviderErrorBut429And503And529KeepTheirMeaning(t *testing.T) {
	for _, c := range []struct {
		status        int
		kind, message string
		want          Failure
	}{
		{500, "", "", ServerError}, {500, "api_error", "", ServerError}, {500, "server_error", "JSON schema conversion failed:\nPattern must start with '^'", Refused}, {0, "api_error", "", ServerError}, {501, "", "", ServerError},
		{529, "", "", Overloaded}, {529, "overloaded_error", "", Overloaded}, {503, "", "", Overloaded}, {502, "", "", Overloaded},
		{429, "", "", RateLimited}, {429, "insufficient_quota", "", Refused}, {401, "", "", Auth}, {413, "", "", TooLong}, {400, "", "", Refused},
	} {
		if got := FromStatus(c.status, http.Header{}, c.kind, c.message, nil).Failure; got != c.want {
			t.Errorf("status %d, %q gives %d, want %d", c.status, c.kind, got, c.want)
		}
	}
}

func TestTheCauseOfAnUnreachableProviderIsKept(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	closing := listen(t, func(c net.Conn) { _ = c.Close() })
	for name, c := range map[string]struct {
		url, want string
		permanent bool
	}{
		"nothing is listening":     {"http://127.0.0.1:1/v1?key=canary", "connection refused", false},
		"no such name":             {"http://canary-user:pw@no-such-host.invalid/v1", "DNS", true},
		"unknown certificate":      {secure.URL, "TLS: the certificate is signed by an unknown authority", true},
		"no TLS":                   {strings.Replace(plain.URL, "http:", "https:", 1), "TLS: the server does not use TLS", true},
		"closed at once":           {"http://" + closing, "the connection was closed before a response arrived", false},
		"no response for too long": {"http://" + listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), "timeout", false},
	} {
		t.Run(name, func(t *testing.T) {
			client := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 100_000_000}}
			t.Cleanup(client.CloseIdleConnections)
			response, err := client.Get(c.url)
			if err == nil {
				_ = response.Body.Close()
				t.Fatal("it was reached")
			}
			known, ok := errors.AsType[*Error](FromBreak(t.Context(), err))
			if !ok || known.Failure != Unreachable || !strings.Contains(known.Message, c.want) || known.Host == "" {
				t.Fatalf("%+v", known)
			}
			if strings.Contains(known.Error(), "canary-user") || strings.Contains(known.Error(), "key=") {
				t.Errorf("secrets in %v", known)
			}
			if c.permanent && known.isTransient() && !strings.Contains(known.Message, "did not answer") {
				t.Errorf("%v would be retried", known)
			}
		})
	}
}

// listen starts a listener that passes connections to a function, and returns its address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

func TestAConversationThatIsTooLongIsRecognizedInEveryProvidersWords(t *testing.T) {
	for _, words := range []string{
		"prompt is too long: 210000 tokens > 200000 maximum",                                                                                    // Anthropic
		"input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000, decrease input length or `max_tokens` and try again",       // Anthropic
		"Input is too long for requested model.",                                                                                                // Bedrock
		"Your input exceeds the context window of this model. Please adjust your input and try again.",                                          // OpenAI
		"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",                                                // vLLM, DeepSeek
		"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",                                               // Gemini
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.",                                                  // xAI
		"Please reduce the length of the messages or completion.",                                                                               // Groq
		"the request exceeds the available context size. try increasing the context size or enable context shift",                               // llama.cpp
		"The number of tokens to keep from the initial prompt is greater than the context length.",                                              // LM Studio
		"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens", // LM Studio
		"Invalid request: Your request exceeded model token limit: 262144",                                                                      // Kimi
		"The input (9000 tokens) is longer than the model's context length (8192 tokens).",                                                      // SGLang
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4076 `inputs` tokens and 100 `max_new_tokens`",      // Together, TGI
		"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt",                  // Cohere
		"Prompt exceeds max length", // Z.ai
		"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",                  // Qwen
		"prompt too long; exceeded max context length by 4 tokens",                                               // Ollama
		"litellm.ContextWindowExceededError: litellm.BadRequestError: VertexAIException",                         // LiteLLM
		"prompt token count of 162165 exceeds the limit of 128000",                                               // GitHub
		"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", // Mistral
	} {
		if got := FromStatus(400, nil, "", words, nil).Failure; got != TooLong {
			t.Errorf("%q is %d", words, got)
		}
	}
	for status, words := range map[int]string{
		429: "Too many tokens, please wait before trying again.",
		400: "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
		422: "tools: the list exceeds the limit of 128",
	} {
		if got := FromStatus(status, nil, "", words, nil).Failure; got == TooLong {
			t.Errorf("%q is too long", words)
		}
	}
}

// A limit that is learned is remembered for the model, so it must not depend on the length of one conversation.
func TestTheAnswerLimitDoesNotDependOnTheConversation(t *testing.T) {
	for words, want := range map[string]int{
		"input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000, decrease input length or `max_tokens` and try again":  0,
		"input length and `max_tokens` exceed context limit: 3000 + 8192 > 10000, decrease input length or `max_tokens` and try again":     2500,
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 12 `inputs` tokens and 8192 `max_new_tokens`":  2048,
		"The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.": 4096,
		"The input token count (9000) exceeds the maximum number of tokens allowed (4000).":                                                0,
	} {
		if got := FromStatus(400, nil, "", words, nil).AnswerLimit(8192); got != want {
			t.Errorf("%q gives %d, want %d", words, got, want)
		}
	}
}

func TestAnErrorIncludesTheMessageFromTheProviderBehindAGateway(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long\",\"type\":\"x\",\"param\":\"p\"}}","provider_name":"A"}}}`: "x|p|Provider returned error: prompt is too long",
		`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"bad"}}}`:                                                                                                 "||Provider returned error: bad",
		`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":{"error":{"message":"m"}}}}}`:                                                                             "||Provider returned error: m",
		`{"error":{"message":"m","metadata":{"provider_name":null}}}`:                                                                                                                         "||m",
	} {
		if w := wordsOf([]byte(body)); w.kind+"|"+w.param+"|"+w.message != want {
			t.Errorf("%s gives %+v", body, w)
		}
	}
}

func TestAWebPageIsNotAResponse(t *testing.T) {
	said := "\n<!doctype html>"
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, said)
	}))
	t.Cleanup(page.Close)
	_, err := Post(t.Context(), page.Client(), page.URL, http.Header{}, nil)
	known, ok := errors.AsType[*Error](err)
	if !ok || known.Failure != Unreachable || known.isTransient() || !strings.Contains(known.Message, "a web page was returned") || !strings.Contains(known.Message, "baseUrl") {
		t.Errorf("%+v", err)
	}
	said = "data: one\n\n"
	response, err := Post(t.Context(), page.Client(), page.URL, http.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if got, err := NewEventStream(response.Body).Next(); err != nil || string(got) != "one" {
		t.Errorf("a stream with the type of a page: %q, %v", got, err)
	}
}
