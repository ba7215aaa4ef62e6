package console

import "testing"

// A person allows an app a service of this machine on its page, sees it in force, and revokes it.
func TestPermissionsOfAnAppAreDecidedOnItsPage(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": unpacked(t, greeter(t, "porter", "Porter", nil, nil))})
	browse(t, "permissions.mjs", s, nil)
}
