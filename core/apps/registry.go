package apps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// largestBundle bounds, in bytes, what is fetched when the registry does not say how large it is.
const largestBundle = 512 << 20

// fromRegistry asks the registries for a bundle by name, in configured order: the first that has
// it gives it. One that cannot be asked is passed over, and named when no other has it.
func (y *Manager) fromRegistry(ctx context.Context, o order) (*arrival, error) {
	registries := y.setup.Load().registries
	if len(registries) == 0 {
		return nil, errors.New("no registry is configured to look for a bundle by name: add one to registries, or install by path or url")
	}
	ref := registry.Ref{Name: o.source.Ref, Version: o.version, OS: runtime.GOOS, Arch: runtime.GOARCH}
	var away []error
	for _, r := range registries {
		pkg, err := r.Registry.Resolve(ctx, ref)
		switch {
		case err == nil:
			o.source.Registry = r.Name
			return y.fromPackage(ctx, o, r, pkg)
		case errors.Is(err, plugins.ErrNotFound):
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			y.log.Warn("A registry could not be asked", "registry", r.Name, "bundle", ref.Name, "error", err)
			away = append(away, fmt.Errorf("registry %s could not be asked: %w", r.Name, err))
		}
	}
	what := ref.Name
	if ref.Version != "" {
		what += " in version " + ref.Version
	}
	return nil, errors.Join(append([]error{fmt.Errorf("no registry that answered has %s for %s/%s", what, ref.OS, ref.Arch)}, away...)...)
}

func (y *Manager) fromPackage(ctx context.Context, o order, r NamedRegistry, pkg registry.Package) (*arrival, error) {
	var found *arrival
	var err error
	switch pkg.Kind {
	case registry.KindMCPB:
		found, err = y.fromArchive(ctx, o, pkg.SHA256, func(dir string) (string, error) { return fetch(ctx, r, pkg, dir) })
	case registry.KindNPM:
		found, err = y.fromNPM(o, pkg)
	case registry.KindPyPI:
		found, err = y.fromPyPI(o, pkg)
	case registry.KindRemote:
		found, err = fromRemotePackage(o, pkg)
	default:
		err = fmt.Errorf("registry %s gives %s as a package of kind %q, which this server cannot install", r.Name, pkg.Name, pkg.Kind)
	}
	if err != nil {
		return nil, err
	}
	found.record.TrustScore = min(max(pkg.TrustScore, 0), 100)
	if found.record.Version == "" {
		found.record.Version = pkg.Version
	}
	return found, nil
}

// fetch gets a bundle's file from a registry. What does not have the size and the sha256 that
// the registry itself gave is refused.
func fetch(ctx context.Context, r NamedRegistry, pkg registry.Package, dir string) (path string, err error) {
	if len(pkg.SHA256) != hex.EncodedLen(sha256.Size) {
		return "", fmt.Errorf("registry %s gives no sha256 for %s %s, so its file cannot be trusted", r.Name, pkg.Name, pkg.Version)
	}
	body, err := r.Registry.Fetch(ctx, pkg)
	if err != nil {
		return "", fmt.Errorf("registry %s did not give %s %s: %w", r.Name, pkg.Name, pkg.Version, err)
	}
	defer func() { _ = body.Close() }()
	path = filepath.Join(dir, "bundle.mcpb")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	limit := int64(largestBundle)
	if pkg.Size > 0 {
		limit = pkg.Size
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("registry %s broke off while giving %s %s: %w", r.Name, pkg.Name, pkg.Version, err)
	case n > limit, pkg.Size > 0 && n != pkg.Size:
		return "", fmt.Errorf("the file of %s %s is not %d bytes long, as registry %s said: refused", pkg.Name, pkg.Version, limit, r.Name)
	case hex.EncodeToString(hash.Sum(nil)) != pkg.SHA256:
		return "", fmt.Errorf("the file of %s %s does not have the sha256 that registry %s gave: refused", pkg.Name, pkg.Version, r.Name)
	}
	return path, nil
}

// fromRemotePackage takes a remote server that a registry knows: {name} in its URL and headers
// stands for a variable, whose value comes from env.
func fromRemotePackage(o order, pkg registry.Package) (*arrival, error) {
	if err := checkVariables(pkg, o.env); err != nil {
		return nil, err
	}
	address, _ := pkg.Fill(pkg.Remote.URL, values(o.env)) // checkVariables leaves no gap here
	request := InstallRequest{URL: address, AllowPrivate: o.allowPrivate, Transport: &Transport{Type: pkg.Remote.Transport, Headers: map[string]core.Secret{}}}
	for name, template := range pkg.Remote.Headers {
		if value, ok := pkg.Fill(template, values(o.env)); ok {
			request.Transport.Headers[name] = core.Secret(value)
		}
	}
	remote, err := request.remote()
	if err != nil {
		return nil, fmt.Errorf("the registry's entry for %s is not usable: %s", pkg.Name, message(err))
	}
	o.remote = remote
	if o.serverName == "" {
		o.serverName = pkg.Name
	}
	return fromURL(o)
}
