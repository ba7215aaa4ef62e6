package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/core/statekey"
)

// checkEncryption reports whether the secrets of apps are encrypted in the database, and reads the keys.
func (e *examination) checkEncryption(ctx context.Context) {
	const check = "encryption"
	from := statekey.SourceOf(e.config)
	switch {
	case from.Set():
	case e.running != nil && e.running.Encrypts:
		e.add(check, ok, "the running server encrypts apps' secrets, with a key that is not configured here", "")
		return
	default:
		e.add(check, warning, "apps' secrets are in plain text in the database and in backups, because no key is configured"+e.unlinkable(),
			"set storage.keyFile to a file outside the home, and create it with `ropewalk encryption rotate`; if the server "+
				"cannot read such a file, put the output of `ropewalk encryption new-key` in ROPEWALK_STORAGE_KEY (docs/security.md)")
		return
	}
	keys, err := statekey.Load(ctx, e.config)
	if err != nil {
		e.add(check, failed, err.Error(), "the server does not start without the key: restore it, or correct storage.keyFile, storage.keyCommand or "+
			"ROPEWALK_STORAGE_KEY")
		return
	}
	if from.File != "" {
		if relative, err := filepath.Rel(e.config.Home, from.File); err == nil && !strings.HasPrefix(relative, "..") {
			e.add(check, warning, fmt.Sprintf("the key file %s is in the home, so anyone who copies the home has the key", from.File), "move it elsewhere and set storage.keyFile to it")
			return
		}
		if info, err := os.Stat(from.File); err == nil && info.Mode().Perm()&fs.FileMode(0o004) != 0 {
			e.add(check, warning, "the key file "+from.File+" can be read by every user on this machine", "chmod o-r "+from.File)
			return
		}
	}
	e.add(check, ok, "apps' secrets are encrypted with the key "+keys.ID(), "")
}

// unlinkable returns why nobody can link an account for an app while no key is configured, or "" if the first
// account creates a key.
func (e *examination) unlinkable() string {
	if e.config.Storage.URL != "" {
		return ". Accounts cannot be linked, because servers that share a database do not create a key"
	}
	file := statekey.DefaultFile(e.config.Home)
	if _, err := os.Stat(filepath.Dir(file)); err != nil { // the first start creates it, or fails
		return ""
	}
	if err := writable(filepath.Dir(file)); err != nil {
		return fmt.Sprintf(". Accounts cannot be linked, because the key file %s cannot be created (%v)", file, err)
	}
	return ""
}
