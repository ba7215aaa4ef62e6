package chat_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

const doneReply = `{"match":{"userMessage":"go","hasToolResult":true},"response":{"content":"Done."}}`

// asks returns a fixture that answers "go" with these calls, in aimock's toolCalls format.
func asks(calls string) string {
	return `{"match":{"userMessage":"go","hasToolResult":false},"response":{"toolCalls":[` + calls + `]}}`
}

func TestTheCallsOfOneModelResponseRunConcurrently(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			var both sync.WaitGroup
			both.Add(2)
			for _, name := range []string{"one", "two"} {
				h.apps.add("files", name, "")
				h.apps.do[name] = func(context.Context, string, func(rpc.Notification)) (string, error) {
					both.Done()
					both.Wait() // for the other call
					return `{"content":[{"type":"text","text":"` + name + `"}]}`, nil
				}
			}
			h.model.Say(t, titled, asks(`{"name":"files__one","arguments":{}},{"name":"files__two","arguments":{}}`), doneReply)
			answer, events := h.must(chat.Request{Message: "go"})
			if len(answer.ToolCalls) != 2 || answer.ToolCalls[0].Output != "one" || answer.ToolCalls[1].Output != "two" {
				t.Errorf("calls %+v", answer.ToolCalls)
			}
			if want := []string{"chat.start", "tool.start", "tool.done", "text.delta", "done"}; !slices.Equal(events.names(), want) {
				t.Errorf("events %v", events.names())
			}
			last := h.asked()[1]["messages"].([]any)
			if got := text(last[len(last)-2:]); !strings.Contains(got, "one") || !strings.Contains(got, "two") {
				t.Errorf("the model got %s", got)
			}
		})
	}
}

func TestAFailedCallIsExplainedToTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		call string
		do   func(context.Context, string, func(rpc.Notification)) (string, error)
		want string
		asks int // calls that reach the app
	}{
		"input that does not fit the schema": {`{"name":"files__do","arguments":{"path":7}}`, nil, `/path`, 0},
		"a tool that does not exist":         {`{"name":"files__none","arguments":{}}`, nil, `There is no tool`, 0},
		"a tool's own failure": {`{"name":"files__do","arguments":{}}`, func(context.Context, string, func(rpc.Notification)) (string, error) {
			return `{"content":[{"type":"text","text":"no such file"}],"isError":true}`, nil
		}, "no such file", 1},
		"a failure without a reason": {`{"name":"files__do","arguments":{}}`, func(context.Context, string, func(rpc.Notification)) (string, error) {
			return `{"content":[],"isError":true}`, nil
		}, "gave no reason", 1},
		"an app's JSON-RPC error": {`{"name":"files__do","arguments":{}}`, func(context.Context, string, func(rpc.Notification)) (string, error) {
			return ``, &rpc.Error{Code: -32602, Message: "bad path"}
		}, "bad path", 1},
		"an app that died": {`{"name":"files__do","arguments":{}}`, func(context.Context, string, func(rpc.Notification)) (string, error) {
			return ``, fmt.Errorf("pipe of /home/secret closed")
		}, "could not be reached", 1},
		"a panic": {`{"name":"files__do","arguments":{}}`, func(context.Context, string, func(rpc.Notification)) (string, error) {
			panic("oh")
		}, "failed inside the server", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, "anthropic", nil)
			h.apps.add("files", "do", "")
			h.apps.do["do"] = c.do
			h.model.Say(t, titled, asks(c.call), doneReply)
			answer, _ := h.must(chat.Request{Message: "go"})
			if len(answer.ToolCalls) != 1 || answer.ToolCalls[0].OK || !strings.Contains(answer.ToolCalls[0].Output, c.want) || strings.Contains(answer.ToolCalls[0].Output, "secret") {
				t.Errorf("calls %+v", answer.ToolCalls)
			}
			if len(h.apps.calls()) != c.asks || answer.Response != "Done." {
				t.Errorf("the app received %v; the answer is %q", h.apps.calls(), answer.Response)
			}
			if got := text(h.asked()[1]["messages"]); !strings.Contains(got, strings.ReplaceAll(c.want, `"`, `\"`)) {
				t.Errorf("the model got %s", got)
			}
			if len(h.changed()) != 0 {
				t.Errorf("data.changed for %v", h.changed())
			}
		})
	}
}

// Some servers number the calls of each answer from the same ID. Other providers reject a conversation that contains an
// ID twice.
func TestRepeatedIDsOfToolCallsAreReplaced(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "do", "")
	same := `{"id":"call_0","name":"files__do","arguments":{}}`
	h.model.Say(t, titled, asks(same+`,`+same), doneReply)
	first, _ := h.must(chat.Request{Message: "go"})
	h.model.Forget(t)
	h.model.Say(t, `{"match":{"turnIndex":1},"response":{"toolCalls":[`+same+`]}}`, doneReply)
	second, _ := h.must(chat.Request{Message: "go", ConversationID: first.ConversationID})
	var ids []string
	for _, c := range append(first.ToolCalls, second.ToolCalls...) {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	if len(ids) < 2 || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("the calls have the ids %v", ids)
	}
}

func TestAModelGetsAnExcerptOfALongResultAndCanReadTheRest(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "do", "")
	h.apps.do["do"] = func(context.Context, string, func(rpc.Notification)) (string, error) {
		return `{"content":[{"type":"text","text":"` + strings.Repeat("é", 60_000) + `ü` + strings.Repeat("o", 20_000) + `"}]}`, nil
	}
	h.model.Say(t, titled, asks(`{"name":"files__do","arguments":{}}`), doneReply)
	answer, events := h.must(chat.Request{Message: "go", AllowedTools: []string{"files__*"}})
	out := answer.ToolCalls[0].Output
	if tools.Tokens(len(out)) > 12_500 || !strings.Contains(out, "of 80001 characters are left out") || strings.Contains(out, "ü") || !strings.HasSuffix(out, "oo") {
		t.Fatalf("the model got %d bytes, with %q", len(out), strings.Trim(out, "éo"))
	}
	if events.data("tool.done")[0]["result"] != nil {
		t.Error("the whole result should not be sent as well")
	}
	if !strings.Contains(text(h.asked()[1]["messages"]), text(out)[1:100]) {
		t.Error("the request to the model should contain the excerpt")
	}
	history, err := h.History(t.Context(), owner(), answer.ConversationID)
	if err != nil || !strings.Contains(string(history[1].Metadata), strings.Repeat("é", 60_000)+"ü") {
		t.Errorf("the history should contain the whole result: %v", err)
	}
	_, arguments, _ := strings.Cut(out, "call system__read_result with ")
	arguments, _, _ = strings.Cut(arguments, ".]")
	arguments = strings.Replace(arguments, `"offset":`, `"offset":59990,"was":`, 1)
	arguments, _, _ = strings.Cut(arguments, `,"was"`)
	h.model.Say(t, `{"match":{"userMessage":"more","turnIndex":2},"response":{"toolCalls":[{"name":"system__read_result","arguments":`+arguments+`}}]}}`,
		`{"match":{"userMessage":"more","turnIndex":3},"response":{"content":"Done."}}`)
	answer, _ = h.must(chat.Request{Message: "more", ConversationID: answer.ConversationID, AllowedTools: []string{"files__*"}})
	read := answer.ToolCalls[0]
	if want := strings.Repeat("é", 10) + "üooo"; !read.OK || !strings.HasPrefix(read.Output, want) || !strings.HasSuffix(read.Output, "[Characters 59990-80000 of 80001. That is the end of the result.]") {
		t.Errorf("reading the rest with %s: %.200q", arguments, read.Output)
	}
}

func TestAToolsProgressIsForwarded(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "do", "")
	h.apps.do["do"] = func(_ context.Context, _ string, notify func(rpc.Notification)) (string, error) {
		notify(rpc.Notification{Method: "notifications/progress", Params: []byte(`{"progressToken":"x","progress":3,"total":10,"message":"third"}`)})
		notify(rpc.Notification{Method: "notifications/message", Params: []byte(`{"level":"info","data":"x"}`)})
		return `{"content":[]}`, nil
	}
	h.model.Say(t, titled, asks(`{"id":"c7","name":"files__do","arguments":{}}`), doneReply)
	_, events := h.must(chat.Request{Message: "go"})
	got := events.data("tool.progress")
	if len(got) != 1 || got[0]["id"] != "c7" || got[0]["progress"] != 3.0 || got[0]["total"] != 10.0 || got[0]["message"] != "third" {
		t.Errorf("progress %v", got)
	}
}

func TestAModelIsOfferedTheToolsOfItsCaller(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "read", "")
	h.apps.add("files", "write.all/now", "")
	h.apps.add("files", "button", `,"_meta":{"ui":{"visibility":["app"]}}`)
	h.apps.add("files", "shared", `,"_meta":{"ui":{"visibility":["model","app"]}}`)
	h.model.Say(t, titled, `{"match":{},"response":{"content":"Ok."}}`)
	for name, c := range map[string]struct {
		allowed []string
		want    []string
	}{
		"all tools for models":        {nil, []string{"files__read", "files__shared", "files__write_all_now_ab5a9a03", "system__delegate", "system__manage_skills", "system__read_result", "system__search", "system__set_model_config"}},
		"the allowed tools":           {[]string{"*__read", "system__s?arch"}, []string{"files__read", "system__read_result", "system__search"}},
		"no tool that does not match": {[]string{"memory__*"}, nil},
	} {
		before := len(h.asked())
		h.must(chat.Request{Message: "hello " + name, AllowedTools: c.allowed})
		got := offered(h.asked()[before])
		slices.Sort(got)
		for i, g := range got { // the name ends in a hash, because it was changed
			if strings.HasPrefix(g, "files__write_all_now_") && i < len(c.want) {
				c.want[i] = g
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAConversationKeepsWhichAppsAreSwitchedOff(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "read", "")
	h.apps.add("mail", "send", "")
	h.model.Say(t, titled, `{"match":{"userMessage":"go","hasToolResult":false},"response":{"toolCalls":[{"name":"mail__send","arguments":{}},{"name":"system__delegate","arguments":{"task":"send it"}}]}}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	has := func(name string) bool {
		t.Helper()
		all := h.asked()
		return slices.Contains(offered(all[len(all)-1]), name)
	}
	answer, _ := h.must(chat.Request{Message: "hello", DisabledApps: []string{"mail"}})
	if has("mail__send") || !has("files__read") {
		t.Errorf("offered %v", offered(h.asked()[0]))
	}
	id := answer.ConversationID
	answer, _ = h.must(chat.Request{Message: "go", ConversationID: id})
	if len(answer.ToolCalls) != 2 || answer.ToolCalls[0].OK || len(h.apps.calls()) != 0 {
		t.Errorf("calls %+v, but %v arrived", answer.ToolCalls, h.apps.calls())
	}
	for _, body := range h.asked() {
		if slices.Contains(offered(body), "mail__send") {
			t.Error("a later run, or a task that it delegated, was offered a tool of the app")
		}
	}
	on := []string{}
	if c, err := h.Edit(t.Context(), owner(), id, core.ConversationPatch{DisabledApps: on}); err != nil || len(c.DisabledApps) != 0 {
		t.Fatalf("%v, %v", c.DisabledApps, err)
	}
	if h.must(chat.Request{Message: "hello again", ConversationID: id}); !has("mail__send") {
		t.Error("the app is still off after it was switched on")
	}
}

func TestAWorkspacesInstructionsArePartOfEveryPrompt(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			h.model.Say(t, titled, `{"match":{"userMessage":"go","hasToolResult":false},"response":{"toolCalls":[{"name":"system__delegate","arguments":{"task":"x"}}]}}`, `{"match":{},"response":{"content":"Ok."}}`)
			if err := h.SetInstructions(t.Context(), owner(), "Answer in French."); err != nil {
				t.Fatal(err)
			}
			h.must(chat.Request{Message: "go"})
			all := h.asked()
			if len(all) != 3 {
				t.Fatalf("%d requests", len(all))
			}
			for _, body := range all {
				if !strings.Contains(text(body["messages"]), "Answer in French.") {
					t.Errorf("a request without the instructions: %.500s", text(body["messages"]))
				}
			}
			if err := h.SetInstructions(t.Context(), owner(), strings.Repeat("é", 20_001)); core.CodeOf(err) != core.CodeBadRequest {
				t.Errorf("instructions that are too long: %v", err)
			}
		})
	}
}

func TestAModelCallsAToolByTheNameItsProviderAccepts(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			h.apps.add("files", "write.all/now", "")
			h.model.Say(t, titled, `{"match":{"userMessage":"which"},"response":{"content":"Ok."}}`)
			h.must(chat.Request{Message: "which"})
			safe := ""
			for _, name := range offered(h.asked()[0]) {
				if strings.HasPrefix(name, "files__") {
					safe = name
				}
			}
			h.model.Say(t, asks(`{"name":"`+safe+`","arguments":{}}`), doneReply)
			answer, events := h.must(chat.Request{Message: "go"})
			if answer.ToolCalls[0].Name != "files__write.all/now" || !answer.ToolCalls[0].OK || events.data("tool.start")[0]["name"] != "files__write.all/now" {
				t.Errorf("calls %+v", answer.ToolCalls)
			}
			if last := h.asked(); !strings.Contains(text(last[len(last)-1]["messages"]), safe) {
				t.Error("the next call does not repeat the name that the provider accepts")
			}
		})
	}
}

func TestToolsThatDoNotFitAreFoundBySearching(t *testing.T) {
	h := open(t, "openai", nil)
	for i := range 150 {
		h.apps.add("big", fmt.Sprintf("tool%03d", i), "")
	}
	h.apps.add("looked-at", "here", "")
	h.apps.add("rare", "needle", `,"description":"Finds the haystack"`)
	h.model.Say(t, titled,
		`{"match":{"userMessage":"go","turnIndex":0},"response":{"toolCalls":[{"name":"system__search","arguments":{"query":"haystack"}}]}}`,
		`{"match":{"userMessage":"go","turnIndex":1},"response":{"toolCalls":[{"name":"rare__needle","arguments":{}}]}}`,
		`{"match":{"userMessage":"go","turnIndex":2},"response":{"content":"Done."}}`,
		`{"match":{"userMessage":"again"},"response":{"content":"Ok."}}`)
	answer, _ := h.must(chat.Request{Message: "go", AppContext: &chat.AppContext{AppName: "Looked at", ServerName: "looked-at"}})
	asked := h.asked()
	first, second := offered(asked[0]), offered(asked[1])
	if len(first) > 100 || !slices.Contains(first, "looked-at__here") || !slices.Contains(first, "system__search") || slices.Contains(first, "rare__needle") {
		t.Errorf("first offered %v", first)
	}
	if !strings.Contains(text(asked[0]["messages"]), "system__search") {
		t.Error("the system prompt should mention that there are more tools")
	}
	if !slices.Contains(second, "rare__needle") || len(answer.ToolCalls) != 2 || !answer.ToolCalls[1].OK {
		t.Errorf("then offered %v; called %+v", second, answer.ToolCalls)
	}
	h.must(chat.Request{Message: "again", ConversationID: answer.ConversationID})
	asked = h.asked()
	if !slices.Contains(offered(asked[len(asked)-1]), "rare__needle") {
		t.Error("a later run of the conversation has forgotten the tool it used")
	}
}
