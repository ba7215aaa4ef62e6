package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// scrapeInterval is the interval at which Prometheus reads the metrics in these tests.
const scrapeInterval = time.Second

// Prometheus reads the metrics of a server under load while one of the server's apps dies. Then there is data for the
// query of each dashboard panel and for the value in each alert.
func TestEveryPanelAndAlertHasDataOnAServerUnderLoad(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	p.Say(t, `{"match":{},"response":{"content":"Done."}}`)
	prices := filepath.Join(t.TempDir(), "prices.json")
	harness.WriteFile(t, prices, `{"openai:test-model":{"input":1,"output":2}}`)
	s := harness.Serve(t, harness.Config("http: {metrics: '127.0.0.1:0'}\n"+harness.ModelsYAML(p, "openai")+"  prices: "+prices+
		"\naudit: {file: "+filepath.Join(t.TempDir(), "audit.jsonl")+"}\n"))
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "calc", harness.Plain)})
	s.WaitForStatus(t, "calc", "running")
	address := regexp.MustCompile(`metrics served.*url=http://([^/\s]+)/metrics`).FindStringSubmatch(s.Log.String())
	if address == nil {
		t.Fatal("the log does not contain the address of the metrics")
	}
	prometheus := startPrometheus(t, address[1])
	missing := slices.DeleteFunc(append(panelQueries(t), alertValues(t)...), func(q string) bool {
		return strings.Contains(q, "ropewalk_identity_provider_up") // there is no provider in this test; see TestAProviderThatIsUnavailableAtStartIsReportedUntilItRecovers
	})
	all := len(missing)
	client := s.OpenSession(t)
	killed := false
	scraped := time.NewTicker(scrapeInterval)
	defer scraped.Stop()
	complete := testkit.Within(2*harness.Timeout, func() bool {
		if _, _, _, err := client.Post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calc__environment","arguments":{}}}`); err != nil {
			t.Errorf("a call: %v", err)
		}
		s.Do(t, "POST", "/v1/chat", map[string]any{"message": "hello"})
		var left []string
		for _, q := range missing {
			if !prometheus.hasData(t, q) {
				left = append(left, q)
			}
		}
		missing = left
		<-scraped.C                        // there is no new data before the next scrape
		if !killed && len(missing) < all { // Prometheus has read the first values
			harness.KillProcess(t, s.PID(t, "calc"))
			s.WaitForStatus(t, "calc", "running")
			killed = true
		}
		return len(missing) == 0
	})
	if !complete {
		t.Errorf("queries without data:\n%s", strings.Join(missing, "\n"))
	}
}

func TestThePrometheusRulesAreValid(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", alertFile(t)).CombinedOutput()
	if err != nil {
		t.Errorf("promtool check rules: %v: %s", err, output)
	}
}

// panelQueries returns the queries in the dashboard. It replaces the dashboard's variables.
func panelQueries(t *testing.T) (queries []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(t), "deploy", "grafana", "ropewalk.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*")
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Error("a panel has no query")
		}
		for _, target := range p.Targets {
			queries = append(queries, variables.Replace(target.Expr))
		}
	}
	if len(queries) < 20 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	return queries
}

func alertFile(t *testing.T) string {
	return filepath.Join(testenv.Root(t), "deploy", "prometheus", "alerts.yaml")
}

// alertValues returns the expressions that the alerts compare with limits.
func alertValues(t *testing.T) (queries []string) {
	t.Helper()
	raw, err := os.ReadFile(alertFile(t))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	limit := regexp.MustCompile(`\s[<>]=?\s[0-9.e]+$`)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			expr := strings.TrimSpace(r.Expr)
			value := limit.ReplaceAllString(expr, "")
			if value == expr {
				t.Errorf("%s does not compare a value with a limit", r.Alert)
			}
			queries = append(queries, value)
		}
	}
	return queries
}

type prometheus struct{ url string }

// startPrometheus starts a Prometheus server that reads the metrics of target. It stops when the test ends.
func startPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	harness.WriteFile(t, config, "global: {scrape_interval: "+scrapeInterval.String()+"}\nscrape_configs:\n  - job_name: ropewalk\n    static_configs: [{targets: ['"+target+"']}]\n")
	listen := "127.0.0.1:" + harness.FreePort(t)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen, "--log.level=warn")
	log := &testkit.Log{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start prometheus (test/install-deps installs it): %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus: %s", log)
		}
	})
	p := prometheus{"http://" + listen}
	if !testkit.Within(harness.Timeout, func() bool { return p.ready(t.Context()) }) {
		t.Fatalf("prometheus did not start: %s", log)
	}
	return p
}

func (p prometheus) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/-/ready", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// hasData reports whether a query returns a number. The test fails if Prometheus cannot evaluate the query.
func (p prometheus) hasData(t *testing.T, query string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var response struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&response); err != nil || response.Error != "" {
		t.Fatalf("%s: %v %s", query, err, response.Error)
	}
	for _, r := range response.Data.Result {
		if v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64); err == nil && !math.IsNaN(v) {
			return true
		}
	}
	return false
}
