package operations

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestADamagedFileIsNotServedAndDoctorReportsIt(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	if s.Database != "" {
		t.Skip("this test needs a server that keeps its state in a file")
	}
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "there", harness.Plain)})
	s.Stop()
	path := filepath.Join(s.Home, "ropewalk.db")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	if len(good) < 20*page {
		t.Fatalf("the database has only %d bytes", len(good))
	}
	for _, at := range []int{3, len(good) / page / 2, len(good)/page - 2} { // without a check, a start would not read all of these pages
		bad := bytes.Clone(good)
		copy(bad[at*page:], bytes.Repeat([]byte{0xA5}, page))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		output, status := harness.Command(t, nil, "serve", "--port", "0", "--home", s.Home)
		if status == 0 || !strings.Contains(output, "damaged") || strings.Contains(output, "server listening") {
			t.Errorf("with page %d damaged, the server exited with %d: %s", at, status, output)
		}
		if output, _ := harness.Command(t, nil, "doctor", "--home", s.Home); !strings.Contains(output, "damaged") {
			t.Errorf("with page %d damaged, doctor reports: %s", at, output)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()
}
