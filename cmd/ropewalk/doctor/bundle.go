package doctor

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

// writeBundle writes the report and everything else that helps to interpret it. It contains no secrets:
// settings are redacted, and logs and conversations are left out.
func (e *examination) writeBundle(ctx context.Context, path string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	archive := zip.NewWriter(file)
	parts := map[string]any{
		"report.json":  e.Report,
		"machine.json": map[string]any{"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(), "go": runtime.Version()},
	}
	if e.config != nil {
		parts["settings.json"] = e.config.Effective()
		parts["environment.json"] = names(e.config.Environment)
	}
	if list, err := control.Dial(e.home).Plugins(ctx); err == nil {
		parts["plugins.json"] = list
	}
	if list, err := control.Dial(e.home).Apps(ctx); err == nil {
		parts["apps.json"] = list
	}
	for name, part := range parts {
		w, err := archive.Create(name)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(part); err != nil {
			return err
		}
	}
	return archive.Close()
}

// names returns the names of environment variables, because their values may be secret.
func names(env config.Environment) []string {
	var all []string
	for name := range env {
		all = append(all, name)
	}
	return all
}
