package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// propagationLimit is the maximum time until a change on one server reaches the others. On an idle machine this takes a
// second or two. On a busy machine, an app's process alone may take 20 s to start.
const propagationLimit = time.Minute

// cluster is three servers that share one PostgreSQL and one Redis. Each server has its own home. They run behind nginx
// with the configuration in docs/replicas.md.
type cluster struct {
	servers []*harness.Server
	nginx   *testenv.Nginx
	proxy   *harness.Server // requests to it go through nginx
}

// serverNames are the names of the three servers in docs/replicas.md.
var serverNames = []string{"a", "b", "c"}

func startCluster(t *testing.T, options ...harness.Option) *cluster {
	t.Helper()
	d := startServers(t, options...)
	d.nginx = testenv.StartNginx(t, func(listen string) string {
		return documentedSite(testenv.Documented(t, "replicas.md", "nginx", 0), "listen 80;", "listen "+listen+";", d.servers)
	})
	d.proxy = &harness.Server{T: t, URL: d.nginx.URL}
	return d
}

// startServers starts the three servers without a proxy.
func startServers(t *testing.T, options ...harness.Option) *cluster {
	t.Helper()
	database, redis := harness.Databases.New(t), testenv.StartRedis(t)
	d := &cluster{}
	for _, name := range serverNames {
		d.servers = append(d.servers, harness.Serve(t, append([]harness.Option{
			func(s *harness.Server) { s.Database = database },
			harness.Config("storage: {url: '" + database + "'}\nsessionStore: {adapter: redis, url: 'redis://" + redis.Addr + "/0'}\nmcp: {replica: '${env:REPLICA}'}\n"),
			harness.Env("REPLICA=" + name), harness.Flags("--port", harness.FreePort(t)), // the server keeps this port after a restart
		}, options...)...))
	}
	return d
}

// documentedSite returns a proxy's configuration from docs. It replaces listen with the address to listen on, and the
// documented addresses with those of the servers.
func documentedSite(documented, listen, address string, replicas []*harness.Server) string {
	changes := []string{listen, address}
	for i, s := range replicas {
		changes = append(changes, fmt.Sprintf("10.0.0.%d:27247", i+1), strings.TrimPrefix(s.URL, "http://"))
	}
	return strings.NewReplacer(changes...).Replace(documented)
}

// serverOf returns the name of the server whose bundle wrote a response. The response contains the bundle's data
// directory, which is in that server's home.
func (d *cluster) serverOf(t *testing.T, response string) string {
	t.Helper()
	for i, s := range d.servers {
		if strings.Contains(response, s.Home+"/") {
			return serverNames[i]
		}
	}
	t.Fatalf("no server answered %q", response)
	return ""
}

// waitFor waits until a condition is true. The test fails if this takes longer than propagationLimit.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	if !testkit.Within(harness.Timeout, holds) {
		t.Fatalf("%s: timed out after %v", what, harness.Timeout)
	}
	took := time.Since(began)
	t.Logf("%s: after %v", what, took.Round(time.Millisecond))
	if took > propagationLimit {
		t.Errorf("%s: took %v, the limit is %v", what, took, propagationLimit)
	}
}

// workDone returns how often the workers on all servers recorded each text.
func (d *cluster) workDone(app string) map[string]int {
	times := map[string]int{}
	for _, s := range d.servers {
		raw, _ := os.ReadFile(filepath.Join(s.Home, "apps", app, "data", harness.WorkFile))
		for line := range strings.Lines(string(raw)) {
			times[strings.TrimSpace(line)]++
		}
	}
	return times
}
