package console

import "testing"

// A form has fields for lists of objects, variants and maps, keeps the digits of large numbers, shows times by the person's
// clock, and leads to the first field that is wrong.
func TestAFormSendsWhatThePersonMeant(t *testing.T) {
	t.Parallel()
	browse(t, "forms.mjs", serve(t, "", "--sample"), nil)
}
