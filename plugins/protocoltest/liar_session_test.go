package protocoltest_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// busy delays or rejects a call to the store that comes with others.
func (l *liar) busy(ctx context.Context) error {
	switch l.lie {
	case "returns RESOURCE_EXHAUSTED for more than 50 concurrent calls": // the 50 are answered once one was rejected, or after two seconds
		select {
		case l.places <- struct{}{}:
		default:
			l.reject()
			return status.Error(codes.ResourceExhausted, "too many calls")
		}
		select {
		case <-l.crowd.Done():
		case <-time.After(2 * time.Second):
		}
		<-l.places
	case "keeps a worker busy for each abandoned call":
		l.workers <- struct{}{}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
			<-l.workers
		}
	}
	return nil
}

// got runs after a call to the store, and returns its error.
func (l *liar) got(err error) error {
	l.gets++
	switch l.lie {
	case "is not healthy after a call":
		l.unhealthy()
	case "fails calls of its kind with an unknown code":
		return status.Error(codes.FailedPrecondition, "not now")
	case "returns errors without a message":
		return status.Error(codes.NotFound, "")
	case "leaks 20 KB for each call of its kind":
		l.keep(slices.Repeat([]byte{1}, 20<<10), nil)
	case "writes a file on each call":
		_ = os.WriteFile(filepath.Join(l.dir, strconv.Itoa(l.gets)), nil, 0o600)
	case "applies the settings in Validate":
		if l.wrong {
			return status.Error(codes.Unavailable, "no backend")
		}
	case "prints on the fifth call of its kind":
		if l.gets == 5 {
			fmt.Println("that was the fifth")
		}
	case "prints two seconds after a call":
		if l.gets == 1 {
			time.AfterFunc(2*time.Second, func() { fmt.Println("cleaned up") })
		}
	}
	if l.gets%100 == 0 {
		switch l.lie {
		case "prints on every hundredth call of its kind":
			fmt.Println(l.gets, "calls")
		case "starts a child on every hundredth call":
			run("sleep", "30")
		}
	}
	return err
}

// verified returns the error for a token.
func (l *liar) verified(token string) error {
	why := "refused"
	switch l.lie {
	case "logs the tokens that it refuses":
		fmt.Fprintln(os.Stderr, "refused", token)
	case "logs the tokens that it refuses in base64":
		fmt.Fprintln(os.Stderr, "refused", base64.StdEncoding.EncodeToString([]byte("Bearer "+token)))
	case "repeats tokens in errors":
		why += " " + token
	}
	return status.Error(codes.Unauthenticated, why)
}
