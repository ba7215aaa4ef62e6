package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheTenSecondPressureAverageIsRead(t *testing.T) {
	for text, want := range map[string]float64{
		"some avg10=12.50 avg60=1.00 avg300=0.00 total=9082302\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n": 12.5,
		"full avg10=30.00 avg60=0.00 avg300=0.00 total=1\n":                                                       0,
		"some avg10=much\n": 0,
		"some":              0,
		"":                  0,
	} {
		path := filepath.Join(t.TempDir(), "memory.pressure")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := stalled(path); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := stalled(filepath.Join(t.TempDir(), "none")); got != 0 {
		t.Errorf("without a file: %v", got)
	}
}
