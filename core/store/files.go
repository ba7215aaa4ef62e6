package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

const (
	maxFiles  = 256 << 20 // bytes of one bundle's files, as stored
	filesPart = 1 << 20   // bytes of one row
	// keepFiles is how long files that no app uses are kept: an installation stores the files first, then starts the
	// app, and records the app last.
	keepFiles = time.Hour
)

// PutFiles stores the files of a bundle, read from content, under their SHA-256. If they are already stored, it does
// not read content. The error is core.CodePayloadTooLarge for more than 256 MiB.
func (s *Store) PutFiles(ctx context.Context, sum string, content io.Reader) error {
	return s.db.UpdateLong(ctx, "storing the files of a bundle", func(ctx context.Context, tx *sql.Tx) error {
		if err := purgeFiles(ctx, tx); err != nil {
			return err
		}
		now := database.Millis(time.Now())
		added, err := database.Changed(ctx, tx, `INSERT INTO bundles (sha256, kept_at) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING`, sum, now)
		switch {
		case err != nil:
			return err
		case added:
			return putParts(ctx, tx, sum, content)
		}
		_, err = tx.ExecContext(ctx, `UPDATE bundles SET kept_at = $2 WHERE sha256 = $1`, sum, now)
		return err
	})
}

func putParts(ctx context.Context, tx *sql.Tx, sum string, content io.Reader) error {
	buffer := make([]byte, filesPart)
	for part := 0; ; part++ {
		n, err := io.ReadFull(content, buffer)
		if n > 0 {
			if part == maxFiles/filesPart {
				return core.Errorf(core.CodePayloadTooLarge, "the bundle is larger than %d MiB compressed, the limit for servers that share a database", maxFiles>>20)
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO bundle_parts (sha256, part, content) VALUES ($1, $2, $3)`, sum, part, buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// Files copies the files that PutFiles stored under a SHA-256 to a writer. The error is core.CodeNotFound if they are
// not stored.
func (s *Store) Files(ctx context.Context, sum string, to io.Writer) error {
	for part := 0; ; part++ {
		var content []byte
		err := s.db.Get(ctx, "reading the files of a bundle", `SELECT content FROM bundle_parts WHERE sha256 = $1 AND part = $2`, []any{sum, part}, &content)
		if errors.Is(err, sql.ErrNoRows) && part > 0 {
			return nil
		}
		if err != nil {
			return database.Missing(err, core.Errorf(core.CodeNotFound, "the files of the bundle are not in the database"))
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
		if len(content) < filesPart {
			return nil
		}
	}
}

// purgeFiles deletes files that no app needs and that are older than keepFiles.
func purgeFiles(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
		DELETE FROM bundles WHERE kept_at < $1 AND NOT EXISTS (SELECT 1 FROM installations i WHERE i.files = bundles.sha256)`,
		database.Millis(time.Now().Add(-keepFiles)))
	return err
}
