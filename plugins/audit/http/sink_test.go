package http_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	sink "github.com/ropewalk/ropewalk/plugins/audit/http"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

func open(t *testing.T, settings map[string]any) *sink.Sink {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	s := sink.New()
	if err := s.Configure(t.Context(), plugins.Config{JSON: raw}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestTheContract(t *testing.T) {
	receiver := &audittest.Receiver{}
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	backend, err := kit.NewProxy(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	subject := audittest.Subject{Receiver: receiver, Backend: backend, Open: func(context.Context) (*audittest.Process, error) {
		s := open(t, map[string]any{"url": "http://" + backend.Address() + "/audit", "timeout": "15s"})
		return &audittest.Process{Sink: s, Kill: func() {}, Close: func() { _ = s.Close() }}, nil
	}}
	plugintest.Judge(t, audittest.Properties(), plugintest.Trial(kit.Quick), subject)
	t.Run("as an executable", func(t *testing.T) {
		testenv.PassesItsKit(t, 0, "audit-http", `{"url": "http://${receiver}/audit"}`)
	})
}

// answers starts a collector that responds with the given codes in turn, then with 200, and counts the records it
// accepts.
func answers(t *testing.T, codes ...int) (settings map[string]any, taken *atomic.Int64) {
	t.Helper()
	taken = &atomic.Int64{}
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := int(asked.Add(1)); n <= len(codes) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(codes[n-1])
			return
		}
		var batch []audit.Entry
		if r.Header.Get("Authorization") != "Bearer the-token" || r.Header.Get("X-Source") != "ropewalk" || r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&batch) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		taken.Add(int64(len(batch)))
	}))
	t.Cleanup(server.Close)
	return map[string]any{"url": server.URL, "token": "the-token", "headers": map[string]any{"X-Source": "ropewalk"}}, taken
}

func some(n int) (all []audit.Record) {
	for i := range n {
		all = append(all, audit.Record{Sequence: uint64(i + 1), Action: "tools.call"})
	}
	return all
}

func TestABatchIsRetriedWhileTheCollectorIsBusyAndSplitIfItIsTooLarge(t *testing.T) {
	for _, codes := range [][]int{{500, 429}, {413}, {413, 413, 413}} {
		settings, taken := answers(t, codes...)
		if err := open(t, settings).Write(t.Context(), "one", some(8)); err != nil || taken.Load() != 8 {
			t.Errorf("after %v the collector accepted %d records: %v", codes, taken.Load(), err)
		}
	}
}

func TestAcceptedRecordsAreNotSentAgain(t *testing.T) {
	settings, taken := answers(t)
	s := open(t, settings)
	for _, batch := range [][]audit.Record{some(4), some(8), some(8), some(3), nil} {
		if err := s.Write(t.Context(), "one", batch); err != nil {
			t.Errorf("a batch of %d: %v", len(batch), err)
		}
	}
	if taken.Load() != 8 {
		t.Errorf("the collector got %d records, want 8", taken.Load())
	}
	if err := s.Write(t.Context(), "two", some(1)); err != nil || taken.Load() != 9 {
		t.Errorf("after a record from another stream, the collector had %d records, want 9: %v", taken.Load(), err)
	}
}

func TestARecordThatCannotBeWrittenIsNotAcknowledged(t *testing.T) {
	settings, taken := answers(t)
	s := open(t, settings)
	broken := append(some(1), audit.Record{Sequence: 2, Action: "tools.call", Arguments: json.RawMessage(`{"cut`)})
	for range 2 { // the first attempt must not count as sent
		if err := s.Write(t.Context(), "one", broken); err == nil || !strings.Contains(err.Error(), "JSON") || taken.Load() != 0 {
			t.Errorf("the collector got %d records: %v", taken.Load(), err)
		}
	}
}

func TestABatchIsNotAcknowledgedWhenItsFirstHalfIsRejected(t *testing.T) {
	settings, taken := answers(t, 413, 401) // accepts everything after that
	s := open(t, settings)
	if err := s.Write(t.Context(), "one", some(8)); !errors.Is(err, plugins.ErrUnavailable) || taken.Load() != 0 {
		t.Errorf("the collector accepted %d records: %v", taken.Load(), err)
	}
	if err := s.Write(t.Context(), "one", some(8)); err != nil || taken.Load() != 8 {
		t.Errorf("after another attempt, the collector had accepted %d records, want 8: %v", taken.Load(), err)
	}
}

func TestASingleRecordThatIsTooLargeIsRefused(t *testing.T) {
	settings, taken := answers(t, 413, 413, 413)
	if err := open(t, settings).Write(t.Context(), "one", some(1)); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "413") || taken.Load() != 0 {
		t.Errorf("the collector accepted %d records: %v", taken.Load(), err)
	}
}

func TestAClosedSinkLeavesNoConnectionOpen(t *testing.T) {
	ended := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(&audittest.Receiver{})
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			ended <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s := open(t, map[string]any{"url": server.URL})
	if err := errors.Join(s.Write(t.Context(), "one", some(1)), s.Close()); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, "the close of the connection", ended)
}

func TestASinkThatWasNeverConfiguredCanBeClosed(t *testing.T) {
	if err := sink.New().Close(); err != nil {
		t.Error(err)
	}
}

func TestARejectionByTheCollectorIsUnavailableAndSaysWhy(t *testing.T) {
	for _, code := range []int{300, 301, 401, 404, 499} {
		settings, _ := answers(t, code)
		err := open(t, settings).Write(t.Context(), "one", some(1))
		if !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), fmt.Sprint(code)) || strings.Contains(err.Error(), "the-token") || strings.Contains(err.Error(), "deadline has passed") {
			t.Errorf("%d: %v", code, err)
		}
	}
	settings, _ := answers(t, slices.Repeat([]int{503}, 1000)...)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := open(t, settings).Write(ctx, "one", some(1)); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "503") {
		t.Error(err)
	}
}

func TestACollectorIsTrustedByItsCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(&audittest.Receiver{})
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, map[string]any{"url": server.URL, "tls": map[string]any{"caFile": ca}}).Write(t.Context(), "one", some(1)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := open(t, map[string]any{"url": server.URL}).Write(ctx, "one", some(1)); !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an untrusted certificate: %v", err)
	}
}

func TestUnusableValuesAreReportedForTheirSettings(t *testing.T) {
	for settings, want := range map[string]string{
		`{}`:                                   "url: is missing",
		`{"url": "collector:80"}`:              "url: must be an address",
		`{"url": "ftp://c"}`:                   "url: must be an address",
		`{"url": "http://c:99999"}`:            "url: has a port that is not from 1 to 65535",
		`{"url": "https:///audit"}`:            "url: must be an address",
		`{"url": "http://c", "timeout": "0s"}`: "timeout: must be a positive",
		`{"url": "https://c", "tls": {"keyFile": "/no/such"}}`:                "goes together with keyFile",
		`{"url": "http://c", "token": "a\nb"}`:                                "token: must be text",
		`{"url": "http://a:b@c"}`:                                             "url: must not contain a user name",
		`{"url": "http://c", "tok": 1}`:                                       `did you mean "token"`,
		`{"url": "http://c", "timeout": "-1s"}`:                               "timeout: must be a positive",
		`{"url": "http://c", "tls": {"caFile": "x"}}`:                         "tls: needs a url that starts with https",
		`{"url": "https://c", "tls": {"caFile": "/no/such"}}`:                 "tls: open /no/such",
		`{"url": "https://c", "tls": {"certFile": "/no/such"}}`:               "goes together with keyFile",
		`{"url": "http://c", "headers": {"a b": "x"}}`:                        "headers: has a name",
		`{"url": "http://c", "headers": {"A": "x\ny"}}`:                       "headers.A: must be text",
		`{"url": "http://c", "token": "t", "headers": {"authorization": ""}}`: "is set by token",
	} {
		err := sink.New().Configure(t.Context(), plugins.Config{JSON: json.RawMessage(settings)})
		if _, ok := errors.AsType[*plugins.ConfigError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

func TestValidPluginSettingsAreAccepted(t *testing.T) {
	for _, settings := range []string{
		`{"url": "http://collector:8080/audit"}`,
		`{"url": "https://collector/audit", "headers": {"Authorization": "Basic x", "X-Tenant": "one"}, "timeout": "1s"}`,
		`{"url": "https://collector/audit", "token": "t", "headers": {"X-Tenant": "one"}}`,
	} {
		if err := sink.New().Configure(t.Context(), plugins.Config{JSON: json.RawMessage(settings)}); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
