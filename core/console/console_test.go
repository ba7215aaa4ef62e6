package console

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
)

func serve(o Options) *fiber.App {
	app := fiber.New(fiber.Config{CaseSensitive: true, StrictRouting: true})
	New(o).Mount(app)
	return app
}

func get(t *testing.T, app *fiber.App, target string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := app.Test(r, -1)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestThePageIsServedAtEachScreenAndNowhereElse(t *testing.T) {
	app := serve(Options{})
	for _, at := range []string{"/", "/apps", "/apps/files", "/chat/conv_0123456789abcdef", "/system"} {
		resp, body := get(t, app, at)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, `<div id="root">`) || resp.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v %s", at, resp.StatusCode, resp.Header, body)
		}
	}
	for _, at := range []string{"/v1/nothing", "/v1", "/mcp", "/mcp/ws_a", "/.well-known/nothing", "/nothing", "/appsx", "/assets/nothing.js", "/assets/..%2findex.html"} {
		if resp, body := get(t, app, at); resp.StatusCode == http.StatusOK || strings.Contains(body, "root") {
			t.Errorf("%s: %d %s", at, resp.StatusCode, body)
		}
	}
}

func TestThePagesPolicyAllowsOnlyThisServerAndTheViewOrigin(t *testing.T) {
	for name, c := range map[string]struct {
		o      Options
		frames string
	}{
		"with a key":          {Options{APIKey: true}, "frame-src 'self';"},
		"with another origin": {Options{ViewOrigin: "https://views.example.com"}, "frame-src 'self' https://views.example.com;"},
		"in dev mode":         {Options{Dev: true}, "frame-src 'self' http://localhost:* http://127.0.0.1:*;"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _ := get(t, serve(c.o), "/")
			policy := resp.Header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'self';") || !strings.Contains(policy, c.frames) || strings.Contains(policy, "unsafe") {
				t.Errorf("the policy is %q", policy)
			}
		})
	}
}

func TestAssetsAreServedInTheRequestedEncodingAndCachedForAYear(t *testing.T) {
	app := serve(Options{})
	var asset string
	if err := fs.WalkDir(dist, "dist/assets", func(name string, _ fs.DirEntry, err error) error {
		if base := path.Base(name); strings.HasPrefix(base, "index-") && strings.HasSuffix(base, ".js.br") {
			asset = "/assets/" + strings.TrimSuffix(base, ".br")
		}
		return err
	}); err != nil || asset == "" {
		t.Fatalf("no script among the assets: %v", err)
	}
	for accept, want := range map[string]string{"br, gzip": "br", "gzip, deflate": "gzip", "": ""} {
		resp, body := get(t, app, asset, "Accept-Encoding", accept)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != want || body == "" ||
			resp.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || resp.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
			t.Errorf("%q: %d %v", accept, resp.StatusCode, resp.Header)
		}
	}
}

// The comment has an effect only at the very start of the script.
func TestTheScriptsThatThePageStartsWithAreCompiledWhileTheyArrive(t *testing.T) {
	app := serve(Options{})
	_, page := get(t, app, "/")
	scripts := regexp.MustCompile(`"(/assets/[^"]+\.js)"`).FindAllStringSubmatch(page, -1)
	if len(scripts) == 0 {
		t.Fatalf("the page has no scripts: %s", page)
	}
	for _, script := range scripts {
		if _, body := get(t, app, script[1]); !strings.HasPrefix(body, "//# allFunctionsCalledOnLoad\n") {
			t.Errorf("%s begins with %.60q", script[1], body)
		}
	}
}

// A script that does not wait for other scripts or styles requests what every visit needs.
func TestASmallScriptRequestsTheSessionWhileThePageLoads(t *testing.T) {
	app := serve(Options{})
	_, page := get(t, app, "/")
	early := regexp.MustCompile(`<script type="module" async crossorigin src="(/assets/[^"]+)"></script>\s*<script `).FindStringSubmatch(page)
	if early == nil {
		t.Fatalf("the page has no such script before the others: %s", page)
	}
	if _, body := get(t, app, early[1]); len(body) > 4<<10 || !strings.Contains(body, "/v1/workspace") || strings.Contains(body, "import") {
		t.Errorf("the script is %d bytes: %.200q", len(body), body)
	}
}

func TestAViewGetsThePolicyThatItAskedForAndNoMore(t *testing.T) {
	app := serve(Options{BaseURL: "https://tools.example.com/base"})
	for name, c := range map[string]struct{ csp, want, never string }{
		"nothing asked":      {``, "connect-src 'none'; frame-src 'none'; base-uri 'none'; form-action 'none'", "https://evil"},
		"origins":            {`{"connectDomains":["https://api.example.com","wss://live.example.com:8443"],"resourceDomains":["https://*.cdn.example.com"]}`, "connect-src https://api.example.com wss://live.example.com:8443;", "'self' 'unsafe"},
		"only the origin":    {`{"connectDomains":["https://api.example.com/path"]}`, "connect-src https://api.example.com;", "/path"},
		"an injected policy": {`{"connectDomains":["https://a.example; script-src *","*","'self'","https:","https://a b"]}`, "connect-src 'none';", "script-src *"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := get(t, app, "/console/view?csp="+strings.NewReplacer(`"`, "%22", " ", "%20", ";", "%3B", "'", "%27", "{", "%7B", "}", "%7D").Replace(c.csp))
			policy := resp.Header.Get("Content-Security-Policy")
			if resp.StatusCode != http.StatusOK || !strings.Contains(body, "sandbox-proxy-ready") {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if !strings.HasPrefix(policy, "sandbox allow-scripts allow-forms; default-src 'none'; ") || !strings.Contains(policy, c.want) || strings.Contains(policy, c.never) {
				t.Errorf("the policy is %q, want %q in it and not %q", policy, c.want, c.never)
			}
			if !strings.HasSuffix(policy, "frame-ancestors 'self' https://tools.example.com") {
				t.Errorf("the policy should not let others frame it: %q", policy)
			}
		})
	}
	if resp, _ := get(t, app, "/console/view?csp=no"); resp.StatusCode == http.StatusOK {
		t.Error("a csp that is not JSON was accepted")
	}
}

func TestViewsUseASeparateOriginIfThereIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		o          Options
		host, want string
	}{
		"configured":          {Options{ViewOrigin: "https://views.example.com"}, "tools.example.com", "https://views.example.com"},
		"dev mode, by name":   {Options{Dev: true}, "localhost:27247", "http://127.0.0.1:27247"},
		"dev mode, by number": {Options{Dev: true}, "127.0.0.1:27247", "http://localhost:27247"},
		"none":                {Options{APIKey: true}, "tools.example.com", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/console/facts.json", nil)
			r.Host = c.host
			resp, err := serve(c.o).Test(r, -1)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if !strings.Contains(string(body), `"viewOrigin":"`+c.want+`"`) {
				t.Errorf("%s", body)
			}
		})
	}
}

func TestTheAssetsAreSmall(t *testing.T) {
	total := int64(0)
	if err := fs.WalkDir(dist, "dist", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			total += info.Size()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if total > 3<<20 {
		t.Errorf("the assets add %d bytes to the executable; at most 3 MiB is allowed", total)
	}
}
