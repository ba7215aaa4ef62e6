package contexts

import (
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

func TestAContextThatGetsAnotherServerLosesItsCredentials(t *testing.T) {
	t.Setenv("ROPEWALK_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	of := cli.Context{Server: "https://a.example", Key: "the-key", Login: "the-login"}
	for server, want := range map[string]cli.Context{
		"https://a.example/": of, "a.example": of, "https://b.example": {Server: "https://b.example"},
	} {
		if err := (cli.Contexts{Contexts: map[string]cli.Context{"work": of}}).Save(); err != nil {
			t.Fatal(err)
		}
		cmd := Command()
		cmd.SetArgs([]string{"set", "work", "--server", server})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if all, err := cli.LoadContexts(); err != nil || all.Contexts["work"] != want {
			t.Errorf("%s: %+v, %v", server, all.Contexts["work"], err)
		}
	}
}
