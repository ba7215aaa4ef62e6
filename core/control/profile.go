package control

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"net/url"
	rpprof "runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// Profiles returns the names of the profiles that Profile can write. Recording cpu and trace takes a while.
func Profiles() []string {
	names := []string{"cpu", "trace"}
	for _, p := range rpprof.Profiles() {
		names = append(names, p.Name())
	}
	return names
}

// Profile writes a profile of the server in the format of `go tool pprof`, or of `go tool trace` for trace. duration is
// how long to record cpu and trace.
func (c *Client) Profile(ctx context.Context, name string, duration time.Duration, w io.Writer) error {
	query := url.Values{"seconds": {strconv.Itoa(max(int(duration/time.Second), 1))}}
	res, err := c.send(ctx, http.MethodGet, "/profiles/"+url.PathEscape(name)+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(w, res.Body)
	return err
}

func profile(w http.ResponseWriter, r *http.Request) {
	switch name := r.PathValue("name"); {
	case name == "cpu":
		pprof.Profile(w, r)
	case name == "trace":
		pprof.Trace(w, r)
	case rpprof.Lookup(name) == nil:
		answer(w, nil, fmt.Errorf("there is no profile %q; the profiles are %s", name, strings.Join(Profiles(), ", ")))
	default:
		query := r.URL.Query() // "seconds" would mean the difference between two profiles
		query.Del("seconds")
		r.URL.RawQuery = query.Encode()
		pprof.Handler(name).ServeHTTP(w, r)
	}
}
