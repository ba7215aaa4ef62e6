package load

import "time"

// schedule is when the requests of one client are due. The clients of a plan take turns, so that the
// requests of all of them are evenly spaced.
type schedule struct {
	next  time.Time
	every time.Duration // 0 without a rate: each request is due when the one before it was answered
}

// newSchedule returns the schedule of one client of a plan that starts at a time.
func newSchedule(start time.Time, client int, p Plan) *schedule {
	if p.Rate == 0 {
		return &schedule{}
	}
	every := time.Duration(float64(time.Second) / p.Rate)
	return &schedule{next: start.Add(time.Duration(client) * every), every: time.Duration(p.Concurrency) * every}
}

// wait waits until the next request is due and returns the time from which its duration counts. That is
// the time at which it was due if the client was still busy then: a server that is slow once delays every
// request after that, and each of them counts. It returns false when done is closed before.
func (s *schedule) wait(done <-chan struct{}) (start time.Time, ok bool) {
	if s.every == 0 {
		return time.Now(), true
	}
	due := s.next
	s.next = due.Add(s.every)
	rest := time.Until(due)
	if rest <= 0 {
		return due, true
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Now(), true // a late timer is not the server's delay
	case <-done:
		return time.Time{}, false
	}
}
