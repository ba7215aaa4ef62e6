package testkit

import "flag"

// Parallel lets n parallel tests of a package run at once, where -parallel does not say otherwise.
// It is for packages whose tests mostly wait, which otherwise wait one after the other on a machine
// with few processors. TestMain calls it before it runs the tests.
func Parallel(n string) error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", n)
}
