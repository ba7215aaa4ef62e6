package permit

import (
	"slices"
	"testing"
)

func TestPortsOfThisMachineAreFoundInSettings(t *testing.T) {
	for text, want := range map[string][]int{
		`{"url":"redis://localhost/0"}`:                           {6379},
		`{"url":"rediss://user:pass@127.0.0.1:7000/0"}`:           {7000},
		`{"addresses":["localhost:1","[::1]:2","127.0.0.2:3"]}`:   {1, 2, 3},
		`{"issuer":"https://LOCALHOST/realms/a","other":"a:b"}`:   {443},
		"127.0.0.1:9090 postgres://localhost/ropewalk":            {9090, 5432},
		`{"url":"redis://cache.example.com:6379","time":"12:30"}`: nil,
		`{"issuer":"https://id.example.com"}`:                     nil,
	} {
		if got := LoopbackPorts(text); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
