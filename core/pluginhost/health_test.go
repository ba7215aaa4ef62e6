package pluginhost

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestAPluginIsHungIfItMissesTwoChecksAndFinishesNoCall(t *testing.T) {
	silent, notServing := context.DeadlineExceeded, fmt.Errorf("%w: it reports NOT_SERVING", errNotServing)
	type check struct {
		err            error
		answered, busy bool // it answered a call; it is waiting for a processor
		want           bool
	}
	slow := slices.Repeat([]check{{err: silent, busy: true}}, busyHungAfter)
	slow[len(slow)-1].want = true
	for name, checks := range map[string][]check{
		"silent":                                    {{err: silent}, {err: silent, want: true}},
		"silent once":                               {{err: silent}, {}, {err: silent}, {answered: true}},
		"slow but answering calls":                  {{err: silent}, {err: silent, answered: true}, {err: silent}, {err: silent, answered: true}},
		"silent after it answered a call":           {{err: silent, answered: true}, {err: silent}, {err: silent, want: true}},
		"silent while waiting for a processor":      slow,
		"answering calls but reporting not serving": {{err: notServing, answered: true}, {err: notServing, answered: true, busy: true, want: true}},
		"silent, then reporting not serving":        {{err: silent}, {err: notServing, busy: true, want: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var h health
			for i, c := range checks {
				if got := h.isHung(c.err, c.answered, func() bool { return c.busy }); got != c.want {
					t.Errorf("after check %d it counts as hung: %v", i+1, got)
				}
			}
		})
	}
}

func TestTheServersDelayIsTheLongestDelayOfATick(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ticks := make(chan time.Time)
	go func() {
		for _, delay := range []time.Duration{0, time.Hour, time.Minute} {
			ticks <- time.Now().Add(-delay)
		}
		cancel()
	}()
	if got := longestDelay(ctx, ticks); got < time.Hour || got > 2*time.Hour {
		t.Errorf("the longest delay is %v", got)
	}
}
