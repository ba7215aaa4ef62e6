package stdio

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// pipeQueue returns a queue that writes to a pipe, and the pipe's read end.
func pipeQueue(t *testing.T) (*writeQueue, *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	q := newWriteQueue(in, time.Minute, func(err error) { t.Error(err) })
	var running sync.WaitGroup
	running.Go(q.run)
	t.Cleanup(func() {
		q.close()
		running.Wait()
		_, _ = in.Close(), out.Close()
	})
	return q, out
}

func appending(text string) func([]byte) []byte {
	return func(buf []byte) []byte { return append(buf, text...) }
}

func TestAMessageIsWrittenImmediatelyIfNoOtherWriteIsInProgress(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), out.Close() }()
	q := newWriteQueue(in, time.Minute, func(err error) { t.Error(err) }) // the goroutine that calls run was not started
	for _, text := range []string{"one\n", "two\n"} {
		if err := q.add(t.Context(), "", len(text), appending(text)); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewReader(out)
	for _, want := range []string{"one\n", "two\n"} {
		if got, err := lines.ReadString('\n'); got != want {
			t.Errorf("%q arrived, want %q (%v)", got, want, err)
		}
	}
}

func TestMessagesThatDoNotFitInThePipeAreWrittenLater(t *testing.T) {
	q, out := pipeQueue(t)
	message := strings.Repeat("x", 50_000) + "\n"
	const sent = 6 // a pipe holds 64 KiB, so most of these do not fit
	for range sent {
		if err := q.add(t.Context(), "", len(message), appending(message)); err != nil {
			t.Fatal(err)
		}
	}
	in := bufio.NewReaderSize(out, 1<<17)
	for range sent {
		if got, err := in.ReadString('\n'); got != message {
			t.Fatalf("%d bytes arrived, want %d (%v)", len(got), len(message), err)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rest != nil || len(q.buf) > 0 {
		t.Errorf("%d and %d bytes remain", len(q.rest), len(q.buf))
	}
}

func TestMessagesOfManyWritersStayWholeAndInOrder(t *testing.T) {
	q, out := pipeQueue(t)
	const writers, each = 8, 500
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				line := fmt.Sprintf("%d %d %s\n", w, i, strings.Repeat("y", i))
				if err := q.add(t.Context(), "", len(line), appending(line)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	next := make([]int, writers)
	in := bufio.NewScanner(out)
	for range writers * each {
		if !in.Scan() {
			t.Fatal(in.Err())
		}
		var w, i int
		var rest string
		_, _ = fmt.Sscanf(in.Text(), "%d %d %s", &w, &i, &rest)
		if next[w] != i || len(rest) != i {
			t.Fatalf("writer %d: message %d with %d bytes arrived, want %d", w, i, len(rest), next[w])
		}
		next[w]++
	}
	all.Wait()
}

// The queue is full of one sender's messages. Another sender's message has to wait for only one of them, and each
// sender's messages stay in order.
func TestSendersTakeTurns(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), out.Close() }()
	q := newWriteQueue(in, time.Minute, func(err error) { t.Error(err) })
	add := func(sender, text string, size int) {
		t.Helper()
		text += strings.Repeat(".", size) + "\n"
		if err := q.add(t.Context(), sender, len(text), appending(text)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		add("one", fmt.Sprintf("one large %d", i), 200_000)
	}
	for i := range 100 {
		add("two", fmt.Sprintf("two small %d", i), 2_000)
	}
	add("three", "three small", 1)
	add("one", "one last", 1)
	var running sync.WaitGroup
	running.Go(q.run)
	defer running.Wait()
	defer q.close()

	lines := bufio.NewReaderSize(out, 1<<18)
	var order []string
	for range 6 + 100 + 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, strings.TrimRight(line, ".\n"))
	}
	at := func(text string) int { return slices.Index(order, text) }
	if n := at("three small"); n > 2+32+1 { // two large messages and one turn of small ones
		t.Errorf("the third sender's message arrived after %d others: %q", n, order)
	}
	for sender, want := range map[string]int{"one": 7, "two": 100} {
		var own []string
		for _, text := range order {
			if strings.HasPrefix(text, sender) {
				own = append(own, text)
			}
		}
		if len(own) != want || sender == "one" && own[6] != "one last" || sender == "two" && own[99] != "two small 99" {
			t.Errorf("sender %s: %q", sender, own)
		}
	}
}

// One sender fills its share. Another can still add a message.
func TestOneSenderCannotTakeAllTheSpace(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), out.Close() }()
	q := newWriteQueue(in, time.Minute, func(err error) { t.Error(err) }) // the goroutine that calls run was not started
	message := strings.Repeat("x", 1<<20) + "\n"
	added, n := true, 0
	for ; added; n++ {
		added, _ = q.try("one", len(message), appending(message))
	}
	if n > 1+maxQueue/4>>20+1 {
		t.Errorf("one sender added %d messages", n)
	}
	if added, _ := q.try("two", len(message), appending(message)); !added {
		t.Error("no space remains for another sender")
	}
}
