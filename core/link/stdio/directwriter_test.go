package stdio

import (
	"bufio"
	"strings"
	"testing"
)

func TestAMessageAddedDuringAPartialWriteFollowsTheRestOfIt(t *testing.T) {
	q, out := pipeQueue(t)
	long := strings.Repeat("x", 300_000) + "\n" // more than a pipe holds
	written, others := q.direct.do, 0
	q.direct.do = func(fd uintptr) bool {
		if others++; others == 1 {
			if err := q.add(t.Context(), "", 6, appending("other\n")); err != nil {
				t.Error(err)
			}
		}
		return written(fd)
	}
	if err := q.add(t.Context(), "", len(long), appending(long)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	for _, want := range []string{long, "other\n"} {
		if got, err := in.ReadString('\n'); got != want {
			t.Errorf("%d bytes arrived, want %d (%v)", len(got), len(want), err)
		}
	}
}
