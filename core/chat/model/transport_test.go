package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// A proxy only sees the provider's host. It does not see requests to addresses without TLS at all.
func TestAProxySeesNeitherKeysNorConversations(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
		if r.Header.Get("X-Api-Key") != "" || r.Header.Get("Authorization") != "" || len(body) > 0 {
			t.Errorf("the proxy got %v %s", r.Header, body)
		}
		w.WriteHeader(http.StatusBadGateway) // the proxy does not forward the request
	}))
	defer proxy.Close()
	direct := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer direct.Close()
	at, _ := url.Parse(strings.Replace(proxy.URL, "http://", "http://me:pw@", 1))
	client := model.NewClient(model.Settings{Proxy: func(*url.URL) (*url.URL, error) { return at, nil }})
	defer client.CloseIdleConnections()
	for address, reached := range map[string]bool{"https://provider.example/v1/messages": false, direct.URL: true} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"messages":["secret"]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "k")
		r.Header.Set("Authorization", "Bearer k")
		answer, err := client.Do(r)
		if (err == nil) != reached {
			t.Errorf("%s: %v", address, err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
	}
	if want := []string{"CONNECT provider.example:443 Basic bWU6cHc="}; !slices.Equal(seen, want) {
		t.Errorf("the proxy saw %q", seen)
	}
}
