package testkit

import "flag"

// Parallel allows n parallel tests of a package at the same time, unless the flag -parallel is set. It is for
// packages whose tests mostly wait, because on a machine with few processors they would wait one after another.
// TestMain calls it before it runs the tests.
func Parallel(n string) error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", n)
}
