package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// pinAccount separates the version from the account in the version column.
const pinAccount = "\x1f"

// These limit the versions of an app that keep their pins. The uninstalled apps of a workspace share one such limit.
// The newest version always keeps its pins: package trust limits them.
const (
	pinVersions     = 20
	pinVersionBytes = 128 << 20 // of definitions, including those that were replaced
)

// pinVersion returns the version and the account of a key as they are stored.
func pinVersion(k core.PinKey) string {
	version := strings.ReplaceAll(k.Version, pinAccount, "")
	if k.Account != "" {
		version += pinAccount + k.Account
	}
	return version
}

// Pins returns the pins of one version of an app, keyed by tool name.
func (s *Store) Pins(ctx context.Context, k core.PinKey) (map[string]core.Pin, error) {
	found := map[string]core.Pin{}
	err := s.db.Select(ctx, "reading the pins of app "+k.App, `
		SELECT tool, definition, offered, renamed_from, refused, changed_at FROM pins
		WHERE workspace = $1 AND app = $2 AND bundle = $3 AND version = $4`, []any{k.Workspace, k.App, k.Bundle, pinVersion(k)},
		func(row database.Row) error {
			var p core.Pin
			var refused, changed int64
			err := row.Scan(&p.Tool, &p.Definition, &p.Offered, &p.RenamedFrom, &refused, &changed)
			p.Refused, p.ChangedAt = refused != 0, database.FromMillis(changed)
			found[p.Tool] = p
			return err
		})
	return found, err
}

// AddPins pins tools that have no pin. A tool that another server has pinned in the meantime keeps that pin.
func (s *Store) AddPins(ctx context.Context, k core.PinKey, definitions map[string]string) error {
	return s.db.Update(ctx, "pinning the tools of app "+k.App, func(ctx context.Context, tx *sql.Tx) error {
		rows := database.Insert{
			Into: `INSERT INTO pins (workspace, app, bundle, version, tool, definition)`,
			Then: `ON CONFLICT (workspace, app, bundle, version, tool) DO NOTHING`,
		}
		size := 0
		for tool, definition := range definitions {
			rows.Add(k.Workspace, k.App, k.Bundle, pinVersion(k), tool, definition)
			size += len(definition)
		}
		if err := errors.Join(rows.Exec(ctx, tx), recordPinVersion(ctx, tx, k, size)); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangePins, k.Workspace, k.App)
	})
}

// OfferPin records that an app offers a definition that differs from the pinned one, or a tool without a pin. It
// reports whether this change is new. If several servers see it, it returns true to only one of them.
func (s *Store) OfferPin(ctx context.Context, k core.PinKey, p core.Pin) (first bool, err error) {
	err = s.db.Update(ctx, "recording a change to app "+k.App, func(ctx context.Context, tx *sql.Tx) error {
		first = false
		first, err = database.Changed(ctx, tx, `
			INSERT INTO pins (workspace, app, bundle, version, tool, definition, offered, renamed_from, changed_at)
			VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8)
			ON CONFLICT (workspace, app, bundle, version, tool) DO UPDATE
			SET offered = excluded.offered, renamed_from = excluded.renamed_from, refused = 0, changed_at = excluded.changed_at
			WHERE pins.offered <> excluded.offered AND pins.definition <> excluded.offered`,
			k.Workspace, k.App, k.Bundle, pinVersion(k), p.Tool, p.Offered, p.RenamedFrom, database.Millis(time.Now()))
		if err == nil && first {
			err = recordPinVersion(ctx, tx, k, len(p.Offered))
		}
		return err
	})
	return first, err
}

// recordPinVersion records that definitions of a version were stored, and deletes the pins of versions beyond the limits:
// a remote app may state another version each time.
func recordPinVersion(ctx context.Context, tx *sql.Tx, k core.PinKey, size int) error {
	newest := core.PinKey{Workspace: k.Workspace, App: k.App, Bundle: k.Bundle, Version: pinVersion(core.PinKey{Version: k.Version})}
	if _, err := tx.ExecContext(ctx, `
		INSERT INTO pin_versions (workspace, app, bundle, version, bytes, added_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (workspace, app, bundle, version) DO UPDATE SET bytes = pin_versions.bytes + excluded.bytes, added_at = excluded.added_at`,
		newest.Workspace, newest.App, newest.Bundle, newest.Version, size, database.Millis(time.Now())); err != nil {
		return err
	}
	counts, sizes := map[string]int{}, map[string]int{} // by app; uninstalled ones are ""
	old, err := database.Collect(ctx, tx, `
		SELECT v.app, v.bundle, v.version, v.bytes, v.added_at, CASE WHEN i.name IS NULL THEN '' ELSE v.app END
		FROM pin_versions v LEFT JOIN installations i ON i.workspace = v.workspace AND i.name = v.app
		WHERE v.workspace = $1 ORDER BY v.added_at DESC, v.app, v.bundle, v.version`, []any{k.Workspace},
		func(row database.Row) (one core.PinKey, err error) {
			var bytes int
			var added int64
			var of string
			one.Workspace = k.Workspace
			err = row.Scan(&one.App, &one.Bundle, &one.Version, &bytes, &added, &of)
			counts[of], sizes[of] = counts[of]+1, sizes[of]+bytes
			// Nothing is known about the order of versions from before there was a limit (added_at 0): one of them is in use.
			few := counts[of] <= pinVersions || added == 0 && of != ""
			if one == newest || counts[of] == 1 || few && sizes[of] <= pinVersionBytes {
				one = core.PinKey{}
			}
			return one, err
		})
	for _, one := range old {
		if err == nil && one.App != "" {
			err = deletePinVersion(ctx, tx, one)
		}
	}
	return err
}

func deletePinVersion(ctx context.Context, tx *sql.Tx, k core.PinKey) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM pin_versions WHERE workspace = $1 AND app = $2 AND bundle = $3 AND version = $4`,
		k.Workspace, k.App, k.Bundle, k.Version); err != nil {
		return err
	}
	accounts := k.Version + pinAccount
	_, err := tx.ExecContext(ctx, `DELETE FROM pins WHERE workspace = $1 AND app = $2 AND bundle = $3 AND (version = $4 OR SUBSTR(version, 1, $5) = $6)`,
		k.Workspace, k.App, k.Bundle, k.Version, utf8.RuneCountInString(accounts), accounts)
	return err
}

// DecidePin accepts or refuses the change to a tool. The error is core.CodeNotFound if offered is no longer what
// the app offers.
func (s *Store) DecidePin(ctx context.Context, k core.PinKey, tool, offered string, accept bool) error {
	change := `SET refused = 1`
	if accept {
		change = `SET definition = offered, offered = '', renamed_from = '', refused = 0`
	}
	return s.db.Update(ctx, "deciding on a change to app "+k.App, func(ctx context.Context, tx *sql.Tx) error {
		if err := database.Change(ctx, tx, core.Errorf(core.CodeNotFound, "the tool %.100q no longer has this change", tool), `UPDATE pins `+change+`
			WHERE workspace = $1 AND app = $2 AND bundle = $3 AND version = $4 AND tool = $5 AND offered = $6`,
			k.Workspace, k.App, k.Bundle, pinVersion(k), tool, offered); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangePins, k.Workspace, k.App)
	})
}

// ChangedPins returns the pins of a workspace's installed apps for which the app offers a definition other than the
// accepted one, newest change first. keys and pins have the same length and order.
func (s *Store) ChangedPins(ctx context.Context, workspace string) (keys []core.PinKey, pins []core.Pin, err error) {
	err = s.db.Select(ctx, "reading the changed pins", `
		SELECT app, bundle, version, tool, definition, offered, renamed_from, refused, changed_at FROM pins
		WHERE workspace = $1 AND offered <> ''
			AND EXISTS (SELECT 1 FROM installations i WHERE i.workspace = pins.workspace AND i.name = app AND i.undo_until = 0) ORDER BY changed_at DESC, app, tool`, []any{workspace},
		func(row database.Row) error {
			k, p := core.PinKey{Workspace: workspace}, core.Pin{}
			var refused, changed int64
			err := row.Scan(&k.App, &k.Bundle, &k.Version, &p.Tool, &p.Definition, &p.Offered, &p.RenamedFrom, &refused, &changed)
			k.Version, k.Account, _ = strings.Cut(k.Version, pinAccount)
			p.Refused, p.ChangedAt = refused != 0, database.FromMillis(changed)
			keys, pins = append(keys, k), append(pins, p)
			return err
		})
	return keys, pins, err
}
