package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// within is how long a change of one server may take to show on the others. A server with the race
// detector is several times slower.
func within() time.Duration {
	if raced {
		return 10 * time.Second
	}
	return 2 * time.Second
}

// deployment is three servers on one PostgreSQL and one Redis, each with a home of its own, behind
// the nginx of docs/replicas.md.
type deployment struct {
	replicas []*server
	nginx    *testenv.Nginx
	front    *server // nginx, to be asked like a server
}

// replicaNames are also what docs/replicas.md calls its three servers.
var replicaNames = []string{"a", "b", "c"}

func deploy(t *testing.T, options ...with) *deployment {
	t.Helper()
	database, redis := databases.New(t), testenv.StartRedis(t)
	d := &deployment{}
	for _, name := range replicaNames {
		d.replicas = append(d.replicas, serve(t, append([]with{
			func(s *server) { s.database = database },
			config("storage: {url: '" + database + "'}\nsessionStore: {adapter: redis, url: 'redis://" + redis.Addr + "/0'}\nmcp: {replica: '${env:REPLICA}'}\n"),
			env("REPLICA=" + name),
		}, options...)...))
	}
	d.nginx = testenv.StartNginx(t, func(listen string) string { return documented(t, listen, d.replicas) })
	d.front = &server{t: t, url: d.nginx.URL}
	return d
}

// documented is the nginx configuration of docs/replicas.md with the addresses of a test.
func documented(t *testing.T, listen string, replicas []*server) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "replicas.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```nginx\n")
	site, _, ended := strings.Cut(after, "```")
	if !found || !ended {
		t.Fatal("docs/replicas.md has no nginx configuration")
	}
	changes := []string{"listen 80;", "listen " + listen + ";"}
	for i, s := range replicas {
		changes = append(changes, fmt.Sprintf("10.0.0.%d:27247", i+1), strings.TrimPrefix(s.url, "http://"))
	}
	return strings.NewReplacer(changes...).Replace(site)
}

// whose tells which server's bundle an answer is from: its data lies in that server's home.
func (d *deployment) whose(t *testing.T, answer string) string {
	t.Helper()
	for i, s := range d.replicas {
		if strings.Contains(answer, s.home+"/") {
			return replicaNames[i]
		}
	}
	t.Fatalf("no server answered %q", answer)
	return ""
}

// soon waits until something holds, and tells how long that took. It fails when it took too long.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	if !eventually(patience, holds) {
		t.Fatalf("%s: not within %v", what, patience)
	}
	took := time.Since(began)
	t.Logf("%s: after %v", what, took.Round(time.Millisecond))
	if took > within() {
		t.Errorf("%s: after %v, promised %v", what, took, within())
	}
}

// worked is the file in which a worker writes down what it did.
const worked = "worked"

// addWorker adds work: it writes down the text it is given, works for a moment, and answers with
// where its data is.
func addWorker(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(_ context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, any, error) {
		data := os.Getenv("ROPEWALK_DATA_DIR")
		f, err := os.OpenFile(filepath.Join(data, worked), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, err
		}
		_, err = f.WriteString(in.Text + "\n")
		if closed := f.Close(); err != nil || closed != nil {
			return nil, nil, fmt.Errorf("write it down: %w, %w", err, closed)
		}
		<-time.After(30 * time.Millisecond)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: data}}}, nil, nil
	})
}

// elderServer waits, with a call in flight, for the answer to what it asks.
func elderServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "elder", Version: "1.0.0"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}})
	addTellers(s)
	return s
}

// did is what the workers of all servers wrote down, and how often.
func (d *deployment) did(app string) map[string]int {
	times := map[string]int{}
	for _, s := range d.replicas {
		raw, _ := os.ReadFile(filepath.Join(s.home, "apps", app, "data", worked))
		for line := range strings.Lines(string(raw)) {
			times[strings.TrimSpace(line)]++
		}
	}
	return times
}
