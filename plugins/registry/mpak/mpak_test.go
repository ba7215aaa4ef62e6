package mpak_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
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
	subject := registrytest.Subject{Registry: open(t, p), Publish: p.hold, Platforms: registrytest.Architectures, Backend: front}
	plugintest.Judge(t, registrytest.Properties(), plugintest.Trial(kit.Normal), subject)

	t.Run("over the wire", func(t *testing.T) {
		r := mpak.New()
		conn := plugintest.Configured(t, registry.Plugin(r), p.settings())
		t.Cleanup(func() { _ = r.Close() })
		subject.Registry = registry.Client(conn)
		plugintest.Judge(t, registrytest.Properties(), plugintest.Trial(kit.Quick), subject)
	})
}

func TestResolveChoosesTheArtifactForThePlatform(t *testing.T) {
	for name, c := range map[string]struct {
		files     []string
		os, arch  string
		want      string
		wantError string
	}{
		"exact":                            {[]string{"any/any", "linux/any", "linux/x64"}, "linux", "amd64", "linux/x64", ""},
		"any architecture":                 {[]string{"any/any", "linux/any", "linux/arm64"}, "linux", "amd64", "linux/any", ""},
		"anything":                         {[]string{"any/any", "darwin/any"}, "linux", "arm64", "any/any", ""},
		"windows is win32":                 {[]string{"win32/x64", "linux/x64"}, "windows", "amd64", "win32/x64", ""},
		"another architecture will not do": {[]string{"linux/arm64"}, "linux", "amd64", "", "is available for linux/arm64, but not for linux/x64"},
		"any/x64 does not match linux/x64": {[]string{"any/x64"}, "linux", "amd64", "", "but not for linux/x64"},
	} {
		t.Run(name, func(t *testing.T) {
			v := release{"1.0.0", map[string]string{}}
			for _, at := range c.files {
				v.files[at] = "bytes of " + at
			}
			r := open(t, publish(t, shown{"@acme/a", 2, []release{v}}))
			pkg, err := r.Resolve(t.Context(), registry.Ref{Name: "@acme/a", OS: c.os, Arch: c.arch})
			if c.wantError != "" {
				if !errors.Is(err, plugins.ErrNotFound) || !strings.Contains(err.Error(), c.wantError) {
					t.Fatalf("got %v", err)
				}
				return
			}
			body := v.files[c.want]
			if err != nil || pkg.SHA256 != sum(body) || pkg.Size != int64(len(body)) || pkg.Kind != registry.KindMCPB {
				t.Fatalf("got %+v, %v", pkg, err)
			}
			got, err := r.Fetch(t.Context(), pkg)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(got)
			if string(raw) != body || err != nil || got.Close() != nil {
				t.Fatalf("got %q, %v", raw, err)
			}
		})
	}
}

func TestTheTrustScoreFollowsTheCertification(t *testing.T) {
	for level, want := range map[int]int{-1: 0, 0: 0, 1: 25, 2: 50, 3: 75, 4: 100, 5: 0} {
		r := open(t, publish(t, shown{"@acme/a", level, []release{everywhere("1.0.0")}}))
		pkg, err := r.Resolve(t.Context(), registry.Ref{Name: "@acme/a", OS: "linux", Arch: "amd64"})
		page, searchErr := r.Search(t.Context(), registry.Query{})
		if err != nil || searchErr != nil || pkg.TrustScore != want || page.Entries[0].TrustScore != want {
			t.Errorf("level %d: got %d and %+v, %v, %v", level, pkg.TrustScore, page, err, searchErr)
		}
	}
}

func TestAReplacedFileIsNotReturned(t *testing.T) {
	p := publish(t, shown{"@acme/a", 2, []release{everywhere("1.0.0")}})
	r := open(t, p)
	pkg, err := r.Resolve(t.Context(), registry.Ref{Name: "@acme/a"})
	if err != nil {
		t.Fatal(err)
	}
	p.bundles[0].versions[0].files["any/any"] = "another file"
	if _, err := r.Fetch(t.Context(), pkg); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "a different file") {
		t.Fatalf("got %v", err)
	}
}

func TestAFailedRegistryIsNotReportedAsEmpty(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a fault":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"another web server": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"another bundle": func(w http.ResponseWriter, _ *http.Request) {
			write(w, object{"name": "@evil/a", "latest_version": "1.0.0"})
		},
		"another bundle with files": func(w http.ResponseWriter, _ *http.Request) {
			write(w, object{"name": "@evil/a", "latest_version": "1.0.0", "version": "1.0.0", "artifacts": []object{{"platform": object{"os": "any", "arch": "any"}, "digest": "sha256:" + sum("x"), "size": 1}}})
		},
		"a strange version with files": func(w http.ResponseWriter, _ *http.Request) {
			write(w, object{"name": "@acme/a", "latest_version": "../x", "version": "../x", "artifacts": []object{{"platform": object{"os": "any", "arch": "any"}, "digest": "sha256:" + sum("x"), "size": 1}}})
		},
		"no version": func(w http.ResponseWriter, _ *http.Request) { write(w, object{"name": "@acme/a"}) },
		"a strange version": func(w http.ResponseWriter, _ *http.Request) {
			write(w, object{"name": "@acme/a", "latest_version": "../x"})
		},
		"no files": func(w http.ResponseWriter, _ *http.Request) {
			write(w, object{"name": "@acme/a", "latest_version": "1.0.0", "version": "1.0.0"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(h)
			defer s.Close()
			r := open(t, &published{Server: s})
			if pkg, err := r.Resolve(t.Context(), registry.Ref{Name: "@acme/a"}); !errors.Is(err, plugins.ErrUnavailable) {
				t.Errorf("Resolve: got %+v, %v", pkg, err)
			}
			if page, err := r.Search(t.Context(), registry.Query{}); !errors.Is(err, plugins.ErrUnavailable) && strings.HasPrefix(name, "another web") {
				t.Errorf("Search: got %+v, %v", page, err)
			}
		})
	}
}

func TestInvalidNamesAndVersionsAreNotRequested(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("unexpected request: %s", r.URL) }))
	defer s.Close()
	r := open(t, &published{Server: s})
	for _, ref := range []registry.Ref{{Name: "plain"}, {Name: "io.example/a"}, {Name: "@a/../b"}, {Name: "@a/b", Version: "../x"}, {Name: "@a/b", Version: "latest"}} {
		_, err := r.Resolve(t.Context(), ref)
		want := "names there have the form @scope/bundle"
		if ref.Version != "" {
			want = "give one version"
		}
		if !errors.Is(err, plugins.ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v", ref, err)
		}
	}
}

func TestAForeignArtifactOrCursorSendsNoRequest(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("unexpected request: %s", r.URL) }))
	defer s.Close()
	r := open(t, &published{Server: s})
	for _, artifact := range []string{"", "%", "name=plain&version=1.0.0", "name=@a/../../b&version=1.0.0", "name=@a/b?x&version=1.0.0", "name=@a/b", "name=@a/b&version=../x", "version=1.0.0"} {
		if _, err := r.Fetch(t.Context(), registry.Package{Kind: registry.KindMCPB, Artifact: artifact}); !errors.Is(err, plugins.ErrInvalid) {
			t.Errorf("the artifact %q: got %v", artifact, err)
		}
	}
	for _, cursor := range []string{"x", "-1", "1.5", "99999999999999999999"} {
		if _, err := r.Search(t.Context(), registry.Query{Cursor: cursor}); !errors.Is(err, plugins.ErrInvalid) {
			t.Errorf("the cursor %q: got %v", cursor, err)
		}
	}
}

func TestOtherPagingFieldsAreUnderstood(t *testing.T) {
	for name, c := range map[string]struct {
		answer  object
		entries int
		next    string
	}{
		"more than asked for":          {object{"bundles": []object{{"name": "@a/1"}, {"name": "@a/2"}, {"name": "@a/3"}}, "total": 9}, 2, "2"},
		"a total, but no has_more":     {object{"bundles": []object{{"name": "@a/1"}}, "total": 9}, 1, "1"},
		"has_more, but no total":       {object{"bundles": []object{{"name": "@a/1"}}, "pagination": object{"has_more": true}}, 1, "1"},
		"the last page":                {object{"bundles": []object{{"name": "@a/1"}}, "total": 1}, 1, ""},
		"nothing, and more is claimed": {object{"bundles": []object{}, "total": 9, "pagination": object{"has_more": true}}, 0, ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w, c.answer) }))
		page, err := open(t, &published{Server: s}).Search(t.Context(), registry.Query{Limit: 2})
		if err != nil || len(page.Entries) != c.entries || page.NextCursor != c.next {
			t.Errorf("%s: got %+v, %v", name, page, err)
		}
		s.Close()
	}
}

func TestAServerWithoutSearchIsUnavailable(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		write(w, object{"error": "not found"})
	}))
	defer s.Close()
	if page, err := open(t, &published{Server: s}).Search(t.Context(), registry.Query{}); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("got %+v, %v", page, err)
	}
}

func TestARegistryThatWasNeverConfiguredCanBeClosed(t *testing.T) {
	if err := mpak.New().Close(); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	wrong := plugins.Config{JSON: json.RawMessage(`{"url": "http://registry.example.com", "tokn": "x"}`)}
	if err := mpak.New().Configure(t.Context(), wrong); !errors.Is(err, plugins.ErrInvalid) {
		t.Errorf("configured with %v", err)
	}
	err := mpak.New().Validate(t.Context(), wrong)
	if !errors.Is(err, plugins.ErrInvalid) || !strings.Contains(err.Error(), "url: must be an https URL") || !strings.Contains(err.Error(), `did you mean "token"`) {
		t.Fatalf("got %v", err)
	}
}
