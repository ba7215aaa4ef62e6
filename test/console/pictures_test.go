package console

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// officeApp is an app in testdata/office/apps.json.
type officeApp struct {
	Name        string           `json:"name"`
	Title       string           `json:"title"`
	Icon        string           `json:"icon"`
	Version     string           `json:"version"`
	Description string           `json:"description"`
	Tools       []map[string]any `json:"tools"`
}

// office packs every app in testdata/office into a bundle in dir and returns the apps' names.
func office(t *testing.T, dir string) (names []string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/office/apps.json")
	if err != nil {
		t.Fatal(err)
	}
	var apps []officeApp
	if err := json.Unmarshal(raw, &apps); err != nil {
		t.Fatal(err)
	}
	for _, app := range apps {
		file, err := os.Create(filepath.Join(dir, app.Name+".mcpb"))
		if err != nil {
			t.Fatal(err)
		}
		archive := zip.NewWriter(file)
		if err := errors.Join(archive.AddFS(os.DirFS(app.bundle(t))), archive.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		names = append(names, app.Name)
	}
	return names
}

// bundle writes the app's bundle and returns its directory.
func (a officeApp) bundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/office")); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]any{"app.json": a, "manifest.json": map[string]any{
		"manifest_version": "0.3", "name": "@office/" + a.Name, "display_name": a.Title, "version": a.Version, "description": a.Description,
		"author": map[string]string{"name": "Office"},
		"_meta": map[string]any{"com.example/office": map[string]any{
			"name": a.Title, "icon": a.Icon, "primaryView": map[string]string{"resourceUri": "ui://" + a.Name + "/main"},
		}},
		"server": map[string]any{"type": "node", "entry_point": "server.mjs", "mcp_config": map[string]any{
			"command": "node", "args": []string{"${__dirname}/server.mjs"}, "env": map[string]string{"NOTE": "${user_config.note}"},
		}},
		"user_config": map[string]any{
			"note":    map[string]any{"type": "string", "title": "Note for the model", "description": "Added to the description of the first tool.", "default": ""},
			"api_key": map[string]any{"type": "string", "title": "API key", "description": "The API key of the service behind the app.", "sensitive": true, "default": ""},
		},
	}} {
		raw, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// This test takes the screenshots for docs/console.md, on a server with realistic data. It runs only with
// ROPEWALK_SCREENSHOTS=<directory>.
func TestScreenshotsForTheDocumentation(t *testing.T) {
	if os.Getenv("ROPEWALK_SCREENSHOTS") == "" {
		t.Skip("ROPEWALK_SCREENSHOTS is not set")
	}
	const key = "a-test-key-0123456789"
	p := testenv.StartModelProvider(t)
	p.Say(t, officeTalk()...)
	port := testenv.FreePort(t)
	at := fmt.Sprintf("http://localhost:%d", port)
	provider := testenv.StartOpenIDProviderWithForm(t, at+"/v1/auth/callback")
	registry := t.TempDir()
	names := office(t, registry)
	s := serve(t, fmt.Sprintf(`apiKey: %s
auth:
  adapter: oidc
  issuer: %s
  clientId: ropewalk
  redirectUri: %s/v1/auth/callback
  admins: [ada@example.com]
  join: {workspace: default, role: member}
registries:
  - {name: internal, adapter: directory, dir: '%s', trustScore: 90}
tools: {approve: [invoices__send_invoice]}
models:
  default: anthropic:claude-sonnet-5
  providers:
    anthropic: {baseUrl: '%s', apiKey: k}
`, key, provider.Issuer, at, registry, p.URL), "--port", fmt.Sprint(port))
	s.Key = key
	for _, name := range names[:6] {
		s.Object(t, "POST", "/v1/apps/install", map[string]any{"name": "@office/" + name})
	}
	browse(t, "pictures.mjs", s, map[string]any{"key": key, "provider": provider.Issuer})
}

// officeTalk returns the model's answers in the screenshots.
func officeTalk() []string {
	return []string{
		`{"match":{"systemMessage":"Write a title","userMessage":"overdue"},"response":{"content":"Overdue invoices"}}`,
		`{"match":{"systemMessage":"Write a title","userMessage":"offsite"},"response":{"content":"Offsite in Bergen"}}`,
		`{"match":{"systemMessage":"Write a title","userMessage":"tickets"},"response":{"content":"Tickets of the week"}}`,
		`{"match":{"systemMessage":"Write a title","userMessage":"paper"},"response":{"content":"Paper on tidal power"}}`,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"Invoice for Harbor Ltd"}}`,
		`{"match":{"toolCallId":"o2"},"response":{"content":` + quoted(officeAnswer) + `,"usage":{"prompt_tokens":6240,"completion_tokens":412}}}`,
		`{"match":{"userMessage":"overdue"},"response":{"content":"I'll look at the open invoices first.","toolCalls":[{"id":"o1","name":"invoices__list_invoices","arguments":{"state":"overdue"}},{"id":"o2","name":"calendar__list_events","arguments":{"from":"2026-11-23","calendar":"team"}}],"usage":{"prompt_tokens":5180,"completion_tokens":120}}}`,
		`{"match":{"userMessage":"Send the invoice"},"response":{"toolCalls":[{"id":"s1","name":"invoices__send_invoice","arguments":{"number":"2026-118","to":"accounts@harbor.example"}}],"usage":{"prompt_tokens":4100,"completion_tokens":80}}}`,
		`{"match":{"userMessage":"offsite"},"response":{"content":"Bergen it is: the train leaves on Thursday at 08:23, and the harbour hotel takes all twelve of you.","usage":{"prompt_tokens":4400,"completion_tokens":310}}}`,
		`{"match":{"userMessage":"tickets"},"response":{"content":"Eleven tickets are open, three of them for more than a week.","usage":{"prompt_tokens":5100,"completion_tokens":240}}}`,
		`{"match":{"userMessage":"paper"},"response":{"content":"Found it: Tidal power in narrow sounds, 2024.","usage":{"prompt_tokens":3700,"completion_tokens":150}}}`,
		`{"match":{},"response":{"content":"Done. I have put the short version into the team's calendar.","usage":{"prompt_tokens":3900,"completion_tokens":260}}}`,
	}
}

const officeAnswer = "**Harbor Ltd** is the only customer who is late: invoice `2026-118` was due on 12 November.\n\n" +
	"| Invoice | Customer | Total | State |\n|---|---|---:|---|\n| 2026-118 | Harbor Ltd | € 4,200 | overdue by 10 days |\n| 2026-121 | Lindgren & Co | € 1,850 | due on Friday |\n| 2026-122 | Ocean Foods | € 2,640 | due in 3 weeks |\n\n" +
	"You meet them on **Tuesday at 14:00**. I suggest:\n\n1. Send a friendly reminder today\n2. Bring it up in the review if it is still open\n\nShall I write the reminder?"
