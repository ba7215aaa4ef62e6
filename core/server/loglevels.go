package server

import "errors"

// LogLevels changes levels of the log by component until the next start, and returns those in force.
func (s *Server) LogLevels(change map[string]string) (map[string]string, error) {
	if s.o.LogLevels == nil {
		return nil, errors.New("the levels of this server's log cannot be changed")
	}
	if err := s.o.LogLevels.Change(change); err != nil {
		return nil, err
	}
	if len(change) > 0 {
		s.log.Info("log levels changed", "levels", s.o.LogLevels.All())
	}
	return s.o.LogLevels.All(), nil
}
