package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// patience is how long anything may take on a machine that has other things to do.
const patience = 90 * time.Second

var answersAt = regexp.MustCompile(`server listening.*url=(http://\S+)`)

// serve starts the executable with a home of its own, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(ropewalk.Path(t), "serve", "--port", "0", "--home", t.TempDir())
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}
	if database := databases.Chosen(t); database != "" {
		cmd.Env = append(cmd.Env, "ROPEWALK_STORAGE_URL="+database)
	}
	cmd.WaitDelay = time.Second
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, log, ended := make(chan string, 1), &strings.Builder{}, make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			log.WriteString(lines.Text() + "\n")
			if at := answersAt.FindStringSubmatch(lines.Text()); at != nil {
				url <- at[1]
			}
		}
		_ = cmd.Wait() // how it ended is its own affair
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("what the server said:\n%s", log)
		}
	})
	select {
	case base := <-url:
		return base
	case <-ended:
		t.Fatalf("the server did not start:\n%s", log)
	case <-time.After(patience):
		t.Fatal("the server does not answer")
	}
	return ""
}

// install installs the everything-server as a bundle.
func install(t *testing.T, base string) {
	t.Helper()
	dir := t.TempDir()
	program, err := os.ReadFile(testenv.Executable(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "server"), program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	manifest := map[string]any{
		"manifest_version": "0.3", "name": app, "version": "1.8.0", "description": "The Go SDK's conformance server.",
		"author": map[string]any{"name": "The Go MCP SDK Authors"},
		"server": map[string]any{"type": "binary", "entry_point": "server", "mcp_config": map[string]any{"command": "${__dirname}/server", "args": []string{}}},
	}
	text, err := json.Marshal(manifest)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"path": dir})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(base+"/v1/apps/install", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("install: %d %s", resp.StatusCode, answer)
	}
}
