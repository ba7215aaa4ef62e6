package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"
)

// Context is a named server and what a caller needs to use it.
type Context struct {
	Server    string `yaml:"server" json:"server"`
	Workspace string `yaml:"workspace,omitempty" json:"workspace,omitempty"`
	Key       string `yaml:"key,omitempty" json:"-"`
	Login     string `yaml:"login,omitempty" json:"-"` // a login's token, or its place in the keyring; see KeepLogin and Token
}

// Contexts is the file of named contexts.
type Contexts struct {
	Current  string             `yaml:"current,omitempty" json:"current"`
	Contexts map[string]Context `yaml:"contexts" json:"contexts"`
}

// contextsPath returns <user configuration>/ropewalk/contexts.yaml, or the file named by ROPEWALK_CONTEXTS.
func contextsPath() (string, error) {
	if path := os.Getenv("ROPEWALK_CONTEXTS"); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if dir == "" {
		return "", err
	}
	return filepath.Join(dir, "ropewalk", "contexts.yaml"), nil
}

// LoadContexts reads the named contexts. If there is no file, there are none.
func LoadContexts() (Contexts, error) {
	all := Contexts{Contexts: map[string]Context{}}
	path, _ := contextsPath()
	if path == "" { // no home directory: a service account has no contexts
		return all, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return all, fmt.Errorf("%s: %w", path, err)
	}
	if all.Contexts == nil {
		all.Contexts = map[string]Context{}
	}
	return all, nil
}

// Save writes the contexts, readable only by their owner, because they may contain keys.
func (c Contexts) Save() error {
	path, err := contextsPath()
	if err == nil {
		err = c.write(path)
	}
	if err != nil {
		return fmt.Errorf("cannot store the context: %w; set ROPEWALK_CONTEXTS to use another file", err)
	}
	return nil
}

func (c Contexts) write(path string) error {
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next := path + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// ReadKey reads an API key from the terminal without echo, or from standard input.
func ReadKey(cmd *cobra.Command) (string, error) {
	if IsTerminal(cmd.InOrStdin()) {
		cmd.PrintErr("API key: ")
		text, err := term.ReadPassword(int(os.Stdin.Fd()))
		cmd.PrintErrln()
		return strings.TrimSpace(string(text)), err
	}
	scan := bufio.NewScanner(cmd.InOrStdin())
	if !scan.Scan() {
		return "", errors.New("there is no key on standard input")
	}
	return strings.TrimSpace(scan.Text()), scan.Err()
}
