package tools_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
)

// fakeResults stores results in memory.
type fakeResults struct {
	mu   sync.Mutex
	all  map[string]core.KeptResult
	fail error
}

func (f *fakeResults) KeepResult(_ context.Context, r core.KeptResult) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	if f.all == nil {
		f.all = map[string]core.KeptResult{}
	}
	f.all[r.ID] = r
	return nil
}

func (f *fakeResults) KeptResult(_ context.Context, r core.KeptResult, offset, length int) (core.KeptResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, ok := f.all[r.ID]
	if !ok || kept.User != r.User || kept.Key != r.Key || kept.Workspace != r.Workspace {
		return r, core.Errorf(core.CodeNotFound, "there is no kept result %q", r.ID)
	}
	text := []rune(kept.Text)
	kept.Text = string(text[min(offset, len(text)):min(offset+length, len(text))])
	return kept, nil
}

// fitting returns a namespace whose only tool, log__read, returns result.
func fitting(result string, o tools.Options) (*tools.Namespace, *fakeResults) {
	kept := &fakeResults{}
	o.Apps = &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("log", "read", `{"name":"read","inputSchema":{"type":"object"}}`)}}, result: result}
	o.Events, o.Features, o.Logger, o.Results = &events{}, config.Features{}, hclog.NewNullLogger(), kept
	n := tools.New(o)
	n.Add(n.ReadResult(), n.CallTool())
	return n, kept
}

// asking returns a call to log__read with the given _meta.
func asking(meta string) tools.Call {
	return tools.Call{Name: "log__read", Meta: json.RawMessage(meta)}
}

// lines returns n lines of 100 characters.
func lines(n int) string { return strings.Repeat(strings.Repeat("é", 99)+"\n", n) }

func TestAResultAboveTheBudgetBecomesAnExcerptForCallersWhoAsk(t *testing.T) {
	long := string(rawjson.Quote(lines(500) + "END"))
	whole := `{"content":[{"type":"text","text":` + long + `,"annotations":{"priority":1}},{"type":"image","mimeType":"image/png","data":"AA=="},{"type":"text","text":"more"}],"structuredContent":{"n":` + long + `},"_meta":{"own":1}}`
	for name, c := range map[string]struct {
		result, meta string
		call         tools.Call
		fits         bool // returned unchanged
		want         string
	}{
		"no budget":               {result: whole, meta: `{"progressToken":1}`, fits: true},
		"a budget of false":       {result: whole, meta: `{"ropewalk/resultBudget":false}`, fits: true},
		"a short result":          {result: `{"content":[{"type":"text","text":"resultBudget"}]}`, meta: `{"ropewalk/resultBudget":true}`, fits: true},
		"only structured content": {result: `{"content":[{"type":"text","text":"see there"}],"structuredContent":{"n":` + long + `}}`, meta: `{"ropewalk/resultBudget":true}`, fits: true},
		"a larger budget":         {result: whole, meta: `{"ropewalk/resultBudget":1000000}`, fits: true},
		"a request for input":     {result: `{"resultType":"input_required","content":[{"type":"text","text":` + long + `}]}`, meta: `{"ropewalk/resultBudget":true}`, fits: true},
		"the configured budget":   {result: whole, meta: `{"ropewalk/resultBudget":true}`, want: "text with 502 lines"},
		"a budget in the request": {result: whole, meta: `{"ropewalk/resultBudget":1000}`, want: "text with 502 lines"},
		"an embedded resource":    {result: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":` + long + `}}]}`, meta: `{"ropewalk/resultBudget":true}`, want: "text with 501 lines"},
		"JSON":                    {result: `{"content":[{"type":"text","text":` + string(rawjson.Quote(`[1,`+long+`]`)) + `}]}`, meta: `{"ropewalk/resultBudget":true}`, want: "a JSON array with 2 elements with"},
		"an error":                {result: `{"isError":true,"content":[{"type":"text","text":` + long + `}]}`, meta: `{"ropewalk/resultBudget":true}`, want: "text with 501 lines"},
		"through system__call_tool": {result: whole, call: tools.Call{Name: "system__call_tool", Arguments: json.RawMessage(`{"name":"log__read"}`), Meta: json.RawMessage(`{"ropewalk/resultBudget":true}`)},
			want: "text with 502 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			n, kept := fitting(c.result, tools.Options{ResultBudget: 2000})
			call := c.call
			if call.Name == "" {
				call = asking(c.meta)
			}
			got, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), call)
			if err != nil {
				t.Fatal(err)
			}
			if c.fits {
				if string(got) != c.result || len(kept.all) != 0 {
					t.Errorf("%d of %d bytes arrived, %d results are stored", len(got), len(c.result), len(kept.all))
				}
				return
			}
			var r struct {
				Content []struct {
					Type, Text  string
					Annotations json.RawMessage
					Resource    json.RawMessage
				}
				StructuredContent, IsError json.RawMessage
				Meta                       struct {
					Own    int
					Result struct{ URI string } `json:"ropewalk/result"`
				} `json:"_meta"`
			}
			if err := json.Unmarshal(got, &r); err != nil {
				t.Fatal(err)
			}
			text := r.Content[0].Text
			budget := 2000
			if strings.Contains(c.meta, "1000") {
				budget = 1000
			}
			if size := tools.Tokens(len(text)); size > budget || size < budget*3/4 || !strings.Contains(text, c.want) || r.Content[0].Resource != nil || r.Content[0].Type != "text" {
				t.Errorf("an excerpt of %d tokens: %s", size, strings.Trim(text, "é\n"))
			}
			if strings.Contains(c.result, "structured") && (len(r.StructuredContent) < 10_000 || len(r.Content) != 2 || string(r.Content[0].Annotations) != `{"priority":1}` || r.Meta.Own != 1) {
				t.Errorf("content other than text changed: %.300s", got)
			}
			if len(kept.all) != 1 || !strings.Contains(text, r.Meta.Result.URI) {
				t.Errorf("%d results are stored; _meta contains %q", len(kept.all), r.Meta.Result.URI)
			}
			read, err := n.ReadResource(t.Context(), caller("ws_a", core.RoleMember), tools.Request{Params: json.RawMessage(`{"uri":"` + r.Meta.Result.URI + `"}`)})
			if err != nil || !strings.Contains(string(read), "END") || !strings.Contains(string(read), `"uri":"`+r.Meta.Result.URI+`"`) {
				t.Errorf("the resource: %.300s, %v", read, err)
			}
		})
	}
}

func TestAnInvalidBudgetIsRefused(t *testing.T) {
	n, _ := fitting(`{"content":[]}`, tools.Options{})
	for _, budget := range []string{`"much"`, `0`, `99`, `1000.5`, `1e300`, `[]`, `{}`} {
		_, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), asking(`{"ropewalk/resultBudget":`+budget+`}`))
		if core.CodeOf(err) != core.CodeBadRequest || !strings.Contains(err.Error(), "ropewalk/resultBudget") {
			t.Errorf("%s: %v", budget, err)
		}
	}
}

func TestAResultThatCannotBeStoredIsReturnedInFull(t *testing.T) {
	whole := `{"content":[{"type":"text","text":` + string(rawjson.Quote(lines(500))) + `}]}`
	n, kept := fitting(whole, tools.Options{ResultBudget: 2000})
	kept.fail = core.Errorf(core.CodeUnavailable, "the disk is full")
	got, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), asking(`{"ropewalk/resultBudget":true}`))
	if err != nil || string(got) != whole {
		t.Errorf("%.200s, %v", got, err)
	}
	text := n.FitText(t.Context(), caller("ws_a", core.RoleMember), "log__read", lines(500))
	if tools.Tokens(len(text)) > 2000 || !strings.Contains(text, "The rest is not kept") || strings.Contains(text, "read_result") {
		t.Errorf("in chat: %s", strings.Trim(text, "é\n"))
	}
}

func TestAResultCanBeReadToItsEnd(t *testing.T) {
	text := lines(300) + "木END"
	n, kept := fitting("", tools.Options{ResultBudget: 2000})
	me := caller("ws_a", core.RoleMember)
	n.FitText(t.Context(), me, "log__read", text)
	ids := slices.Collect(maps.Keys(kept.all))
	if len(ids) != 1 {
		t.Fatalf("the stored results are %v", ids)
	}
	id := ids[0]
	read := func(c core.Caller, arguments map[string]any) (string, bool) {
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		result, failed, err := n.Call(t.Context(), c, tools.Call{Name: "system__read_result", Arguments: raw, Meta: json.RawMessage(`{"ropewalk/resultBudget":100}`)})
		if err != nil {
			t.Fatal(err)
		}
		var r struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(result, &r); err != nil || len(r.Content) != 1 || strings.Contains(string(result), "structuredContent") && !failed {
			t.Fatalf("%s, %v", result, err)
		}
		return r.Content[0].Text, failed
	}
	all, parts := "", 0
	for offset := 0; offset < len([]rune(text)); parts++ {
		part, failed := read(me, map[string]any{"id": id, "offset": offset})
		at := strings.LastIndex(part, "\n\n[Characters ")
		if failed || at < 0 || tools.Tokens(len(part)) > 2000 {
			t.Fatalf("from %d: %.300s", offset, part)
		}
		all += part[:at]
		offset = len([]rune(all))
	}
	if all != text || parts < 8 {
		t.Errorf("%d parts contain %d of %d bytes", parts, len(all), len(text))
	}
	if part, _ := read(me, map[string]any{"id": "ropewalk://system/results/" + id, "offset": 30_000, "length": 2}); part != "木E\n\n[Characters 30000-30001 of 30004. To continue, use offset 30002.]" {
		t.Errorf("by its URI: %s", part)
	}
	key, other := me, caller("ws_b", core.RoleMember)
	key.Scope.Key = "key_1"
	for name, c := range map[string]struct {
		c         core.Caller
		arguments map[string]any
		want      string
	}{
		"beyond the end":       {me, map[string]any{"id": id, "offset": 30_004}, "offset is 30004, but the result has 30004 characters"},
		"another id":           {me, map[string]any{"id": "res_x"}, "no kept result"},
		"with an API key":      {key, map[string]any{"id": id}, "no kept result"},
		"in another workspace": {other, map[string]any{"id": id}, "no kept result"},
	} {
		if part, failed := read(c.c, c.arguments); !failed || !strings.Contains(part, c.want) {
			t.Errorf("%s: %.300s", name, part)
		}
	}
	if _, err := n.ReadResource(t.Context(), key, tools.Request{Params: json.RawMessage(`{"uri":"ropewalk://system/results/` + id + `"}`)}); core.CodeOf(err) != core.CodeResourceNotFound {
		t.Errorf("the resource, with an API key: %v", err)
	}
}

func TestAStoredResultBelongsToItsToolByWhicheverNameTheToolIsCalled(t *testing.T) {
	views, err := view.NewRegistry(t.Context(), noViews{}, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	setView(t, views, `{"name":"v","include":[{"tool":"log__read"}],"tools":{"log__read":{"name":"tail"}}}`)
	n, kept := fitting(`{"content":[{"type":"text","text":`+string(rawjson.Quote(lines(500)))+`}]}`, tools.Options{ResultBudget: 2000, Views: views})
	me := through("v")
	for _, call := range []tools.Call{
		{Name: "log__read"}, {Name: "log__tail"}, {Name: "read"}, {Name: "system__call_tool", Arguments: json.RawMessage(`{"name":"log__tail"}`)},
	} {
		var called string
		call.Meta, call.Chose = json.RawMessage(`{"ropewalk/resultBudget":true}`), func(tool, _ string) { called = tool }
		if _, _, err := n.Call(t.Context(), me, call); err != nil || called != "log__read" {
			t.Errorf("%s: %v, called %q", call.Name, err, called)
		}
	}
	if len(kept.all) != 4 {
		t.Fatalf("%d results are stored", len(kept.all))
	}
	read := func(id string) error {
		_, err := n.ReadResource(t.Context(), me, tools.Request{Params: json.RawMessage(`{"uri":"ropewalk://system/results/` + id + `"}`)})
		return err
	}
	for id := range kept.all {
		if err := read(id); err != nil {
			t.Error(err)
		}
	}
	setView(t, views, `{"name":"v","exclude":[{"tool":"log__read"}]}`)
	for id := range kept.all {
		if err := read(id); core.CodeOf(err) != core.CodeResourceNotFound {
			t.Errorf("under a view that hides the tool: %v", err)
		}
	}
}

func TestTheToolThatReadsResultsIsListedForClientsThatNeedIt(t *testing.T) {
	n, _ := fitting("", tools.Options{})
	me := caller("ws_a", core.RoleMember)
	for name, c := range map[string]struct {
		from tools.From
		want string
	}{
		"full": {tools.From{}, "log__read"},
		"the full surface, for a client with shortened results":  {tools.From{ShortResults: true}, "log__read system__read_result"},
		"without a session, for a client with shortened results": {tools.From{ShortResults: true, Stateless: true}, "log__read system__read_result"},
		"the search surface": {tools.From{Surface: tools.SurfaceSearch}, "system__call_tool"},
		"the search surface, for a client with shortened results": {tools.From{Surface: tools.SurfaceSearch, ShortResults: true}, "system__read_result system__call_tool"},
	} {
		if got := strings.Join(names(n.ListFor(me, c.from)), " "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		if raw := string(n.ListJSON(me, c.from, core.KindTools)); strings.Count(raw, `"inputSchema"`) != len(strings.Fields(c.want)) {
			t.Errorf("%s, as JSON: %s", name, raw)
		}
	}
}
