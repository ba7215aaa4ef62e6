// Package status is the one table between the errors of package plugins and gRPC codes.
package status
