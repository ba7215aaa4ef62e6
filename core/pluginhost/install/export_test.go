package install

import "net/url"

// CheckFollowed is checkFollowed for tests.
func CheckFollowed(from, to string) error {
	a, err := url.Parse(from)
	if err != nil {
		return err
	}
	b, err := url.Parse(to)
	if err != nil {
		return err
	}
	return checkFollowed(a, b)
}
