package store

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/backup"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// someFiles returns incompressible bytes. Their number is not a multiple of the size of a part.
func someFiles(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.Read(content)
	return content
}

func wantFiles(t *testing.T, s *Store, sum string, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := s.Files(t.Context(), sum, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("files %s: %d bytes, %v, want %d", sum, got.Len(), err, len(want))
	}
}

func wantNoFiles(t *testing.T, s *Store, sum string) {
	t.Helper()
	if err := s.Files(t.Context(), sum, io.Discard); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("files %s: %v, want %s", sum, err, core.CodeNotFound)
	}
}

func TestABundlesFilesAreStoredCompletelyOrNotAtAll(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for name, n := range map[string]int{"small": 10, "one part": filesPart, "many parts": 3*filesPart + 7} {
			content := someFiles(n)
			if err := s.PutFiles(t.Context(), name, iotest.HalfReader(bytes.NewReader(content))); err != nil {
				t.Fatal(err)
			}
			if err := s.PutFiles(t.Context(), name, iotest.ErrReader(errors.New("read again"))); err != nil {
				t.Errorf("storing what is already kept: %v", err)
			}
			wantFiles(t, s, name, content)
		}
		broken := io.MultiReader(bytes.NewReader(someFiles(2*filesPart)), iotest.ErrReader(errors.New("broke off")))
		wantError(t, s.PutFiles(t.Context(), "broken", broken), "broke off")
		wantNoFiles(t, s, "broken")
		wantError(t, s.Files(t.Context(), "small", brokenPipe{}), "broken pipe")
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestFilesThatNoAppNeedsAreDeletedAfterAnHour(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		age := func() {
			t.Helper()
			if _, err := s.db.WritePool().ExecContext(t.Context(), `UPDATE bundles SET kept_at = $1`, database.Millis(time.Now().Add(-keepFiles-time.Second))); err != nil {
				t.Fatal(err)
			}
		}
		keep := func(sum string) {
			t.Helper()
			if err := s.PutFiles(t.Context(), sum, bytes.NewReader([]byte(sum))); err != nil {
				t.Fatal(err)
			}
		}
		app := core.Installation{ID: "1", Workspace: core.DefaultWorkspaceID, Name: "app", Files: "needed"}
		keep("needed")
		keep("not needed")
		put(t, s, app)
		keep("young")
		wantFiles(t, s, "not needed", []byte("not needed"))
		age()
		keep("not needed") // an installation is about to need them
		keep("next")
		wantFiles(t, s, "needed", []byte("needed"))
		wantFiles(t, s, "not needed", []byte("not needed"))
		wantNoFiles(t, s, "young")
		age()
		if err := s.DeleteInstallation(t.Context(), app.Workspace, app.Name, app.ID); err != nil {
			t.Fatal(err)
		}
		wantNoFiles(t, s, "needed")
	})
}

func TestABackupContainsFilesOfAnySize(t *testing.T) {
	for _, home := range homes() {
		t.Run(home.name, func(t *testing.T) {
			o := home.make(t)
			content := someFiles(2*8<<20 + 1)
			if err := openIn(t, o).PutFiles(t.Context(), "sum", bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			file, to := filepath.Join(t.TempDir(), "backup"), home.make(t)
			if err := backup.Write(t.Context(), o.Location(), file); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(t.Context(), to.Location(), file, false); err != nil {
				t.Fatal(err)
			}
			wantFiles(t, openIn(t, to), "sum", content)
		})
	}
}
