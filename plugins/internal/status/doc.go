// Package status contains the table that maps the errors of package plugins to gRPC codes and back.
package status
