package server

import (
	"context"
	"fmt"
	"net"
)

// openMetrics serves the metrics on their own address, if http.metrics names one.
func (s *Server) openMetrics(ctx context.Context) error {
	address := s.config.HTTP.Metrics
	if address == "" {
		return nil
	}
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s for the metrics: %w; choose another address with http.metrics", address, err)
	}
	serving := s.metrics.Listen(listener, s.log.Named("metrics"))
	s.closers.add("metrics", serving.Close)
	s.log.Info("metrics served", "url", "http://"+serving.Addr().String()+"/metrics")
	return nil
}
