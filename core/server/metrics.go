package server

import (
	"context"
	"fmt"
	"net"

	"github.com/ropewalk/ropewalk/core/httpapi/listener"
)

// openMetrics serves the metrics on their own address, if http.metrics names one.
func (s *Server) openMetrics(ctx context.Context) error {
	address := s.config.HTTP.Metrics
	if address == "" {
		return nil
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s for the metrics: %w; choose another address with http.metrics", address, err)
	}
	log := s.log.Named("metrics")
	serving := s.metrics.Listen(listener.New(l, listener.Options{Logger: log}), log)
	s.closers.add("metrics", serving.Close)
	s.log.Info("metrics served", "url", "http://"+serving.Addr().String()+"/metrics")
	return nil
}
