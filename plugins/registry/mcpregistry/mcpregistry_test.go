package mcpregistry_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	p := publish(t)
	front, err := registrytest.NewFront(p.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.Close)
	p.URL = "http://" + front.Address()
	subject := registrytest.Subject{
		Registry: open(t, p), Publish: p.hold, Platforms: registrytest.Everywhere, Backend: front,
		Name: func(scope, last string) string { return "io.example." + scope + "/" + last },
	}
	plugintest.Judge(t, registrytest.Properties(), plugintest.Trial(kit.Normal), subject)

	t.Run("over the wire", func(t *testing.T) {
		r := mcpregistry.New()
		conn := plugintest.Configured(t, registry.Plugin(r), p.settings())
		t.Cleanup(func() { _ = r.Close() })
		subject.Registry = registry.Client(conn)
		plugintest.Judge(t, registrytest.Properties(), plugintest.Trial(kit.Quick), subject)
	})
	t.Run("packages of other kinds", func(t *testing.T) {
		subject := registrytest.Subject{Registry: open(t, whole(t)), Fixed: true, Known: registrytest.Catalogue{Bundles: []registrytest.Bundle{{
			Name: "io.example/bundle", Latest: "1.0.0", Versions: []registrytest.Version{{Version: "0.9.0"}, {Version: "1.0.0"}},
		}}}}
		for _, property := range registrytest.Properties() {
			if outcome := property.Judge(t.Context(), plugintest.Trial(kit.Quick), subject); outcome.Verdict == kit.Fail {
				t.Error(outcome.Err)
			}
		}
	})
}

func TestSearchOmitsDeletedServers(t *testing.T) {
	p := publish(t, entry("io.example/a", "1.0.0", nil), status(entry("io.example/b", "1.0.0", nil), "deleted"), status(entry("io.example/c", "1.0.0", nil), "deprecated"))
	p.entries[0]["_meta"].(object)["com.example/trust"] = object{"trustScore": 87}
	p.entries[2]["_meta"].(object)["com.example/trust"] = object{"trust_score": 12}
	page, err := open(t, p).Search(t.Context(), registry.Query{Text: "io.example"})
	want := []registry.Entry{
		{Name: "io.example/a", Title: "Title", Description: "about io.example/a", Version: "1.0.0", TrustScore: 87},
		{Name: "io.example/c", Title: "Title", Description: "(deprecated) about io.example/c", Version: "1.0.0", TrustScore: 12},
	}
	if err != nil || !slices.Equal(page.Entries, want) {
		t.Fatalf("got %+v, %v", page, err)
	}
}

func TestLatest(t *testing.T) {
	old, rest := entry("io.example/a", "1.2.0", packages(npm(nil))), entry("io.example/a", "1.10.0", packages(npm(nil)))
	gone := status(entry("io.example/a", "2.0.0", packages(npm(nil))), "deleted")
	r := open(t, publish(t, old, rest, gone))
	if pkg, err := r.Resolve(t.Context(), registry.Ref{Name: "io.example/a"}); err != nil || pkg.Version != "1.10.0" {
		t.Errorf("the latest was deleted: got %s, %v", pkg.Version, err)
	}
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "io.example/a", Version: "2.0.0"}); !errors.Is(err, plugins.ErrNotFound) || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("a deleted version: got %v", err)
	}
	r = open(t, publish(t, entry("io.example/a", "nightly", packages(npm(nil)))))
	if pkg, err := r.Resolve(t.Context(), registry.Ref{Name: "io.example/a", Version: "nightly"}); err != nil || pkg.Version != "nightly" {
		t.Errorf("a version of any form: got %s, %v", pkg.Version, err)
	}
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "io.example/a", Version: "latest"}); !errors.Is(err, plugins.ErrNotFound) {
		t.Errorf("latest is not a version: got %v", err)
	}
	r = open(t, publish(t, gone))
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "io.example/a"}); !errors.Is(err, plugins.ErrNotFound) {
		t.Errorf("every version was deleted: got %v", err)
	}
}

func TestNamesAreRequestedEscapedOrNotAtAll(t *testing.T) {
	p := whole(t)
	r := open(t, p)
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "io.example/npm", Version: "2.0.0"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/v0.1/servers/io.example%2Fnpm/versions/2.0.0"}; !slices.Equal(p.asked, want) {
		t.Fatalf("got the requests %q", p.asked)
	}
	for _, name := range []string{"plain", "@scope/name", "../x", "io.example/..", "a/b/c", "io.example/x?y"} {
		if _, err := r.Resolve(t.Context(), registry.Ref{Name: name}); !errors.Is(err, plugins.ErrNotFound) || !strings.Contains(err.Error(), "namespace/name, such as io.github.acme/notes") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := r.Resolve(t.Context(), registry.Ref{Name: "io.example/a", Version: "../x"}); !errors.Is(err, plugins.ErrNotFound) || !strings.Contains(err.Error(), "give one version") {
		t.Errorf("an impossible version: %v", err)
	}
	if len(p.asked) != 1 {
		t.Fatalf("got the requests %q", p.asked)
	}
}

func TestAResponseToAnotherRequestIsIgnored(t *testing.T) {
	wrong := entry("io.example/evil", "1.0.0", packages(npm(nil)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w, wrong) }))
	defer s.Close()
	r := open(t, &published{Server: s})
	for _, ref := range []registry.Ref{{Name: "io.example/good"}, {Name: "io.example/evil", Version: "2.0.0"}} {
		if _, err := r.Resolve(t.Context(), ref); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("%+v: got %v", ref, err)
		}
	}
}

func TestAFailedRegistryIsNotReportedAsEmpty(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a fault":                 func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"another web server":      func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"another API":             func(w http.ResponseWriter, _ *http.Request) { write(w, object{"servers": "none"}) },
		"an API without a search": func(w http.ResponseWriter, _ *http.Request) { notFound(w) },
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(h)
			defer s.Close()
			if _, err := open(t, &published{Server: s}).Search(t.Context(), registry.Query{}); !errors.Is(err, plugins.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestFetchRequestsTheAddressAgain(t *testing.T) {
	p := whole(t)
	r := open(t, p)
	pkg, err := r.Resolve(t.Context(), registry.Ref{Name: "io.example/bundle"})
	if err != nil || pkg.Artifact != "io.example/bundle@1.0.0" {
		t.Fatalf("got %+v, %v", pkg, err)
	}
	body, err := r.Fetch(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(body)
	if err != nil || string(raw) != strings.Repeat("new", 50_000) || body.Close() != nil {
		t.Fatalf("got %d bytes, %v", len(raw), err)
	}
	pkg.SHA256 = strings.Repeat("0", 64)
	if _, err := r.Fetch(t.Context(), pkg); !errors.Is(err, plugins.ErrNotFound) {
		t.Errorf("another digest: got %v", err)
	}
	p.entries = []object{entry("io.example/bundle", "1.0.0", packages(object{"registryType": "mcpb", "identifier": "https://169.254.169.254/x.mcpb", "fileSha256": pkg.SHA256}))}
	if _, err := r.Fetch(t.Context(), pkg); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "prohibited") {
		t.Errorf("an internal address: got %v", err)
	}
}

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct{ settings, want string }{
		"http on a public network": {`{"url": "http://registry.example.com"}`, "url: must be an https URL"},
		"a typo":                   {`{"urll": "https://registry.example.com"}`, `did you mean "url"`},
		"a timeout of zero":        {`{"timeout": "0s"}`, "timeout: must be a positive duration"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := mcpregistry.New().Configure(t.Context(), plugins.Config{JSON: json.RawMessage(c.settings)}); !errors.Is(err, plugins.ErrInvalid) {
				t.Errorf("configured with %v", err)
			}
			err := mcpregistry.New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(c.settings)})
			if !errors.Is(err, plugins.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := mcpregistry.New().Validate(t.Context(), plugins.Config{}); err != nil {
		t.Errorf("no settings should mean the official registry: got %v", err)
	}
}
