package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheCredentialsOfAContextAreSentOnlyToItsServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contexts.yaml")
	text := "current: key\ncontexts:\n  key: {server: https://a.example/, key: the-key}\n  login: {server: https://a.example, login: the-login}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ROPEWALK_CONTEXTS", file)
	for _, name := range []string{"ROPEWALK_API_KEY", "ROPEWALK_SERVER", "ROPEWALK_CONTEXT"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct{ context, server, wantServer, wantKey, wantLogin string }{
		{"", "", "https://a.example", "the-key", ""},
		{"", "https://a.example", "https://a.example", "the-key", ""},
		{"", "https://b.example", "https://b.example", "", ""},
		{"login", "", "https://a.example", "", "the-login"},
		{"login", "https://a.example/", "https://a.example", "", "the-login"},
		{"login", "a.example", "https://a.example", "", "the-login"},
		{"login", "http://a.example", "http://a.example", "", ""},
	} {
		client, err := (&Connection{context: c.context, server: c.server}).PersonClient(t.Context())
		if err != nil || client.Server != c.wantServer || client.Key != c.wantKey || client.Login != c.wantLogin {
			t.Errorf("%+v: %+v, %v", c, client, err)
		}
	}
}
