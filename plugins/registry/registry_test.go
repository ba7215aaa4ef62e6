package registry_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo records its arguments, so that a test can compare both ends of the connection.
type echo struct {
	query registry.Query
	ref   registry.Ref
	pkg   registry.Package
	page  registry.Page
	body  func() io.ReadCloser
	err   error
}

func (e *echo) Search(_ context.Context, q registry.Query) (registry.Page, error) {
	e.query = q
	return e.page, e.err
}

func (e *echo) Resolve(_ context.Context, ref registry.Ref) (registry.Package, error) {
	e.ref = ref
	return e.pkg, e.err
}

func (e *echo) Fetch(_ context.Context, pkg registry.Package) (io.ReadCloser, error) {
	if e.err != nil {
		return nil, e.err
	}
	if !reflect.DeepEqual(pkg, e.pkg) {
		return nil, errors.New("another package arrived")
	}
	return e.body(), nil
}

func everything(kind registry.Kind) registry.Package {
	return registry.Package{
		Name: "n", Version: "1", Title: "t", Description: "d", TrustScore: 7, Kind: kind, Artifact: "a", SHA256: "s", Size: 1 << 40,
		Identifier: "i", IdentifierVersion: "2", RuntimeArgs: []string{"r", ""}, Args: []string{"x", "y"},
		Variables: []registry.Variable{{Name: "v", Title: "t", Description: "d", Default: "f", Choices: []string{"f", "g"}, Required: true, Secret: true}},
	}
}

func TestEverythingCrossesTheWire(t *testing.T) {
	impl := &echo{page: registry.Page{Entries: []registry.Entry{{Name: "n", Title: "t", Description: "d", Version: "1", TrustScore: 100}}, NextCursor: "c"}}
	reg := registry.Client(plugintest.Serve(t, registry.Plugin(impl)))
	query := registry.Query{Text: "t\x00ü", Limit: 3, Cursor: "c"}
	if page, err := reg.Search(t.Context(), query); err != nil || !reflect.DeepEqual(page, impl.page) || impl.query != query {
		t.Errorf("got %+v, %v for %+v", page, err, impl.query)
	}
	ref := registry.Ref{Name: "n", Version: "1", OS: "linux", Arch: "amd64"}
	for _, kind := range []registry.Kind{registry.KindMCPB, registry.KindNPM, registry.KindPyPI, registry.KindRemote} {
		impl.pkg = everything(kind)
		if kind == registry.KindRemote {
			impl.pkg.Remote = registry.Remote{Transport: "sse", URL: "u", Headers: map[string]string{"H": "{v}"}}
		}
		if pkg, err := reg.Resolve(t.Context(), ref); err != nil || !reflect.DeepEqual(pkg, impl.pkg) || impl.ref != ref {
			t.Errorf("got %+v, %v for %+v", pkg, err, impl.ref)
		}
	}
}

func TestErrorsCrossTheWire(t *testing.T) {
	impl := &echo{}
	reg := registry.Client(plugintest.Serve(t, registry.Plugin(impl)))
	for _, want := range []error{plugins.ErrNotFound, plugins.ErrInvalid, plugins.ErrUnavailable, plugins.ErrUnimplemented} {
		impl.err = want
		_, searched := reg.Search(t.Context(), registry.Query{})
		_, resolved := reg.Resolve(t.Context(), registry.Ref{Name: "n"})
		_, fetched := reg.Fetch(t.Context(), registry.Package{Kind: registry.KindMCPB})
		for _, err := range []error{searched, resolved, fetched} {
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	}
}

// closing is a body that reports when it is closed.
type closing struct {
	io.Reader
	closed chan struct{}
}

func (c closing) Close() error { close(c.closed); return nil }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, plugins.ErrUnavailable }

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestAllBytesArriveInOrder(t *testing.T) {
	for name, want := range map[string]string{"none": "", "one": "x", "a few chunks": strings.Repeat("0123456789", 50_000), "a whole chunk": strings.Repeat("x", 64<<10)} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			impl := &echo{pkg: everything(registry.KindMCPB), body: func() io.ReadCloser { return closing{strings.NewReader(want), closed} }}
			body, err := registry.Client(plugintest.Serve(t, registry.Plugin(impl))).Fetch(t.Context(), impl.pkg)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(body)
			if string(raw) != want || err != nil || body.Close() != nil {
				t.Fatalf("got %d bytes, %v", len(raw), err)
			}
			<-closed
		})
	}
}

func TestADownloadThatIsCutOffIsIncomplete(t *testing.T) {
	impl := &echo{pkg: everything(registry.KindMCPB), body: func() io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), failing{}))
	}}
	body, err := registry.Client(plugintest.Serve(t, registry.Plugin(impl))).Fetch(t.Context(), impl.pkg)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadAll(body); !errors.Is(err, plugins.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
}

func TestCancellingADownloadStopsItOnTheServer(t *testing.T) {
	for name, end := range map[string]func(io.Closer, context.CancelFunc){
		"by closing it":     func(body io.Closer, _ context.CancelFunc) { _ = body.Close() },
		"by its context":    func(_ io.Closer, cancel context.CancelFunc) { cancel() },
		"by both, as usual": func(body io.Closer, cancel context.CancelFunc) { cancel(); _ = body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			impl := &echo{pkg: everything(registry.KindMCPB), body: func() io.ReadCloser { return closing{endless{}, closed} }}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			body, err := registry.Client(plugintest.Serve(t, registry.Plugin(impl))).Fetch(ctx, impl.pkg)
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			end(body, cancel)
			<-closed
			if _, err := io.Copy(io.Discard, body); err == nil {
				t.Fatal("an abandoned download ended as if it were complete")
			}
		})
	}
}

func TestScoresStayInBounds(t *testing.T) {
	impl := &echo{pkg: registry.Package{Name: "n", TrustScore: 1000}, page: registry.Page{Entries: []registry.Entry{{TrustScore: -5}}}}
	reg := registry.Client(plugintest.Serve(t, registry.Plugin(impl)))
	pkg, err := reg.Resolve(t.Context(), registry.Ref{Name: "n"})
	page, searchErr := reg.Search(t.Context(), registry.Query{})
	if err != nil || searchErr != nil || pkg.TrustScore != 100 || page.Entries[0].TrustScore != 0 {
		t.Fatalf("got %d and %+v, %v, %v", pkg.TrustScore, page, err, searchErr)
	}
}

func TestFillAndPlaces(t *testing.T) {
	pkg := registry.Package{
		Args: []string{"--key={key}", "{json: 1}"}, RuntimeArgs: []string{"{mode}"}, Remote: registry.Remote{URL: "https://{tenant}/x", Headers: map[string]string{"H": "Bearer {token}"}},
		Variables: []registry.Variable{{Name: "key"}, {Name: "mode"}, {Name: "tenant"}, {Name: "token"}, {Name: "ENV"}},
	}
	value := func(v registry.Variable) (string, bool) { return "<{key}" + v.Name + ">", v.Name != "mode" }
	for text, want := range map[string]string{"--key={key}": "--key=<{key}key>", "{json: 1} {other} {{key}}": "{json: 1} {other} {<{key}key>}", "": ""} {
		if got, ok := pkg.Fill(text, value); got != want || !ok {
			t.Errorf("%q: got %q, %t", text, got, ok)
		}
	}
	if _, ok := pkg.Fill("x {mode}", value); ok {
		t.Error("a missing value should be reported")
	}
	for name, want := range map[string]bool{"key": true, "mode": true, "tenant": true, "token": true, "ENV": false} {
		if pkg.Places(name) != want {
			t.Errorf("%s: got %t", name, !want)
		}
	}
}
