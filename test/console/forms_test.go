package console

import "testing"

// A form has fields for lists of objects, variants and maps. It keeps all digits of large numbers, shows times in the
// person's time zone, and moves the focus to the first invalid field.
func TestAFormSendsTheEnteredValues(t *testing.T) {
	t.Parallel()
	browse(t, "forms.mjs", serve(t, "", "--sample"), nil)
}
