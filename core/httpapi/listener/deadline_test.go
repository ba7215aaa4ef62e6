package listener

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestADeadlineIsSetOnlyForReadsThatNeedADifferentOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sets []time.Duration
		start := time.Now()
		d := deadline{set: func(at time.Time) error {
			if at.IsZero() {
				sets = append(sets, -1)
			} else {
				sets = append(sets, at.Sub(start))
			}
			return nil
		}}
		want := func(step string, after time.Duration, read bool, expected ...time.Duration) {
			t.Helper()
			sets = nil
			at := time.Time{}
			if after != 0 {
				at = time.Now().Add(after)
			}
			err := d.schedule(at)
			if read {
				err = errors.Join(err, d.apply(), d.apply())
			}
			if err != nil || len(sets) != len(expected) || len(sets) > 0 && sets[0] != expected[0] {
				t.Errorf("%s: %v were set, want %v (%v)", step, sets, expected, err)
			}
		}
		want("no read", time.Minute, false)
		want("the first deadline", time.Minute, true, time.Minute+slack)
		<-time.After(slack / 2)
		want("slightly later", time.Minute, true)
		<-time.After(slack)
		want("later", time.Minute, true, time.Minute+slack+slack*3/2)
		want("earlier", time.Second, true, time.Second+slack+slack*3/2)
		want("in the past", -time.Second, false, slack/2)
		want("after one in the past", time.Second, true, time.Second+slack+slack*3/2)
		want("no deadline", 0, false, -1)
		want("after no deadline", time.Minute, true, time.Minute+slack+slack*3/2)
	})
}

func TestADeadlineInThePastEndsABlockedRead(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	conn, err := New(ln, Options{}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the read ended with %v", err)
	}
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Errorf("the read deadline also ended a write: %v", err)
	}
}
