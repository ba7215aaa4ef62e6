package console

import "testing"

// A person allows an app to use a service on this machine on the app's page, sees that it takes effect, and
// revokes it.
func TestAnAppsPermissionsAreDecidedOnItsPage(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": unpacked(t, greeter(t, "porter", "Porter", nil, nil))})
	browse(t, "permissions.mjs", s, nil)
}
