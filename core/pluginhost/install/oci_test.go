package install_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost/install"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// ociRepository is a repository in a registry, to push to.
type ociRepository struct {
	*remote.Repository
	t *testing.T
}

func newOCIRepository(t *testing.T, r *testenv.OCIRegistry, name string) ociRepository {
	t.Helper()
	repository, err := remote.NewRepository(r.Addr + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	repository.PlainHTTP = true
	return ociRepository{repository, t}
}

// push pushes files as `oras push` does and returns the manifest's descriptor. A file without a name becomes a
// layer like those in container images.
func (r ociRepository) push(tag string, files map[string][]byte) specs.Descriptor {
	r.t.Helper()
	var layers []specs.Descriptor
	for name, raw := range files {
		layer := content.NewDescriptorFromBytes("application/octet-stream", raw)
		if name != "" {
			layer.Annotations = map[string]string{specs.AnnotationTitle: name}
		}
		if err := r.Push(r.t.Context(), layer, bytes.NewReader(raw)); err != nil {
			r.t.Fatal(err)
		}
		layers = append(layers, layer)
	}
	manifest, err := oras.PackManifest(r.t.Context(), r, oras.PackManifestVersion1_1, "application/vnd.example.plugin", oras.PackManifestOptions{Layers: layers})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.Tag(r.t.Context(), manifest, tag); err != nil {
		r.t.Fatal(err)
	}
	return manifest
}

func TestAnOCIArtifactIsInstalledWithItsSignatureAndDigest(t *testing.T) {
	t.Parallel()
	r, h, author := testenv.StartOCIRegistry(t, ""), newHome(t), newKey(t)
	repository, source := newOCIRepository(t, r, "acme/okta"), "oci://"+r.Addr+"/acme/okta"
	h.Settings = config.Plugins{TrustedKeys: []string{author.public}, RequireSignature: true}
	mine, other := program("auth", "okta", "1.2.0"), program("auth", "okta", "9.9.9")
	name := "auth-okta_" + runtime.GOOS + "_" + runtime.GOARCH
	pushed := repository.push("1.2", map[string][]byte{
		name: mine, name + ".minisig": author.sign(mine), "auth-okta_plan9_mips": other, "README.md": []byte("# Okta"),
		"SHA256SUMS": []byte(sum(mine) + "  " + name + "\n" + sum(other) + "  auth-okta_plan9_mips\n"), "": []byte("a layer"),
	})
	got := h.installs(install.Request{Source: source + ":1.2"})
	if got.Name != "auth-okta" || got.Record.Signer != author.public || got.Record.SHA256 != sum(mine) || got.Record.Source != source+":1.2@"+pushed.Digest.String() {
		t.Errorf("got %+v", got)
	}
	got = h.installs(install.Request{Source: source + "@" + pushed.Digest.String(), Name: "other"})
	if got.Name != "auth-other" || got.Record.Source != source+"@"+pushed.Digest.String() {
		t.Errorf("by its digest: got %+v", got)
	}

	repository.push("unsigned", map[string][]byte{"auth-okta": mine})
	h.refuses(install.Request{Source: source + ":unsigned"}, "has no signature", "ask its author")
	repository.push("forged", map[string][]byte{"auth-okta": other, "auth-okta.minisig": author.sign(mine)})
	h.refuses(install.Request{Source: source + ":forged"}, "is not what the key")
	repository.push("mixed", map[string][]byte{"auth-okta": mine, "auth-okta.minisig": author.sign(mine), "auth-okta.sha256": []byte(sum(other))})
	h.refuses(install.Request{Source: source + ":mixed"}, "auth-okta.sha256 specifies")
	repository.push("image", map[string][]byte{"": mine, "notes.txt": mine, "../auth-up": mine, "bin/auth-down": mine})
	h.refuses(install.Request{Source: source + ":image"}, "does not contain a plugin")
	h.refuses(install.Request{Source: source + ":none"}, source+":none cannot be fetched", "not found")
	h.refuses(install.Request{Source: source}, "use oci://host/repository:tag")
	h.refuses(install.Request{Source: "oci://nothing"}, "use oci://host/repository:tag")
}

func TestAnOCIIndexResolvesToThePluginForThisPlatform(t *testing.T) {
	t.Parallel()
	r, h := testenv.StartOCIRegistry(t, ""), newHome(t)
	repository, source := newOCIRepository(t, r, "okta"), "oci://"+r.Addr+"/okta:1.2"
	type platform [2]string // system and architecture
	index := func(platforms map[platform][]byte) {
		all := specs.Index{MediaType: specs.MediaTypeImageIndex}
		all.SchemaVersion = 2
		for p, raw := range platforms {
			manifest := repository.push("one", map[string][]byte{"auth-okta": raw})
			manifest.Platform = &specs.Platform{OS: p[0], Architecture: p[1]}
			all.Manifests = append(all.Manifests, manifest)
		}
		raw, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := oras.TagBytes(t.Context(), repository, specs.MediaTypeImageIndex, raw, "1.2"); err != nil {
			t.Fatal(err)
		}
	}
	plan9 := platform{"plan9", "mips"}
	index(map[platform][]byte{plan9: program("auth", "okta", "9.9.9"), {runtime.GOOS, runtime.GOARCH}: program("auth", "okta", "1.2.0")})
	if got := h.installs(install.Request{Source: source}); got.Record.Version != "1.2.0" {
		t.Errorf("got %+v", got)
	}
	index(map[platform][]byte{plan9: program("auth", "okta", "9.9.9")})
	h.refuses(install.Request{Source: source}, "nothing for "+runtime.GOOS+"/"+runtime.GOARCH)
}

func TestAnOCIArtifactThatDoesNotMatchItsManifestIsRefused(t *testing.T) {
	t.Parallel()
	r, h := testenv.StartOCIRegistry(t, ""), newHome(t)
	mine := program("auth", "okta", "1.2.0")
	newOCIRepository(t, r, "okta").push("1.2", map[string][]byte{"auth-okta": mine})
	changed := bytes.Replace(mine, []byte("code"), []byte("evil"), 1)
	found := 0
	err := filepath.WalkDir(r.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil && bytes.Equal(raw, mine) {
			found++
			err = os.WriteFile(path, changed, 0o600)
		}
		return err
	})
	if err = errors.Join(err); err != nil || found != 1 {
		t.Fatalf("%d files of the registry have the plugin (%v)", found, err)
	}
	h.refuses(install.Request{Source: "oci://" + r.Addr + "/okta:1.2"}, "does not match its manifest")
}

// The test sets an environment variable, so it does not run in parallel.
func TestDockersLoginIsUsedForAnOCIRegistry(t *testing.T) {
	passwords := filepath.Join(t.TempDir(), "htpasswd") // "s3cret"
	if err := os.WriteFile(passwords, []byte("ada:$2a$04$Mrnrf7T/itxxXS5irO6djuaWP4bpybbGqoBfYWqe4mjdgiNzogTkW\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, h := testenv.StartOCIRegistry(t, "auth: {htpasswd: {realm: test, path: "+passwords+"}}\n"), newHome(t)
	repository := newOCIRepository(t, r, "okta")
	repository.Client = &auth.Client{Credential: auth.StaticCredential(r.Addr, auth.Credential{Username: "ada", Password: "s3cret"})}
	repository.push("1.2", map[string][]byte{"auth-okta": program("auth", "okta", "1.2.0")})
	source := "oci://" + r.Addr + "/okta:1.2"

	docker := t.TempDir()
	t.Setenv("DOCKER_CONFIG", docker)
	h.refuses(install.Request{Source: source}, "cannot be fetched", "log in with `docker login "+r.Addr+"`")
	login := base64.StdEncoding.EncodeToString([]byte("ada:s3cret"))
	if err := os.WriteFile(filepath.Join(docker, "config.json"), []byte(`{"auths": {"`+r.Addr+`": {"auth": "`+login+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.installs(install.Request{Source: source})
}

func TestAnOCIRegistryMayNotRedirectToPlainHTTP(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://example.com/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	h.refuses(install.Request{Source: "oci://" + strings.TrimPrefix(s.URL, "http://") + "/okta:1"}, "points to http://example.com/token, which is not allowed as a source of plugins")
}
