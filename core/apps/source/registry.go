package source

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
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// maxBundle is the maximum size in bytes of a bundle whose size the registry does not specify.
const maxBundle = 512 << 20

// NamedRegistry is a registry with its name in the configuration.
type NamedRegistry struct {
	Name     string
	Registry registry.Registry
}

// fromRegistry looks up a bundle by name in the registries, in the configured order, and uses the first match.
// Registries that could not be reached appear in the error only if no other registry has the bundle.
func (r *Resolver) fromRegistry(ctx context.Context, o Order) (*Candidate, error) {
	configured := r.Registries()
	registries := o.usableRegistries(configured)
	switch {
	case len(registries) == 0 && len(configured) > 0:
		return nil, core.Errorf(core.CodeForbidden, "install.registries does not let you install from any of the configured registries")
	case len(registries) == 0:
		return nil, errors.New("no registry is configured to look for a bundle by name: add one to the configuration, such as `registries: [{name: official, adapter: mcp-registry}]`, or install a package (npm, pypi), a path or a url")
	}
	ref := registry.Ref{Name: o.Source.Ref, Version: o.Version, OS: runtime.GOOS, Arch: runtime.GOARCH}
	var unreachable []error
	var reasons []string
	for _, from := range registries {
		pkg, err := from.Registry.Resolve(ctx, ref)
		switch {
		case err == nil:
			o.Source.Registry = from.Name
			return r.fromPackage(ctx, o, from, pkg)
		case errors.Is(err, plugins.ErrNotFound):
			reason := strings.TrimPrefix(err.Error(), plugins.ErrNotFound.Error()+": ")
			reasons = append(reasons, fmt.Sprintf("%s: %.300s", from.Name, strings.TrimSpace(reason)))
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			r.Logger.Warn("registry could not be reached", "registry", from.Name, "bundle", ref.Name, "error", err)
			unreachable = append(unreachable, fmt.Errorf("registry %s could not be reached: %w", from.Name, err))
		}
	}
	wanted := ref.Name
	if ref.Version != "" {
		wanted = "version " + ref.Version + " of " + ref.Name
	}
	which := "no reachable registry has"
	if len(unreachable) == 0 {
		which = "no configured registry (" + strings.Join(names(registries), ", ") + ") has"
	}
	missing := fmt.Errorf("%s %s for %s/%s", which, wanted, ref.OS, ref.Arch)
	if len(reasons) > 0 {
		missing = fmt.Errorf("%w (%s)", missing, strings.Join(reasons, "; "))
	}
	return nil, errors.Join(append([]error{missing}, unreachable...)...)
}

func names(registries []NamedRegistry) []string {
	all := make([]string, len(registries))
	for i, r := range registries {
		all[i] = r.Name
	}
	return all
}

func (r *Resolver) fromPackage(ctx context.Context, o Order, from NamedRegistry, pkg registry.Package) (*Candidate, error) {
	var c *Candidate
	var err error
	switch pkg.Kind {
	case registry.KindMCPB:
		if err := checkVariables(pkg, o.Env); err != nil {
			return nil, err
		}
		o.Env = withDefaults(pkg, o.Env)
		o.report("downloading", pkg.Name+" "+pkg.Version)
		c, err = r.fromArchive(ctx, o, pkg.SHA256, func(dir string) (string, error) { return fetch(ctx, from, pkg, dir) })
	case registry.KindNPM:
		c, err = r.fromNPM(o, pkg)
	case registry.KindPyPI:
		c, err = r.fromPyPI(o, pkg)
	case registry.KindRemote:
		c, err = fromRemotePackage(o, pkg)
	default:
		err = fmt.Errorf("registry %s lists %s as a package of kind %q, which this server cannot install", from.Name, pkg.Name, pkg.Kind)
	}
	if err != nil {
		return nil, err
	}
	c.Record.TrustScore = min(max(pkg.TrustScore, 0), 100)
	if c.Record.Version == "" {
		c.Record.Version = pkg.Version
	}
	return c, nil
}

// fetch downloads a bundle's file from a registry. It rejects a file whose size or SHA-256 is not what the registry
// specifies.
func fetch(ctx context.Context, r NamedRegistry, pkg registry.Package, dir string) (path string, err error) {
	if len(pkg.SHA256) != hex.EncodedLen(sha256.Size) {
		return "", fmt.Errorf("registry %s does not specify a sha256 for %s %s, so its file cannot be trusted", r.Name, pkg.Name, pkg.Version)
	}
	if pkg.Size > maxBundle {
		return "", fmt.Errorf("the file for %s %s is %d bytes long according to registry %s; the limit for a bundle is %d", pkg.Name, pkg.Version, pkg.Size, r.Name, int64(maxBundle))
	}
	body, err := r.Registry.Fetch(ctx, pkg)
	if err != nil {
		return "", fmt.Errorf("registry %s did not send %s %s: %w", r.Name, pkg.Name, pkg.Version, err)
	}
	defer func() { _ = body.Close() }()
	path = filepath.Join(dir, "bundle.mcpb")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	limit := int64(maxBundle)
	if pkg.Size > 0 {
		limit = pkg.Size
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("registry %s did not finish sending %s %s: %w", r.Name, pkg.Name, pkg.Version, err)
	case n > limit, pkg.Size > 0 && n != pkg.Size:
		return "", fmt.Errorf("the file for %s %s was rejected: its size is not the %d bytes that registry %s specifies", pkg.Name, pkg.Version, limit, r.Name)
	case hex.EncodeToString(hash.Sum(nil)) != pkg.SHA256:
		return "", fmt.Errorf("the file for %s %s was rejected: its sha256 is not the one that registry %s specifies", pkg.Name, pkg.Version, r.Name)
	}
	return path, nil
}

// fromRemotePackage describes a remote server that a registry lists. {name} in its URL and headers is a variable whose
// value comes from env.
func fromRemotePackage(o Order, pkg registry.Package) (*Candidate, error) {
	if err := checkVariables(pkg, o.Env); err != nil {
		return nil, err
	}
	address, _ := pkg.Fill(pkg.Remote.URL, values(o.Env)) // checkVariables has made sure that all values are present
	request := Request{URL: address, AllowPrivate: o.AllowPrivate, Transport: &Transport{Type: pkg.Remote.Transport, Headers: map[string]core.Secret{}}}
	for name, template := range pkg.Remote.Headers {
		if value, ok := pkg.Fill(template, values(o.Env)); ok {
			request.Transport.Headers[name] = core.Secret(value)
		}
	}
	remote, err := request.remote()
	if err != nil {
		return nil, fmt.Errorf("the registry's entry for %s cannot be used: %s", pkg.Name, core.TextOf(err))
	}
	o.Remote = remote
	if o.ServerName == "" {
		o.ServerName = pkg.Name
	}
	c, err := fromURL(o)
	if err == nil {
		c.Record.BundleName = publicAddress(o, pkg)
	}
	return c, err
}

// publicAddress returns the URL of a remote server that a registry lists, with secret values replaced by "redacted".
func publicAddress(o Order, pkg registry.Package) string {
	address, _ := pkg.Fill(pkg.Remote.URL, func(v registry.Variable) (string, bool) {
		if v.Secret {
			return "redacted", true
		}
		return values(o.Env)(v)
	})
	return address
}
