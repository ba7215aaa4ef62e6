package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/openai"
)

// again calls p and then sends the answer back to p, as the next turn would.
func again(t *testing.T, p *openai.Provider, origin, next string) model.Answer {
	t.Helper()
	asked := []model.Message{model.TextMessage(model.User, "x")}
	answer, err := p.Call(t.Context(), "m", model.Request{Messages: asked}, model.Pieces{})
	if err != nil {
		t.Fatal(err)
	}
	model.Sign(answer.Blocks, origin)
	messages := model.ForModel(append(asked, model.Message{Role: model.Assistant, Blocks: answer.Blocks}, model.TextMessage(model.User, "y")), next)
	if _, err := p.Call(t.Context(), "m", model.Request{Messages: messages}, model.Pieces{}); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestOpaqueBlocksReturnToTheirProviderUnchanged(t *testing.T) {
	const args = `"function":{"name":"t","arguments":"{}"}`
	for name, c := range map[string]struct {
		chunks  []string
		want    string // the assistant's message that is sent back
		thought string
	}{
		"reasoning_content of DeepSeek and Qwen": {
			[]string{
				`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"a < b \ud83d"}}]}`,
				`{"choices":[{"index":0,"delta":{"reasoning_content":"\ude00 & c"}}]}`, `{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, stop,
			},
			`{"role":"assistant","content":"Hi","reasoning_content":"a < b \ud83d\ude00 & c"}`, "a < b \ufffd\ufffd & c",
		},
		"reasoning of vLLM": {
			[]string{`{"choices":[{"index":0,"delta":{"reasoning":"one "}}]}`, `{"choices":[{"index":0,"delta":{"reasoning":"two","content":"Hi"}}]}`, stop},
			`{"role":"assistant","content":"Hi","reasoning":"one two"}`, "one two",
		},
		"reasoning_details of OpenRouter": {
			[]string{
				`{"choices":[{"index":0,"delta":{"reasoning":"T","reasoning_details":[{"type":"reasoning.text","text":"T","index":0,"format":"anthropic-claude-v1"},{"type":"reasoning.encrypted","data":"ab","id":"r1","index":1}]}}]}`,
				`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"cd","index":1},{"type":"reasoning.text","text":"U","index":0,"signature":"s=="}],"content":"Hi"}}]}`, stop,
			},
			`{"role":"assistant","content":"Hi","reasoning":"T","reasoning_details":[{"type":"reasoning.text","text":"TU","index":0,"format":"anthropic-claude-v1","signature":"s=="},{"type":"reasoning.encrypted","data":"abcd","id":"r1","index":1}]}`, "TU",
		},
		"the signature of Gemini on a later piece of a call": {
			[]string{
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a",` + args + `}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"extra_content":{"google":{"thought_signature":"s<1>"}}}]}}]}`, stop,
			},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s<1>"}}}]}`, "",
		},
		"the signature of Gemini on the message": {
			[]string{`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, `{"choices":[{"index":0,"delta":{"content":"","extra_content":{"google":{"thought_signature":"s2"}}}}]}`, stop},
			`{"role":"assistant","content":"Hi","extra_content":{"google":{"thought_signature":"s2"}}}`, "",
		},
		"the content list of Mistral": {
			[]string{
				`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"T"}]}]}}]}`,
				`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"U"}],"closed":true}]}}]}`,
				`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`,
				`{"choices":[{"index":0,"delta":{"content":[{"type":"reference","reference_ids":[9007199254740993]},{"type":"text","text":"!"}]}}]}`, stop,
			},
			`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"TU"}],"closed":true},{"type":"text","text":"Hi"},{"type":"reference","reference_ids":[9007199254740993]},{"type":"text","text":"!"}]}`, "TU",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var bodies []string
			p := serveRecorded(t, c.chunks, &bodies)
			answer := again(t, p, "m@1", "m@1")
			if !strings.Contains(bodies[1], c.want) {
				t.Errorf("sent back\n     %s\nwant %s", bodies[1], c.want)
			}
			thought := ""
			for _, b := range answer.Blocks {
				if b.Kind == model.Reasoning {
					thought += b.Text
				}
			}
			if thought != c.thought || strings.Contains(answer.Text(), "T") {
				t.Errorf("reasoning %q, text %q", thought, answer.Text())
			}
			bodies = nil
			again(t, p, "m@1", "m@2")
			for _, opaque := range []string{"reasoning", "extra_content", "thinking", "reference"} {
				if strings.Contains(bodies[1], opaque) {
					t.Errorf("another model got %s", bodies[1])
				}
			}
		})
	}
}

// serveRecorded answers every request with these chunks, and records the bodies.
func serveRecorded(t *testing.T, chunks []string, bodies *[]string) *openai.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		*bodies = append(*bodies, string(raw))
		for _, c := range chunks {
			_, _ = io.WriteString(w, "data: "+c+"\n\n")
		}
	}))
	t.Cleanup(server.Close)
	p := openai.New(model.Settings{BaseURL: server.URL})
	t.Cleanup(p.Close)
	return p
}

func TestCallFragmentsAreMatchedInAnyInterleaving(t *testing.T) {
	piece := func(index, id, name, arguments string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":` + index + `,"id":"` + id + `","function":{"name":"` + name + `","arguments":` + string(quote(arguments)) + `}}]}}]}`
	}
	for name, chunks := range map[string][]string{
		"by index": {piece("0", "a", "t", `{"x"`), piece("1", "b", "u", `{"y"`), piece("0", "", "", `:1}`), piece("1", "", "", `:2}`)},
		"by id":    {piece("0", "a", "t", `{"x"`), piece("0", "b", "u", `{"y"`), piece("0", "a", "", `:1}`), piece("0", "b", "", `:2}`)},
	} {
		p, _, _ := serve(t, append(chunks, stop, "[DONE]")...)
		answer, err := p.Call(t.Context(), "m", model.Request{}, model.Pieces{})
		if b := answer.Blocks; err != nil || len(b) != 2 || string(b[0].Input) != `{"x":1}` || string(b[1].Input) != `{"y":2}` || b[1].Name != "u" {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

func quote(text string) []byte {
	raw, _ := json.Marshal(text)
	return raw
}

func TestEachStopReasonIsReported(t *testing.T) {
	call := `"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":""}}]`
	for _, c := range []struct {
		delta, finish string
		want          model.End
		word          string
		cut           bool
	}{
		{`"content":"Hi"`, "stop", model.EndTurn, "", false},
		{`"content":"Hi"`, "tool_calls", model.EndNoCalls, "", false},
		{`"content":"Hi"`, "content_filter", model.EndFilter, "", false},
		{`"refusal":"No."`, "stop", model.EndRefusal, "", false},
		{`"content":"Hi"`, "model_length", model.EndWindow, "", false},
		{`"content":"Hi"`, "tired", model.EndUnknown, "tired", false},
		{`"content":"Hi"`, "eos_token", model.EndTurn, "", false},
		{`"content":"Hi"`, "MAX_TOKENS", model.EndLength, "", false},
		{`"content":"Hi"`, "SAFETY", model.EndFilter, "", false},
		{`"content":"Hi"`, "tool_use", model.EndNoCalls, "", false},
		{call, "length", model.EndLength, "", true},
		{call, "tool_calls", model.EndTurn, "", false},
	} {
		p, _, _ := serve(t, `{"choices":[{"index":0,"delta":{`+c.delta+`},"finish_reason":"`+c.finish+`"}]}`, "[DONE]")
		answer, err := p.Call(t.Context(), "m", model.Request{}, model.Pieces{})
		if err != nil || answer.End != c.want || answer.Word != c.word || answer.CutCall != c.cut {
			t.Errorf("%s after %s: %+v, %v", c.finish, c.delta, answer, err)
		}
	}
}
