package load

import "time"

// schedule determines when the requests of one client are due. The clients of a plan are offset, so that all
// requests together are evenly spaced.
type schedule struct {
	next  time.Time
	every time.Duration // 0 if there is no rate: each request is due when the response to the previous one has arrived
}

// newSchedule returns the schedule of one client of a plan that starts at the given time.
func newSchedule(start time.Time, client int, p Plan) *schedule {
	if p.Rate == 0 {
		return &schedule{}
	}
	every := time.Duration(float64(time.Second) / p.Rate)
	return &schedule{next: start.Add(time.Duration(client) * every), every: time.Duration(p.Concurrency) * every}
}

// wait waits until the next request is due, and returns the time from which its duration is measured. If the
// client was still busy when the request was due, that is the due time: after one slow response, the delay
// counts for every request that it held up. wait returns false if done is closed first.
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
		return time.Now(), true // a timer that fires late is not the server's fault
	case <-done:
		return time.Time{}, false
	}
}
