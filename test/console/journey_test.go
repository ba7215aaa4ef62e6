package console

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

const (
	everything = "@modelcontextprotocol/server-everything"
	filesystem = "@modelcontextprotocol/server-filesystem"
	vanilla    = "@modelcontextprotocol/server-basic-vanillajs"
)

// models returns a configuration that uses the provider for chats and conversation titles.
func models(p *testenv.ModelProvider) string {
	return "models:\n  default: anthropic:claude-sonnet-5\n  providers:\n    anthropic: {baseUrl: '" + p.URL + "', apiKey: k}\n"
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// A person logs in, installs a bundle with its form, tries a tool, chats with a model that calls the tool, uses a view
// and answers an app's question. Activity and the audit trail show all of this. Then the person logs out.
func TestAFirstVisitFromLoginToLogout(t *testing.T) {
	t.Parallel()
	const key = "a-test-key-0123456789"
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("the words of the note"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testenv.StartModelProvider(t)
	p.Say(t,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"About the note"}}`,
		`{"match":{"toolCallId":"r1"},"response":{"content":"The note is short."}}`,
		`{"match":{"toolCallId":"t1"},"response":{"content":"There is the clock."}}`,
		`{"match":{"toolCallId":"q1"},"response":{"content":"You have answered."}}`,
		`{"match":{"toolCallId":"h1"},"response":{"content":"It said hello."}}`,
		`{"match":{"userMessage":"say hello"},"response":{"toolCalls":[{"id":"h1","name":"everything__echo","arguments":{"message":"hello"}}]}}`,
		`{"match":{"userMessage":"read the note"},"response":{"content":"I read it.","toolCalls":[{"id":"r1","name":"filesystem__read_text_file","arguments":{"path":`+quoted(folder+"/note.txt")+`}}]}}`,
		`{"match":{"userMessage":"what time is it"},"response":{"toolCalls":[{"id":"t1","name":"basic-vanillajs__get-time","arguments":{}}]}}`,
		`{"match":{"userMessage":"ask me"},"response":{"toolCalls":[{"id":"q1","name":"everything__trigger-elicitation-request","arguments":{}}]}}`,
	)
	s := serve(t, "apiKey: "+key+"\naudit: {file: audit.log, arguments: true}\ntools: {approve: [everything__echo]}\n"+models(p))
	s.Key = key
	for _, path := range []string{bundle(t, everything, nil, "stdio"), bundle(t, vanilla, nil, "--stdio")} {
		s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": path})
	}
	files := bundle(t, filesystem, map[string]any{"user_config": map[string]any{"allowed_directories": map[string]any{
		"type": "directory", "multiple": true, "required": true, "title": "Allowed directories", "description": "The directories that it may read and write.",
	}}}, "${user_config.allowed_directories}")
	browse(t, "journey.mjs", s, map[string]any{"key": key, "filesystem": files, "folder": folder})
}
