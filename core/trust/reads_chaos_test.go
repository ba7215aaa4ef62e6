//go:build chaos

package trust

import (
	"fmt"
	"testing"

	"github.com/ropewalk/ropewalk/internal/chaos"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

func TestTheSameListIsReadAgainWithoutReadingTheStore(t *testing.T) {
	const tools, again = 100, 1000
	records := newRecords()
	p := newPins(PinEnforce, records, &fakes.Events{})
	var definitions []string
	for i := range tools {
		definitions = append(definitions, tool(fmt.Sprintf("tool%d", i), fmt.Sprintf("Does %d", i)))
	}
	l := listing(false, definitions...)
	first := verdict(t, p, l)
	before := records.reads
	for range again {
		if got := verdict(t, p, l); got != first {
			t.Fatalf("the same list is now %q", got)
		}
	}
	reads := records.reads - before
	if reads != 0 {
		t.Errorf("the store was read %d times", reads)
	}
	chaos.Record(t, chaos.Row{
		Number: "The same list read again", OK: reads == 0,
		Done:   fmt.Sprintf("a list of %d tools, %d times again", tools, again),
		Figure: fmt.Sprintf("%d reads of the store", reads), Required: "0",
	})
}
