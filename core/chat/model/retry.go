package model

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	attempts  = 4                // maximum number of calls for one answer
	firstWait = time.Second      // before the second call; doubles each time, with jitter
	longest   = 20 * time.Second // longest Retry-After that is honored
)

// Call calls a model. It retries after a transient failure if there has been no output yet. It does not retry if the
// provider asks for a longer wait than a person would accept. waiting is called before each pause.
func Call(ctx context.Context, p Provider, name string, r Request, pieces Pieces, waiting func(*Error, time.Duration)) (Answer, error) {
	begun := false
	watched := pieces
	watched.Text = func(text string) { begun = true; pieces.say(text) }
	watched.Thought = func(text string) { begun = true; pieces.think(text) }
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.Multiplier = firstWait, 2
	for attempt := 1; ; attempt++ {
		answer, err := p.Call(ctx, name, r, watched)
		known, ok := errors.AsType[*Error](err)
		if ok && known.Failure == Filtered {
			answer.End = EndFilter
			return answer, nil
		}
		if err == nil || !ok || begun || attempt == attempts || !known.isTransient() || known.RetryAfter > longest {
			return answer, err
		}
		pause := max(pauses.NextBackOff(), known.RetryAfter)
		waiting(known, pause)
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(pause):
		}
	}
}
