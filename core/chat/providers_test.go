package chat_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

var update = flag.Bool("update", false, "write the table of providers into docs/models.md")

// pixel is a PNG with one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// openVendors opens an engine with the vendors' models. It has a tool that returns a picture, one that asks a person,
// and twenty whose definitions no vendor accepts unchanged.
func openVendors(t *testing.T) (*fixture, map[string]*strict) {
	t.Helper()
	url, all := serveVendors(t)
	home := t.TempDir()
	state := store.Options{Path: filepath.Join(home, "ropewalk.db"), URL: core.Secret(databases.StateURL(t)), Logger: hclog.NewNullLogger()}
	h := openOn(t, home, state, &testenv.ModelProvider{URL: url}, "openai", func(c *config.Models) {
		c.Default, c.MaxOutputTokens, c.Providers = "openai:m", 5000, map[string]config.ModelProvider{}
		for id, s := range all {
			kind := s.protocol
			if kind == "" {
				kind = config.ProviderOpenAI
			}
			c.Providers[id] = config.ModelProvider{Type: kind, BaseURL: s.base(url, id), APIKey: "k"}
		}
	})
	h.asksFor(form)
	h.apps.add("files", "see", "")
	h.apps.do["see"] = func(context.Context, string, func(rpc.Notification)) (string, error) {
		return `{"content":[{"type":"text","text":"a picture"},{"type":"image","mimeType":"image/png","data":"` + pixel + `"}]}`, nil
	}
	for i, schema := range wrongSchemas() {
		name := fmt.Sprintf("wrong.%d/a b", i)
		h.apps.listed = append(h.apps.listed, core.Tool{
			Server: "bad", Name: name, Schema: json.RawMessage(schema),
			Raw: json.RawMessage(`{"name":"` + name + `","description":"` + strings.Repeat("long ", 300) + `","inputSchema":` + schema + `}`),
		})
	}
	return h, all
}

// wrongSchemas returns schemas that at least one vendor refuses.
func wrongSchemas() []string {
	object := func(property string) string { return `{"type":"object","properties":{"x":` + property + `}}` }
	return []string{
		`null`, `{}`, `[]`, `{"type":"string"}`, `{"type":"object"}`, `{"type":"object","properties":[]}`, `{"anyOf":[{"type":"object"}]}`,
		`{"type":"object","properties":{},"required":true}`, `{"type":"object","properties":{},"required":["y"]}`,
		object(`{"type":"int"}`), object(`{"type":"array"}`), object(`{"type":"str","required":true}`), object(`{"$ref":"#/nothing"}`),
		object(`{"type":"string","pattern":"a+"}`), object(`{"type":"string","pattern":"^\\d+$"}`), object(`{"type":"string","pattern":"^(?=a)$"}`),
		object(`{"type":"number","minimum":1,"exclusiveMinimum":true}`), object(`{"type":"number","divisibleBy":2}`),
		object(`{"type":"array","items":[{"type":"string"}]}`), object(`"string"`), object(`{"type":["string","whatever"]}`),
	}
}

// tells sends a message and answers the questions of apps.
func (h *fixture) tells(r chat.Request) (chat.Answer, error) {
	h.t.Helper()
	run, err := h.Begin(h.t.Context(), owner(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	events := &tape{}
	events.each = func(e chat.Event) {
		if e.Name == elicit.EventRequest {
			all := events.data(e.Name)
			id := all[len(all)-1]["id"].(string)
			go func() {
				if err := h.Reply(h.t.Context(), owner(), id, elicit.Reply{Action: "accept", Content: json.RawMessage(`{"name":"Ada"}`)}); err != nil {
					h.t.Error(err)
				}
			}()
		}
	}
	return run.Do(h.t.Context(), events.emit)
}

// pleases sends a message that makes the model call both tools, and checks the answer.
func (h *fixture) pleases(r chat.Request) string {
	h.t.Helper()
	answer, err := h.tells(r)
	if err != nil {
		h.t.Fatalf("%s, %s: %v", r.Model, r.Message, err)
	}
	if answer.StopReason != chat.Complete || answer.Response != "Done." || len(answer.ToolCalls) != 2 {
		h.t.Fatalf("%s, %s: %+v", r.Model, r.Message, answer)
	}
	for i, want := range []string{`{"path":"one"}`, `{"path":"two"}`} {
		if c := answer.ToolCalls[i]; !c.OK || string(c.Input) != want {
			h.t.Errorf("%s, %s: call %+v, want the input %s", r.Model, r.Message, c, want)
		}
	}
	return answer.ConversationID
}

func (h *fixture) forks(id string, at int) string {
	h.t.Helper()
	fork, err := h.Fork(h.t.Context(), owner(), id, &at)
	if err != nil {
		h.t.Fatal(err)
	}
	return fork.ID
}

// attached returns a picture and a PDF document.
func attached() []chat.Attachment {
	return []chat.Attachment{{Name: "a.png", MIMEType: "image/png", Data: pixel}, {Name: "b.pdf", MIMEType: "application/pdf", Data: encoded("%PDF-1.4")}}
}

// The table in docs/models.md is generated: go test ./core/chat -run ConversationPasses -update
func TestAWholeConversationPassesOnEveryProvider(t *testing.T) {
	h, all := openVendors(t)
	rows := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		t.Run(id, func(t *testing.T) {
			model := id + ":m"
			first := h.pleases(chat.Request{Message: "please look", Model: model, Effort: "high", Attachments: attached()})
			h.pleases(chat.Request{Message: "please go on", Model: model, ConversationID: first})
			if answer, err := h.tells(chat.Request{Message: "please break", Model: model, ConversationID: first}); !slices.Contains([]core.Code{core.CodeProviderError, core.CodeProviderOverloaded}, core.CodeOf(err)) {
				t.Errorf("an answer that breaks off: %+v, %v", answer, err)
			}
			retried := h.forks(first, 4)
			h.pleases(chat.Request{Message: "please go on after the failure", Model: model, ConversationID: first})
			h.pleases(chat.Request{Message: "please try again", Model: model, ConversationID: retried})
			edited := h.forks(first, 2)
			h.pleases(chat.Request{Message: "please go on, edited", Model: model, ConversationID: edited})

			s := all[id]
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.saw["parallel"] {
				t.Error("no parallel calls were returned")
			}
			for words := range s.refused {
				if strings.Contains(words, "schema") || strings.Contains(words, "tools.") || strings.Contains(words, "'tools[") {
					t.Errorf("it refused a tool: %s", words)
				}
			}
			if s.reasons != "" && !s.saw["reasoning"] {
				t.Error("reasoning did not come back")
			}
			if sees := slices.Contains(strings.Fields(s.parts), "image_url") || id == "anthropic"; s.saw["image"] != sees || s.saw["result image"] != sees || s.saw["left out"] == sees {
				t.Errorf("what arrived is %v", s.saw)
			}
			if reads := slices.ContainsFunc(strings.Fields(s.parts), func(p string) bool { return p == "file" || p == "document" }); s.saw["file"] != reads {
				t.Errorf("what arrived is %v", s.saw)
			}
			rows[id] = s.row()
		})
	}
	if t.Failed() {
		return
	}
	table := "| Provider | Tool calls in parallel | Images | Images from tools | PDF | Reasoning sent back | Effort | Answer limit |\n|---|---|---|---|---|---|---|---|\n"
	for _, id := range slices.SortedFunc(maps.Keys(rows), func(a, b string) int { return strings.Compare(all[a].name, all[b].name) }) {
		table += rows[id]
	}
	holdTable(t, table)
}

// row returns the vendor's row of the table.
func (s *strict) row() string {
	cells := []string{"[" + s.name + "](" + s.page + ")"}
	for _, what := range []string{"parallel", "image", "result image", "file", "reasoning", "effort"} {
		cell := "yes"
		switch {
		case what == "reasoning" && s.reasons == "":
			cell = "provider sends none"
		case what == "reasoning":
			cell = "`" + s.reasons + "`"
		case !s.saw[what]:
			cell = "left out"
		}
		cells = append(cells, cell)
	}
	return "| " + strings.Join(append(cells, "`"+s.limit+"`"), " | ") + " |\n"
}

// holdTable checks the table in the documentation, or writes it.
func holdTable(t *testing.T, table string) {
	t.Helper()
	const begin, end = "<!-- generated: go test ./core/chat -run ConversationPasses -update -->\n", "<!-- end of the generated table -->\n"
	file := filepath.Join(testenv.Root(t), "docs", "models.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	old, after, ends := strings.Cut(rest, end)
	switch {
	case !found || !ends:
		t.Fatal("docs/models.md has no place for the table")
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != table:
		t.Errorf("docs/models.md is not up to date: go test ./core/chat -run ConversationPasses -update\n%s", table)
	}
}

// The mocks are only useful if the vendors' own clients understand them.
func TestTheVendorsOwnClientsUnderstandTheStrictProviders(t *testing.T) {
	packages := testenv.Node(t)
	url, all := serveVendors(t)
	var asked []map[string]any
	for id, s := range all {
		asked = append(asked, map[string]any{"id": id, "base": s.base(url, id), "limit": s.limit, "goesBack": s.reasons == ""})
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(testenv.Root(t), "test", "npm", "vendors.mjs"), text(asked))
	cmd.Dir, cmd.Env, cmd.Stderr = packages, []string{"PATH=" + os.Getenv("PATH")}, os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var understood map[string]struct {
		Error, Text string
		Calls       []string
		Refused     int
	}
	if err := json.Unmarshal(raw, &understood); err != nil {
		t.Fatal(err)
	}
	for id, s := range all {
		got := understood[id]
		if got.Error != "" || !slices.Equal(got.Calls, []string{"files__see one", "files__do two"}) || got.Refused != s.status {
			t.Errorf("%s: %+v", id, got)
		}
		if goesBack := s.reasons == "" || id == "anthropic"; goesBack && got.Text != "Done." {
			t.Errorf("%s continued with %q", id, got.Text)
		}
	}
}

func TestAConversationCanChangeItsModelAtEachMessage(t *testing.T) {
	h, all := openVendors(t)
	ids := slices.Sorted(maps.Keys(all))
	conversation := ""
	for _, id := range slices.Concat(ids, ids) {
		r := chat.Request{Message: "please go on", Model: id + ":m", ConversationID: conversation}
		if conversation == "" {
			r.Attachments = attached()
		}
		conversation = h.pleases(r)
	}
}

func TestAToolThatAProviderRejectsAffectsOnlyThatTool(t *testing.T) {
	for name, c := range map[string]struct {
		refuses func(tool string) string // the provider's words
		probes  int                      // at most
		lost    []string                 // tools
	}{
		"named":                        {refusesTool("Invalid schema for function '%s': it has a colour.", "many__tool33"), 3, []string{"tool33"}},
		"not named":                    {refusesTool("Invalid schema.", "many__tool33"), 10, []string{"tool33"}},
		"the last one, not named":      {refusesTool("Invalid schema.", "many__tool59"), 10, []string{"tool59"}},
		"several, all named":           {refusesTool("Invalid schema for function '%s'.", "many__tool03", "many__tool33", "many__tool58"), 7, []string{"tool03", "tool33", "tool58"}},
		"named along with a valid one": {refusesTool("Invalid schema for function '%s': many__tool05 has a colour.", "many__tool33"), 4, []string{"tool33"}},
		"only a valid one named":       {refusesTool("Invalid schema: many__tool05 has a colour.", "many__tool33"), 10, []string{"tool33"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, all := openVendors(t)
			for i := range 60 {
				h.apps.add("many", fmt.Sprintf("tool%02d", i), "")
			}
			s := all["openrouter"]
			s.tools = c.refuses
			id := h.pleases(chat.Request{Message: "please go on", Model: "openrouter:m"})
			s.mu.Lock()
			asked := s.asked
			s.mu.Unlock()
			if probes := asked - 4 - 1; probes > c.probes { // besides one that is overloaded, one that is refused, two turns and perhaps a title
				t.Errorf("%d probes, want %d at most", probes, c.probes)
			}
			var lost []string
			for _, one := range h.refused(t, "many") {
				lost = append(lost, one.Name)
				if one.Model != "openrouter:m" || !strings.Contains(one.Reason, "Invalid schema") {
					t.Errorf("%+v", one)
				}
			}
			if slices.Sort(lost); !slices.Equal(lost, c.lost) {
				t.Errorf("lost %v, want %v", lost, c.lost)
			}
			if other := h.refused(t, "files"); len(other) > 0 {
				t.Errorf("a tool of another app: %+v", other)
			}
			before := asked
			h.pleases(chat.Request{Message: "please go on", Model: "openrouter:m", ConversationID: id})
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.asked-before > 3 { // two turns, and perhaps the title
				t.Errorf("it was asked %d times for the next message", s.asked-before)
			}
			usage, err := h.Usage(t.Context(), owner(), core.UsageQuery{GroupBy: core.UsageByModel})
			if err != nil || usage.Totals.InputTokens <= 4*10 {
				t.Errorf("usage %+v, %v", usage.Totals, err)
			}
		})
	}
}

func TestAProviderThatRefusesEveryToolIsReported(t *testing.T) {
	h, all := openVendors(t)
	all["ollama"].tools = func(string) string { return "registry.ollama.ai/library/m does not support tools" }
	answer, err := h.tells(chat.Request{Message: "please go on", Model: "ollama:m"})
	if core.CodeOf(err) != core.CodeProviderError {
		t.Errorf("%+v, %v", answer, err)
	}
	if lost := h.refused(t, "files"); len(lost) > 0 {
		t.Errorf("lost %+v", lost)
	}
}

func (h *fixture) refused(t *testing.T, app string) []core.RefusedTool {
	t.Helper()
	all, err := h.RefusedTools(t.Context(), owner(), app)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refusesTool refuses tools by their full names, with a message that may contain the name.
func refusesTool(words string, names ...string) func(string) string {
	return func(name string) string {
		if !slices.Contains(names, name) {
			return ""
		}
		if strings.Contains(words, "%s") {
			return fmt.Sprintf(words, name)
		}
		return words
	}
}
