package clients

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// searchTime is the time that schemathesis may search in each mode. make schemathesis sets it. If it is zero, schemathesis
// tries a fixed set of requests, so the result of make test depends on neither chance nor load.
var searchTime = flag.Duration("schemathesis", 0, "how long schemathesis searches with random requests in each of its two modes; 0 tries only the boundaries of what the document allows")

func TestSchemathesisFindsNoFaultsInDevMode(t *testing.T) {
	t.Parallel()
	s := serve(t, "", "PATH="+t.TempDir())
	search(t, s, "--exclude-checks", "ignored_auth") // dev mode has no login
}

func TestSchemathesisFindsNoFaultsWithAKey(t *testing.T) {
	t.Parallel()
	const key = "a-test-key-0123456789"
	bundle := everything(t)
	s := serve(t, "apiKey: "+key+"\nmodels: "+models(t)+"\napps:\n  everything: {path: "+bundle+"}\n", "PATH="+onlyNode(t))
	s.Key = key
	s.Object(t, "POST", "/v1/chat", map[string]any{"message": "hello"})
	search(t, s, "--header", "Authorization: Bearer "+key)
}

// onlyNode returns a directory in which node is the only program.
func onlyNode(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "node"), "#!/bin/sh\nexec '"+node+"' \"$@\"\n")
	if err := os.Chmod(filepath.Join(dir, "node"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// search runs schemathesis on all operations. The server's PATH has almost no programs, so invented package names and
// commands have no effect.
func search(t *testing.T, s *harness.Server, args ...string) {
	t.Helper()
	bin := filepath.Join(testenv.Python(t, filepath.Join("test", "clients")), "bin")
	dir := t.TempDir()
	for _, name := range []string{"schemathesis.toml", "schemathesis_checks.py"} {
		copyFile(t, name, filepath.Join(dir, name))
	}
	at := withoutEndlessStreams(t, s.URL)
	if *searchTime == 0 {
		args = append(args, "--seed", "1", "--phases", "coverage")
	} else {
		args = append(args, "--max-time", strconv.Itoa(int(searchTime.Seconds())), "--phases", "coverage,fuzzing")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "schemathesis"), append([]string{
		"--config-file", "schemathesis.toml", "run", at + "/v1/openapi.json", "--url", at,
		"--request-timeout", "60", "--continue-on-failure", "--warnings", "off",
	}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	_, summary, _ := strings.Cut(string(out), "= SUMMARY =")
	t.Logf("%s", strings.Trim(summary, "= \n"))
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(s.Log.String(), "panic") {
		t.Error("a handler panicked")
	}
}

// withoutEndlessStreams starts a proxy for the server and returns its address. The proxy ends event streams after a
// short time, because schemathesis reads every response completely.
func withoutEndlessStreams(t *testing.T, target string) string {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
				body := r.Body
				time.AfterFunc(200*time.Millisecond, func() { _ = body.Close() })
				r.Body = endless{body}
			}
			return nil
		},
	}
	listener := httptest.NewServer(proxy)
	t.Cleanup(listener.Close)
	return listener.URL
}

// endless is the body of an event stream. After it is closed, reads return io.EOF instead of an error.
type endless struct{ io.ReadCloser }

func (e endless) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}
