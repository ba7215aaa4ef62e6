package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

// Installer installs plugins into one home.
type Installer struct {
	Home     string
	Settings config.Plugins // trusted keys, whether a signature is required, registries

	// Identify starts the executable at a path and asks it to identify itself.
	Identify func(ctx context.Context, path string) (pluginhost.Identity, error)
	// Builtin reports whether the server has a built-in adapter of this kind and name.
	Builtin func(kind plugins.Kind, name string) bool
	// Notify receives messages for the person installing the plugin.
	Notify func(line string)
}

// Request is one plugin to install.
type Request struct {
	Source         string   // a file, a directory, a URL, an oci:// reference, or a name, optionally with @version
	Name           string   // the name for the adapter; "" for the plugin's own name
	SHA256         string   // the expected hash of the source; "" for any
	Keys           []string // minisign public keys, or files with one, to trust in addition
	AllowDowngrade bool     // an older version may replace a newer one
}

// Result is a plugin that was installed.
type Result struct {
	Name   string // its file name, such as auth-okta
	Path   string
	Record pluginhost.Locked
	Before string // the version that was replaced; "" if unknown or none
}

// Install installs a plugin completely or not at all.
func (i *Installer) Install(ctx context.Context, r Request) (result Result, err error) {
	keys, err := i.keys(r.Keys)
	if err != nil {
		return Result{}, err
	}
	staging, clean, err := i.stage()
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, clean()) }()

	a, err := i.fetch(ctx, r, staging)
	if err != nil {
		return Result{}, err
	}
	if err := a.verifyChecksum(); err != nil {
		return Result{}, err
	}
	signer, err := i.verifySignature(a, keys)
	if err != nil {
		return Result{}, err
	}
	path, err := a.executable(staging)
	if err != nil {
		return Result{}, err
	}
	return i.place(ctx, r, a, path, signer)
}

// place checks the executable at path, and installs it. The executable must have been verified, because place runs it.
func (i *Installer) place(ctx context.Context, r Request, a artifact, path, signer string) (Result, error) {
	if err := os.Chmod(path, 0o755); err != nil {
		return Result{}, err
	}
	sum, err := pluginhost.HashFile(path) // before it runs
	if err != nil {
		return Result{}, err
	}
	who, err := i.Identify(ctx, path)
	if err != nil {
		return Result{}, fmt.Errorf("%s was not installed because it does not start: %w (if it loads files from its own directory, configure it by path and sha256 instead)", a.source, err)
	}
	name, err := i.nameOf(r, a, who)
	if err != nil {
		return Result{}, err
	}
	before, err := i.checkReplaced(ctx, name, who.Version, signer, r.AllowDowngrade)
	if err != nil {
		return Result{}, err
	}
	record := pluginhost.Locked{SHA256: sum, Source: a.source, Version: who.Version, Signer: signer, Time: time.Now().UTC().Truncate(time.Second)}
	to := filepath.Join(i.lock().Dir(), name)
	if err := i.replace(path, to, record); err != nil {
		return Result{}, err
	}
	return Result{Name: name, Path: to, Record: record, Before: before}, nil
}

// replace records the file at path and moves it into place. A record without its file fails closed, so it is
// written first, and removed again if the move fails.
func (i *Installer) replace(path, to string, record pluginhost.Locked) error {
	if info, err := os.Lstat(to); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; remove it first", to)
	}
	name := filepath.Base(to)
	records, err := i.lock().Read()
	if err != nil {
		return err
	}
	before, known := records[name]
	if err := i.lock().Record(name, record); err != nil {
		return fmt.Errorf("cannot record the plugin: %w", err)
	}
	err = os.Rename(path, to)
	switch {
	case err == nil:
		return nil
	case known:
		return errors.Join(err, i.lock().Record(name, before))
	}
	return errors.Join(err, i.lock().Forget(name))
}

var (
	adapterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	lockedName  = regexp.MustCompile(`^([a-z]+)-([a-z0-9-]+)$`)
)

// nameOf decides the name of the plugin's file: the kind it serves, and the adapter's name.
func (i *Installer) nameOf(r Request, a artifact, who pluginhost.Identity) (string, error) {
	adapter := cmp.Or(r.Name, a.adapter, who.Name)
	if !adapterName.MatchString(adapter) {
		return "", fmt.Errorf("the plugin's name is %q, which is not a valid adapter name (a-z, 0-9 and -); set one with --name", adapter)
	}
	if a.kind != "" && a.kind != who.Kind {
		return "", fmt.Errorf("%s is listed as a plugin of kind %s but is of kind %s; report it to the maintainer of the list", a.source, a.kind, who.Kind)
	}
	if a.version != "" && !sameVersion(a.version, who.Version) {
		return "", fmt.Errorf("%s is listed as version %s but reports version %s; report it to the maintainer of the list", a.source, a.version, who.Version)
	}
	if i.Builtin(who.Kind, adapter) {
		return "", fmt.Errorf("%q is the name of a built-in %s adapter, which would be used instead; choose another name with --name", adapter, who.Kind)
	}
	return fmt.Sprintf("%s-%s", who.Kind, adapter), nil
}

func (i *Installer) lock() pluginhost.LockFile { return pluginhost.LockFile{Home: i.Home} }

// staleAfter is the age at which a staging directory is considered left over from an installation that was killed.
const staleAfter = time.Hour

// stage creates a directory for the files of one installation, on the same file system as the plugins. clean
// removes it, along with any directories created for it that are still empty.
func (i *Installer) stage() (dir string, clean func() error, err error) {
	var created []string
	for _, folder := range []string{i.Home, i.lock().Dir()} {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			created = append([]string{folder}, created...)
		}
	}
	if err := os.MkdirAll(i.lock().Dir(), 0o700); err != nil {
		return "", nil, fmt.Errorf("cannot create the plugins directory: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(i.lock().Dir(), ".install-*"))
	if err != nil {
		return "", nil, err
	}
	for _, path := range old {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(path)
		}
	}
	if dir, err = os.MkdirTemp(i.lock().Dir(), ".install-*"); err != nil {
		return "", nil, err
	}
	return dir, func() error {
		err := os.RemoveAll(dir)
		for _, folder := range created {
			_ = os.Remove(folder) // fails if something was installed
		}
		return err
	}, nil
}

// Remove removes a plugin from the home: its file, its record and, if copies is set, the copies that a server
// starts it from.
func (i *Installer) Remove(name string, copies bool) error {
	records, err := i.lock().Read()
	if err != nil {
		return err
	}
	files, err := i.lock().Files()
	if err != nil {
		return err
	}
	if _, known := records[name]; !known && !slices.Contains(files, name) || !lockedName.MatchString(name) {
		return fmt.Errorf("there is no plugin %q in %s; `ropewalk plugin verify` lists the installed ones", name, i.lock().Dir())
	}
	if err := os.Remove(filepath.Join(i.lock().Dir(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if copies {
		if err := i.lock().RemoveCopies(name); err != nil {
			return err
		}
	}
	return i.lock().Forget(name)
}
