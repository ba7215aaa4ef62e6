package chat_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answer handles a request.
func (s *strict) answer(w http.ResponseWriter, r *http.Request, others map[string]*strict) {
	body, _ := io.ReadAll(r.Body)
	var in sent
	if json.Unmarshal(body, &in) != nil || json.Unmarshal(body, &in.members) != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked++
	turn := s.asked
	why := s.refusalOf(r, body, in, others)
	s.mu.Unlock()
	if turn == 1 {
		var status int
		_, _ = fmt.Sscan(s.overload, &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.TrimLeft(s.overload, "0123456789 "))
		return
	}
	if why != nil {
		words, _ := json.Marshal(why.words)
		member, _ := json.Marshal(why.member)
		text := strings.Replace(s.failure, "%s", string(words), 1)
		w.WriteHeader(why.status)
		_, _ = io.WriteString(w, strings.Replace(text, "%s", string(member), 1))
		return
	}
	s.mu.Lock()
	events := s.events(in, turn)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	end := []string{"\n", "\r\n", "\r"}[turn%3]
	text := ""
	if end == "\r" {
		text = "\ufeff"
	}
	if s.comment != "" {
		text += s.comment + end + end
	}
	for _, e := range events {
		if s.id == "anthropic" {
			var typed struct{ Type string }
			_ = json.Unmarshal([]byte(e), &typed)
			text += "event: " + typed.Type + end
		}
		text += "data: " + e + end + end
	}
	_, _ = io.WriteString(w, text)
}

func (s *strict) refusalOf(r *http.Request, body []byte, in sent, others map[string]*strict) *refusal {
	why := s.check(r, body, in, others)
	if why != nil {
		if why.status == 0 {
			why.status = s.status
		}
		s.refused[why.words] = true
	}
	return why
}

// said returns the person's last text, and whether tool results follow it.
func (in sent) said() (text string, answered bool) {
	for i := len(in.Messages) - 1; i >= 0; i-- {
		m := in.Messages[i]
		if m.Role != "user" {
			answered = answered || len(m.results()) > 0
			continue
		}
		for _, p := range m.parts() {
			answered = answered || p.Type == "tool_result"
			if p.Type == "text" && strings.HasPrefix(p.Text, "please") {
				return p.Text, answered
			}
		}
	}
	return "", answered
}

// events returns the events of an answer. If the person asks for something, the answer has reasoning and two calls.
// Once the calls are answered, it has text, with a failure in the middle if the person asks for that.
func (s *strict) events(in sent, turn int) []string {
	text, answered := in.said()
	mark := fmt.Sprintf("%s thinks %d", s.name, turn)
	calls := len(in.Tools) > 0 && text != "" && !answered
	breaks := strings.Contains(text, "break") && !calls
	if s.reasons != "" && calls {
		s.marks = append(s.marks, mark)
	}
	own := s.id[:1] + s.id[len(s.id)-1:] // no other vendor has these letters
	ids := []string{fmt.Sprintf("%s%06da", own, turn), fmt.Sprintf("%s%06db", own, turn)}
	if s.id == "anthropic" {
		return s.anthropicEvents(mark, ids, calls, breaks)
	}
	return s.chunks(mark, ids, calls, breaks)
}

func (s *strict) anthropicEvents(mark string, ids []string, calls, breaks bool) []string {
	events := []string{`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`, `{"type":"ping"}`}
	if !calls {
		events = append(events, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}`)
		if breaks {
			return append(events, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
		}
		return append(events, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`)
	}
	for _, id := range ids {
		s.issued[id] = mark + "sig==" + mark
	}
	return append(events,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"`+mark+`"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig==`+mark+`"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"`+ids[0]+`","name":"files__see","input":{}}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"`+ids[1]+`","name":"files__do","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"two\"}"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"one\"}"}}`,
		`{"type":"content_block_stop","index":1}`, `{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`)
}

func (s *strict) chunks(mark string, ids []string, calls, breaks bool) (chunks []string) {
	add := func(delta string) {
		chunks = append(chunks, `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":`+delta+`,"finish_reason":null}]}`)
	}
	if s.first != "" {
		chunks = append(chunks, s.first)
	}
	add(`{"role":"assistant","content":""}`)
	finish := "stop"
	if calls {
		finish = "tool_calls"
		extra, back := s.reason(add, mark)
		for _, id := range ids {
			s.issued[id] = back
		}
		if s.reasons == "reasoning_content" { // these vendors put empty lines between reasoning and calls
			add(`{"content":"\n\n"}`)
		}
		call := func(index, id, name, arguments, rest string) string {
			return `{"index":` + index + `,"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":"` + arguments + `"}` + rest + `}`
		}
		switch {
		case s.whole && s.id == "gemini": // it numbers all calls 0
			add(`{"tool_calls":[` + call("0", ids[0], "files__see", `{\"path\":\"one\"}`, extra) + `]}`)
			add(`{"tool_calls":[` + call("0", ids[1], "files__do", `{\"path\":\"two\"}`, "") + `]}`)
		case s.whole:
			add(`{"tool_calls":[` + call("0", ids[0], "files__see", `{\"path\":\"one\"}`, extra) + `,` + call("1", ids[1], "files__do", `{\"path\":\"two\"}`, "") + `]}`)
		default: // interleaved
			add(`{"tool_calls":[` + call("0", ids[0], "files__see", "", extra) + `]}`)
			add(`{"tool_calls":[` + call("1", ids[1], "files__do", `{\"path\":`, "") + `]}`)
			add(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"one\"}"}}]}`)
			add(`{"tool_calls":[{"index":1,"function":{"arguments":"\"two\"}"}}]}`)
		}
	} else {
		add(`{"content":"Done."}`)
	}
	if breaks {
		return append(chunks, `{"error":{"message":"upstream failed","code":502},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`)
	}
	return append(chunks, `{"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, "[DONE]")
}

// reason sends reasoning. It returns the members that the first call gets for it, and the text that must come back.
func (s *strict) reason(add func(string), mark string) (extra, back string) {
	switch s.reasons {
	case "reasoning_content", "reasoning":
		add(`{"` + s.reasons + `":"` + mark + ` <"}`)
		add(`{"` + s.reasons + `":"> 1.0"}`)
		return "", `"` + mark + ` <> 1.0"`
	case "reasoning_details":
		add(`{"reasoning":"` + mark + `","reasoning_details":[{"type":"reasoning.text","text":"` + mark + `","index":0,"format":"unknown"}]}`)
		add(`{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s=="}]}`)
		return "", `[{"type":"reasoning.text","text":"` + mark + `","index":0,"format":"unknown","signature":"s=="}]`
	case "extra_content":
		return `,"extra_content":{"google":{"thought_signature":"` + mark + `"}}`, `{"google":{"thought_signature":"` + mark + `"}}`
	case "content":
		add(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"` + mark + `"}]}]}`)
		return "", `{"type":"thinking","thinking":[{"type":"text","text":"` + mark + `"}]}`
	}
	return "", ""
}
