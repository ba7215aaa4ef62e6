package server

import "context"

// pendingRevocations bounds the changes that wait; beyond it one check of all users replaces them.
const pendingRevocations = 256

// endRevoked has /mcp end the sessions and streams of users whose access was revoked, until the server
// closes. Event streams of /v1 watch for themselves.
func (s *Server) endRevoked() {
	changes, overflow := make(chan string, pendingRevocations), make(chan struct{}, 1)
	stopWatching := s.access.WatchRevocations(func(userID string) {
		select {
		case changes <- userID:
		default:
			select {
			case overflow <- struct{}{}:
			default:
			}
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case user := <-changes:
				s.endpoint.EndRevoked(ctx, user)
			case <-overflow:
				s.endpoint.EndRevoked(ctx, "")
			case <-ctx.Done():
				return
			}
		}
	}()
	s.closers.add("revocations", func(context.Context) error {
		stopWatching()
		stop()
		<-ended
		return nil
	})
}
