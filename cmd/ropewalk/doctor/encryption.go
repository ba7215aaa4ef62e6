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
	if !from.Set() {
		e.add(check, warning, "the secrets of apps are in plain text in the database and in backups: no key is configured",
			"set storage.keyFile to a file outside of the home, and create it with `ropewalk encryption rotate` (docs/security.md)")
		return
	}
	keys, err := statekey.Load(ctx, e.config)
	if err != nil {
		e.add(check, failed, err.Error(), "without the key the server does not start: put it back, or correct storage.keyFile, storage.keyCommand or "+
			"ROPEWALK_STORAGE_KEY")
		return
	}
	if from.File != "" {
		if relative, err := filepath.Rel(e.config.Home, from.File); err == nil && !strings.HasPrefix(relative, "..") {
			e.add(check, warning, fmt.Sprintf("the key file %s is in the home: anyone who copies the home has the key", from.File), "move it elsewhere and set storage.keyFile to it")
			return
		}
		if info, err := os.Stat(from.File); err == nil && info.Mode().Perm()&fs.FileMode(0o004) != 0 {
			e.add(check, warning, "the key file "+from.File+" can be read by every user of this machine", "chmod o-r "+from.File)
			return
		}
	}
	e.add(check, ok, "the secrets of apps are encrypted with the key "+keys.ID(), "")
}
