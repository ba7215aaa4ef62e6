package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/apiclient"
)

func TestASearchWithoutResultsMentionsTheConfiguredRegistriesIfItCannotListThem(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client := &apiclient.Client{Server: server.URL, HTTP: server.Client()}
	for failed, want := range []string{`No bundle in the configured registries matches "x". `, "No bundle was found: the configured registries cannot be searched."} {
		if got := (search{words: "x"}).noResults(t.Context(), client, failed); !strings.HasPrefix(got, want) {
			t.Errorf("%d failures: %s", failed, got)
		}
	}
}
