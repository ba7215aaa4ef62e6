package httpapi

import "testing"

func TestUnknownQueryParametersAreIgnored(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, path := range []string{"/v1/tools", "/v1/apps", "/v1/conversations", "/v1/registries"} {
		plain, extra := h.do(t, call{method: "GET", path: path}), h.do(t, call{method: "GET", path: path + "?utm_source=mail&x"})
		if extra.StatusCode != 200 || plain.StatusCode != 200 || extra.body != plain.body {
			t.Errorf("%s: %d %s, without them %d %s", path, extra.StatusCode, extra.body, plain.StatusCode, plain.body)
		}
	}
	if r := h.do(t, call{method: "GET", path: "/v1/conversations?limit=no"}); r.StatusCode != 400 {
		t.Errorf("an invalid value of a known parameter: %d %s", r.StatusCode, r.body)
	}
}
