package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

const (
	ociScheme   = "oci://"
	maxManifest = 4 << 20 // bytes; the limit that the OCI distribution specification sets for registries
)

// fetchOCI fetches a plugin from an OCI registry. The artifact is a manifest whose layers are named files, as
// `oras push` creates, or an index with such a manifest for each platform. The digests in the manifest show
// whether the files are complete. Registry credentials come from Docker's configuration.
func fetchOCI(ctx context.Context, source, staging string) (artifact, error) {
	repository, err := openRepository(source)
	if err != nil {
		return artifact{}, err
	}
	manifest, digest, err := manifestFor(ctx, repository)
	if err != nil {
		return artifact{}, fmt.Errorf("%s cannot be fetched: %w%s", source, err, loginHint(err, repository.Reference.Registry))
	}
	files := map[string]specs.Descriptor{}
	var names []string
	for _, layer := range manifest.Layers {
		name := layer.Annotations[specs.AnnotationTitle]
		if name == "" || name != path.Base(name) || strings.HasPrefix(name, ".") {
			continue // a layer of a container image, or a file in a directory
		}
		files[name], names = layer, append(names, filepath.Join(staging, name))
	}
	chosen, err := choose(source, names)
	if err != nil {
		return artifact{}, err
	}
	a, name := artifact{source: source, path: chosen}, filepath.Base(chosen)
	if !strings.Contains(source, "@") {
		a.source += "@" + digest
	}
	small := func(name string) []byte {
		layer, ok := files[name]
		if !ok || err != nil {
			return nil
		}
		var raw []byte
		raw, err = fetchSmall(ctx, repository, layer, name)
		return raw
	}
	a.signature = small(name + ".minisig")
	sums := map[string][]byte{name + ".sha256": small(name + ".sha256"), "SHA256SUMS": small("SHA256SUMS")}
	for from, text := range sums {
		err = errors.Join(err, a.addSums(text, from))
	}
	if err != nil {
		return artifact{}, err
	}
	return a, fetchLayer(ctx, repository, files[name], a)
}

// openRepository parses oci://host/repository:tag or oci://host/repository@digest.
func openRepository(source string) (*remote.Repository, error) {
	ref, err := registry.ParseReference(strings.TrimPrefix(source, ociScheme))
	if err != nil || ref.Reference == "" {
		return nil, fmt.Errorf("%s is not an artifact reference; use oci://host/repository:tag or oci://host/repository@sha256:…", source)
	}
	repository := &remote.Repository{Reference: ref}
	repository.PlainHTTP = isLoopback((&url.URL{Host: ref.Registry}).Hostname())
	scheme := "https"
	if repository.PlainHTTP {
		scheme = "http"
	}
	client := newClient()
	client.Transport = guard{from: &url.URL{Scheme: scheme, Host: ref.Registry}, next: client.Transport}
	logins := &auth.Client{Client: client, Cache: auth.NewCache()}
	if store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil {
		logins.Credential = credentials.Credential(store)
	}
	repository.Client = logins
	return repository, nil
}

// guard blocks requests to addresses that plugins must not come from. A registry chooses the addresses of its
// files and of its login service.
type guard struct {
	from *url.URL
	next http.RoundTripper
}

// RoundTrip sends a request unless its address is blocked.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkFollowed(g.from, req.URL); err != nil {
		return nil, err
	}
	return g.next.RoundTrip(req)
}

// manifestFor returns the manifest for this platform, and the digest that the reference resolves to.
func manifestFor(ctx context.Context, repository *remote.Repository) (manifest specs.Manifest, digest string, err error) {
	found, err := repository.Resolve(ctx, repository.Reference.Reference)
	if err != nil {
		return manifest, "", err
	}
	digest = found.Digest.String()
	for range 2 { // an index, and the manifest that it names
		if found.Size > maxManifest {
			return manifest, "", fmt.Errorf("its manifest is larger than %d bytes", maxManifest)
		}
		raw, err := content.FetchAll(ctx, repository, found)
		if err != nil {
			return manifest, "", err
		}
		var index specs.Index
		if err := errors.Join(json.Unmarshal(raw, &manifest), json.Unmarshal(raw, &index)); err != nil {
			return manifest, "", fmt.Errorf("cannot read its manifest: %w", err)
		}
		if len(index.Manifests) == 0 {
			return manifest, digest, nil
		}
		if found, err = forPlatform(index.Manifests); err != nil {
			return manifest, "", err
		}
	}
	return manifest, "", errors.New("its index leads to another index")
}

// loginHint returns what to do about a registry that requires a login.
func loginHint(err error, host string) string {
	response, ok := errors.AsType[*errcode.ErrorResponse](err)
	if errors.Is(err, auth.ErrBasicCredentialNotFound) || ok && (response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden) {
		return fmt.Sprintf("; if it is not public, log in with `docker login %s`", host)
	}
	return ""
}

func forPlatform(manifests []specs.Descriptor) (specs.Descriptor, error) {
	for _, m := range manifests {
		if m.Platform != nil && m.Platform.OS == runtime.GOOS && m.Platform.Architecture == runtime.GOARCH {
			return m, nil
		}
	}
	return specs.Descriptor{}, fmt.Errorf("it has nothing for %s/%s", runtime.GOOS, runtime.GOARCH)
}

func fetchSmall(ctx context.Context, repository *remote.Repository, layer specs.Descriptor, name string) ([]byte, error) {
	if layer.Size > maxCompanion {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxCompanion)
	}
	raw, err := content.FetchAll(ctx, repository, layer)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be fetched: %w", name, err)
	}
	return raw, nil
}

// fetchLayer writes the artifact's file and compares it with the digest of its layer.
func fetchLayer(ctx context.Context, repository *remote.Repository, layer specs.Descriptor, a artifact) error {
	body, err := repository.Fetch(ctx, layer)
	if err != nil {
		return fmt.Errorf("%s cannot be fetched: %w", a.source, err)
	}
	defer func() { _ = body.Close() }()
	whole := content.NewVerifyReader(body, layer)
	if err := writeFile(a.path, io.LimitReader(whole, layer.Size), a.source); err != nil {
		return err
	}
	if err := whole.Verify(); err != nil {
		return fmt.Errorf("%s does not match its manifest: it was changed or is incomplete; try again: %w", a.source, err)
	}
	return nil
}
