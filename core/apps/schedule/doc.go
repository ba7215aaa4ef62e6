// Package schedule decides when apps are started: how many at the same time (Queue), and when crashed
// ones are tried again (Policy, Attempts). It starts nothing itself.
package schedule
