package install_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost/install"
)

// serve serves files, and returns 404 for all others.
func serve(t *testing.T, files map[string][]byte) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAURLIsFetchedWithItsSignatureAndChecksum(t *testing.T) {
	t.Parallel()
	h, author := newHome(t), newKey(t)
	content := program("auth", "okta", "1.2.0")
	files := map[string][]byte{"/auth-okta": content, "/auth-okta.minisig": author.sign(content), "/auth-okta.sha256": []byte(sum(content) + "\n")}
	s := serve(t, files)
	h.Settings = config.Plugins{TrustedKeys: []string{author.public}, RequireSignature: true}
	secret := strings.Replace(s.URL, "://", "://user:pass@", 1) + "/auth-okta?token=t"
	if got := h.installs(install.Request{Source: secret}); got.Record.Signer != author.public || got.Record.Source != s.URL+"/auth-okta" {
		t.Errorf("got %+v", got.Record)
	}
	files["/auth-okta.sha256"] = []byte(sum([]byte("other")))
	h.refuses(install.Request{Source: s.URL + "/auth-okta"}, "its .sha256 file specifies")
	files["/auth-okta.sha256"] = []byte("<html>")
	h.refuses(install.Request{Source: s.URL + "/auth-okta"}, s.URL+`/auth-okta: its .sha256 file contains "<html>" instead of a sha256`)
	h.refuses(install.Request{Source: s.URL + "/auth-none"}, "404", "check the address")
	h.refuses(install.Request{Source: "http://example.com/auth-okta"}, "over https only")
	h.refuses(install.Request{Source: "ftp://example.com/auth-okta"}, "over https only")
	s.Close()
	h.refuses(install.Request{Source: secret}, "cannot be fetched: ", "; check the address and the network")
}

func TestARedirectMayNotLeaveHTTPSOrPointToThisMachine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	content := program("auth", "okta", "1.2.0")
	var to string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, to, http.StatusFound)
		case "/auth-okta":
			_, _ = w.Write(content)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	to = "/auth-okta"
	h.installs(install.Request{Source: s.URL + "/moved"})
	to = "http://example.com/auth-okta"
	h.refuses(install.Request{Source: s.URL + "/moved"}, "points to http://example.com/auth-okta")
	to = "/moved"
	h.refuses(install.Request{Source: s.URL + "/moved"}, "redirects")
	for _, c := range []struct {
		from, to string
		good     bool
	}{
		{"https://example.com/a", "https://cdn.example.net/a", true},
		{"https://example.com/a", "http://example.com/a", false},
		{"https://example.com/a", "http://127.0.0.1/a", false},
		{"https://example.com/a", "https://localhost/a", false},
		{"https://localhost/a", "http://localhost/a", false},
		{"http://localhost/a", "file:///a", false},
	} {
		if err := install.CheckFollowed(c.from, c.to); (err == nil) != c.good {
			t.Errorf("from %s to %s: %v", c.from, c.to, err)
		}
	}
}

func TestAPartialDownloadIsRefused(t *testing.T) {
	t.Parallel()
	content := program("auth", "okta", "1.2.0")
	for name, header := range map[string]string{
		"with a length":    "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(content)) + "\r\n\r\n",
		"in chunks":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(int64(len(content)), 16) + "\r\n",
		"without a length": "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/auth-okta" {
					http.NotFound(w, r)
					return
				}
				conn, out, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = out.WriteString(header)
				_, _ = out.Write(content[:len(content)/2])
				_ = out.Flush()
				_ = conn.Close()
			}))
			defer s.Close()
			h.refuses(install.Request{Source: s.URL + "/auth-okta"}, s.URL+"/auth-okta")
			h.refuses(install.Request{Source: s.URL + "/auth-okta", SHA256: sum(content)}, s.URL+"/auth-okta")
		})
	}
}

// list returns a list of plugins with one version for this platform.
func list(name, version, url, sum string) []byte {
	return fmt.Appendf(nil, `{"plugins": {%q: {"versions": {%q: {"%s/%s": {"url": %q, "sha256": %q}}}}}}`, name, version, runtime.GOOS, runtime.GOARCH, url, sum)
}

func TestANameIsLookedUpInTheRegistries(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	name := "auth-okta-nowhere-as-a-file"
	h.refuses(install.Request{Source: name}, "there is no file", "plugins.registries")
	content := program("auth", "x", "1.2.0")
	put("okta", content)
	files := map[string][]byte{"/p/okta": content, "/p/list.json": list(name, "1.2.0", "okta", sum(content))}
	s := serve(t, files)
	local := put("list.json", list(name, "1.1.0", "okta", sum(content)))

	h.Settings.Registries = []string{put("empty.json", []byte(`{}`)), s.URL + "/p/list.json"}
	if got := h.installs(install.Request{Source: name}); got.Name != name || got.Record.Source != s.URL+"/p/okta" {
		t.Errorf("got %+v", got)
	}
	h.refuses(install.Request{Source: name + "@2.0.0"}, "no version 2.0.0")
	h.refuses(install.Request{Source: "auth-unknown-to-all"}, "no list", "auth-unknown-to-all")
	files["/p/list.json"] = list(name, "1.2.0", "okta", sum([]byte("other")))
	h.refuses(install.Request{Source: name}, "list.json specifies")
	files["/p/list.json"] = list(name, "1.2.0", "okta", "")
	h.refuses(install.Request{Source: name}, "has no sha256")
	files["/p/list.json"] = []byte("<html>")
	h.refuses(install.Request{Source: name}, "not a list of plugins")

	h.Settings.Registries = []string{local}
	h.refuses(install.Request{Source: name}, "listed as version 1.1.0 but reports version 1.2.0")
	for _, elsewhere := range []string{"../okta", "/etc/passwd", "http://example.com/okta"} {
		put("list.json", list(name, "1.2.0", elsewhere, sum(content)))
		h.refuses(install.Request{Source: name})
	}
	put("list.json", list(name, "1.2.0", "okta", sum(content)))
	h.installs(install.Request{Source: name + "@v1.2.0"})
}

func TestRemoveDeletesThePluginItsCopiesAndItsRecord(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	before := tree(t, h.Home)
	path := h.write("p", program("auth", "okta", "1.0.0"))
	got := h.installs(install.Request{Source: path})
	if err := os.WriteFile(filepath.Join(h.Home, "plugins", ".auth-okta."+got.Record.SHA256), []byte("copy"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := h.Remove("auth-none", true); err == nil || !strings.Contains(err.Error(), `no plugin "auth-none"`) {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"../plugins.lock", ".auth-okta." + got.Record.SHA256, "data"} {
		if err := h.Remove(name, true); err == nil {
			t.Errorf("%s is removed", name)
		}
	}
	if err := h.Remove("auth-okta", true); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, h.Home); before != "" || strings.Contains(after, "auth-okta") {
		t.Errorf("the remaining files are:\n%s", after)
	}
	// Now an older version is allowed.
	h.installs(install.Request{Source: h.write("p", program("auth", "okta", "0.9.0"))})
}
