package statekey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

const (
	maxText        = 64 << 10 // bytes of a key file, or of the output of a command
	commandTimeout = 30 * time.Second
)

// SourceOf returns where the keys for the state come from: the configured source, or else the file that Create
// made.
func SourceOf(c *config.Config) config.StorageKeys {
	from := c.Storage.Keys
	if from.Set() || c.Storage.URL != "" {
		return from
	}
	if _, err := os.Stat(DefaultFile(c.Home)); err == nil {
		from.File = DefaultFile(c.Home)
	}
	return from
}

// DefaultFile returns the path of the key file that Create creates for a home: <home>.state-key, so that a copy of the
// home does not contain the key. If that is a directory, the file is in it: a service may be unable to write next to
// its home.
func DefaultFile(home string) string {
	path := filepath.Clean(home) + ".state-key"
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, "key")
	}
	return path
}

// Create creates the first key for a home, in DefaultFile, and returns it with the path. If the file already exists, it
// returns the keys in it. The error includes what to do.
func Create(home string) (keys *seal.Keys, path string, err error) {
	path = DefaultFile(home)
	keys, err = ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, path, err
	}
	if keys, err = seal.Parse(seal.NewKey()); err == nil {
		err = WriteFile(path, keys)
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("the key file %s cannot be created: %w; put the output of `ropewalk encryption new-key` in the variable %s in the server's environment, and restart the server",
			path, failed.Err, config.EnvStorageKey)
	}
	return keys, path, err
}

// Load returns the keys for the state, or nil if there are none.
func Load(ctx context.Context, c *config.Config) (*seal.Keys, error) {
	from := SourceOf(c)
	switch {
	case from.File != "":
		return ReadFile(from.File)
	case len(from.Command) > 0:
		text, err := run(ctx, from.Command, c.Environment)
		if err != nil {
			return nil, fmt.Errorf("storage.keyCommand: %w", err)
		}
		return parsed("the output of storage.keyCommand", text)
	case from.Text != "":
		return parsed("storage.key ("+config.EnvStorageKey+")", from.Text)
	}
	return nil, nil
}

func parsed(what string, text core.Secret) (*seal.Keys, error) {
	keys, err := seal.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return keys, nil
}

// ReadFile reads a key file. It rejects a file that other users may write to.
func ReadFile(path string) (*seal.Keys, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("storage.keyFile: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("storage.keyFile: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("storage.keyFile: %s is writable by other users (mode %o); run chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return nil, fmt.Errorf("storage.keyFile: %w", err)
	}
	return parsed("storage.keyFile: "+path, core.Secret(text))
}

// run returns the output of a command. The command gets the server's environment.
func run(ctx context.Context, command []string, env config.Environment) (core.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	path, err := env.LookPath(command[0])
	if err != nil {
		return "", err
	}
	p, err := process.Start(process.Command{Path: path, Args: command[1:], Env: pairs(env)})
	if err != nil {
		return "", err
	}
	_ = p.Stdin().Close()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	text, readErr := io.ReadAll(io.LimitReader(p.Stdout(), maxText))
	if len(text) == maxText {
		p.Kill()
	}
	<-p.Done()
	switch {
	case len(text) == maxText:
		return "", fmt.Errorf("%s printed more than %d bytes, which cannot be keys", command[0], maxText)
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not exit within %s", command[0], commandTimeout)
	case p.Err() != nil:
		return "", fmt.Errorf("%s %w; run it by hand to see what it prints on standard error", command[0], p.Err())
	}
	return core.Secret(text), readErr
}

func pairs(env config.Environment) []string {
	all := make([]string, 0, len(env))
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// missingFile is the error for a key file that does not exist. It matches fs.ErrNotExist.
type missingFile string

func (f missingFile) Error() string {
	return "storage.keyFile: " + string(f) + " does not exist; `ropewalk encryption rotate` creates it; " +
		"if apps are already encrypted, restore the old file instead"
}

func (f missingFile) Is(target error) bool { return target == fs.ErrNotExist }
