// Package lazycontext has a context that costs nothing until something waits on it.
//
// It is for what usually ends before anybody waits: the check of a request, a call that is answered at
// once. Where something waits nearly always, package context is the right one. BenchmarkLazyContext
// compares the two.
package lazycontext
