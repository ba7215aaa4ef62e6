package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// statesInTurn is an app that moves to its next state each time it is read, and stays in its last state. An empty state
// means that the app is not installed. wanted is the Running field of its record.
type statesInTurn struct {
	states []core.State
	wanted bool
}

func (s *statesInTurn) Health(string) []core.AppHealth {
	state := s.states[0]
	if len(s.states) > 1 {
		s.states = s.states[1:]
	}
	if state == "" {
		return nil
	}
	return []core.AppHealth{{Name: "other", State: core.StateDead}, {Name: "sample", State: state}}
}

func (s *statesInTurn) Installation(context.Context, string, string) (core.Installation, error) {
	return core.Installation{Running: s.wanted}, nil
}

func TestACallWaitsForAnAppThatIsStillStarting(t *testing.T) {
	for name, c := range map[string]struct {
		app  statesInTurn
		want bool
	}{
		"it has not started yet":   {statesInTurn{[]core.State{core.StateStopped, core.StateStopped, core.StateStarting, core.StateRunning}, true}, true},
		"it is being installed":    {statesInTurn{[]core.State{"", "", core.StateStarting, core.StateRunning}, true}, true},
		"it was stopped":           {statesInTurn{[]core.State{core.StateStopped, core.StateRunning}, false}, false},
		"it has crashed too often": {statesInTurn{[]core.State{core.StateStarting, core.StateDead, core.StateRunning}, true}, false},
		"it never starts":          {statesInTurn{[]core.State{core.StateStarting}, true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if got := appRuns(ctx, &c.app, &c.app, "sample"); got != c.want {
					t.Errorf("appRuns is %v, want %v", got, c.want)
				}
			})
		})
	}
}
