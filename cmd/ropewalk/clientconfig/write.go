package clientconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// write adds the server to the client's configuration, or replaces its entry. Everything else in the file stays
// unchanged.
func (t client) write(cmd *cobra.Command, e endpoint) error {
	if t.file == nil {
		return cli.Usage(fmt.Errorf("%s has no configuration file; run the command without --write and follow its steps", t.title))
	}
	path, err := t.file()
	if err != nil {
		return err
	}
	document, err := readObject(path)
	if err != nil {
		return err
	}
	key, entry := t.entry(e)
	servers := map[string]json.RawMessage{}
	if raw, ok := document[key]; ok {
		if err := json.Unmarshal(raw, &servers); err != nil {
			return fmt.Errorf("%s: %q is not an object; nothing was changed", path, key)
		}
	}
	if servers[e.Name], err = json.Marshal(entry); err != nil {
		return err
	}
	if document[key], err = json.Marshal(servers); err != nil {
		return err
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return err
	}
	cmd.PrintErrf("%s: server %q written.\n", path, e.Name)
	return nil
}

// readObject reads a JSON object; a missing file is an empty one. A file with comments is rejected rather than
// rewritten without them.
func readObject(path string) (map[string]json.RawMessage, error) {
	document := map[string]json.RawMessage{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return document, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s is not plain JSON (%w); add the server by hand: run the command without --write", path, err)
	}
	return document, nil
}
