package core_test

import (
	"os"
	"strings"
	"testing"
)

func TestThePlanNamesEveryRoom(t *testing.T) {
	plan, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		if room.IsDir() && !strings.Contains(string(plan), "\n  "+room.Name()+"/ ") {
			t.Errorf("ARCHITECTURE.md has no line for core/%s", room.Name())
		}
	}
}
