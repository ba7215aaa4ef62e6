package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

// cataloguePlaceholder stands for the directory with the generated catalogue, in a registry's settings.
const cataloguePlaceholder = "${catalogue}"

// prepareRegistry reads the facts about the bundles, and creates the directory that the settings refer to.
func (t *trial) prepareRegistry() (err error) {
	if t.bundlesFile, err = givenOrDefault(t.plugin.Path, t.bundlesFile, "bundles.json"); err != nil {
		return err
	}
	wanted := bytes.Contains(t.settings.JSON(), []byte(cataloguePlaceholder))
	if !wanted && t.publish == "" {
		return nil
	}
	t.catalogue = filepath.Join(t.home, "catalogue")
	if err := os.Mkdir(t.catalogue, 0o700); err != nil || !wanted {
		return err
	}
	quoted, err := json.Marshal(t.catalogue)
	if err != nil {
		return err
	}
	t.settings = config.NewSettings(bytes.ReplaceAll(t.settings.JSON(), []byte(cataloguePlaceholder), bytes.Trim(quoted, `"`)))
	return nil
}

func (t *trial) runRegistry(ctx context.Context, r *report) error {
	settings := t.settings.JSON()
	subject := registrytest.Subject{Fixed: t.backend == noBackend || !t.takesSettings(), Platforms: registrytest.Platforms(t.platforms), Restart: t.restart}
	if t.hasBackend() {
		front, err := registrytest.NewFront(t.backend)
		if err != nil {
			return err
		}
		defer front.Close()
		settings = bytes.ReplaceAll(settings, []byte(backendPlaceholder), []byte(front.Address()))
		subject.Backend = front
	}
	if t.catalogue != "" {
		subject.Publish = func(ctx context.Context, c registrytest.Catalogue) error { return t.publishCatalogue(ctx, c) }
		if subject.Backend == nil && t.publish == "" && t.backend == "" {
			subject.Backend = folder(t.catalogue)
		}
	}
	if t.names != "" {
		subject.Name = func(scope, last string) string {
			return strings.NewReplacer("{scope}", scope, "{name}", last).Replace(t.names)
		}
	}
	if t.bundlesFile != "" {
		raw, err := os.ReadFile(t.bundlesFile)
		if err != nil {
			return err
		}
		if subject.Known, err = registrytest.ParseBundles(raw); err != nil {
			return err
		}
	}
	p := t.with(settings)
	reg, err := t.host.Registry(ctx, p)
	if err != nil {
		return err
	}
	defer t.close(reg)
	subject.Registry = reg
	judge(ctx, r, registrytest.Properties(), t.kit, subject)
	return nil
}

// publishCatalogue writes a catalogue to its directory, and runs the command that passes it to the backend.
func (t *trial) publishCatalogue(ctx context.Context, c registrytest.Catalogue) error {
	if err := c.Write(t.catalogue); err != nil || t.publish == "" {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", t.publish)
	cmd.Env = append(os.Environ(), "CATALOGUE="+t.catalogue)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("--publish: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// folder is the backend of a registry that reads the catalogue's directory directly. To make it unavailable,
// the directory is moved away.
type folder string

func (f folder) Stop(context.Context) error  { return os.Rename(string(f), string(f)+".away") }
func (f folder) Start(context.Context) error { return os.Rename(string(f)+".away", string(f)) }
func (folder) Stall(context.Context) error   { return errors.ErrUnsupported }
