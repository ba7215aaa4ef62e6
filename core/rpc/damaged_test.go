package rpc

import (
	"strings"
	"testing"
)

func TestTheCallIDIsFoundInAnOverLongLine(t *testing.T) {
	fill := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		line string
		id   int64
	}{
		"id first":                     {`{"jsonrpc":"2.0","id":2000000,"result":{"t":"` + fill + `"}}`, 2000000},
		"id last":                      {`{"result":{"t":"` + fill + `"},"jsonrpc":"2.0","id":2000000}`, 2000000},
		"id before the version":        {`{"result":{"t":"` + fill + `"},"id": 2000000, "jsonrpc" : "2.0" }`, 2000000},
		"an id inside the result only": {`{"jsonrpc":"2.0","result":{"t":"` + fill + `","id":2000000}}`, 0},
		"a number that only the SDK would use as its id": {`{"jsonrpc":"2.0","id":3,"result":{"t":"` + fill + `"}}`, 0},
		"text that only looks like an id":                {`{"jsonrpc":"2.0","result":"` + fill + `\"id\":2000000}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			id, found := CallID([]byte(c.line[:KeptEnd]), []byte(c.line[len(c.line)-KeptEnd:]))
			if found != (c.id != 0) || found && id != c.id {
				t.Errorf("found %d (%v), want %d", id, found, c.id)
			}
		})
	}
}
