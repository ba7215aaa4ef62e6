package apps

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/renameio/v2"
)

// identity identifies this server together with its state. A permission is valid only on the server where it was
// granted. A copy of the home on another machine has a different identity. So does state that was restored from a
// backup, because backups omit stateSetting. The identity is created when the first permission is recorded.
type identity struct {
	mu   sync.Mutex
	name string
}

const (
	stateSetting = "permissions.state" // package backup omits it
	serverFile   = "permissions-server"
	machineFile  = "/etc/machine-id" // from systemd; missing on other systems
)

// text returns the identity, or "" if it has not been created yet.
func (i *identity) text() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.name
}

// load reads the identity, if there is one.
func (i *identity) load(ctx context.Context, home string, records Records) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.read(ctx, home, records)
}

func (i *identity) read(ctx context.Context, home string, records Records) error {
	settings, err := records.Settings(ctx, stateSetting)
	if err != nil {
		return fmt.Errorf("read the identity of the permissions' state: %w", err)
	}
	server, err := os.ReadFile(filepath.Join(home, serverFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the identity of the permissions' server: %w", err)
	}
	if i.name = ""; settings[stateSetting] == "" || len(server) == 0 {
		return nil
	}
	machine, _ := os.ReadFile(machineFile) // not every system has one
	sum := sha256.Sum256([]byte(strings.Join([]string{settings[stateSetting], string(server), string(machine)}, "\n")))
	i.name = hex.EncodeToString(sum[:8])
	return nil
}

// ensure creates the identity unless it exists.
func (i *identity) ensure(ctx context.Context, home string, records Records) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.name != "" {
		return nil
	}
	settings, err := records.Settings(ctx, stateSetting)
	if err == nil && settings[stateSetting] == "" {
		err = records.PutSetting(context.WithoutCancel(ctx), stateSetting, rand.Text())
	}
	if err != nil {
		return fmt.Errorf("record the identity of the permissions' state: %w", err)
	}
	file := filepath.Join(home, serverFile)
	if known, err := os.ReadFile(file); len(known) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		if err := renameio.WriteFile(file, []byte(rand.Text()), 0o600); err != nil {
			return fmt.Errorf("record the identity of the permissions' server: %w", err)
		}
	}
	return i.read(ctx, home, records)
}
