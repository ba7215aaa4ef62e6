package table

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
)

// search measures the search surface with 500 tools from 25 apps: the size of its list, whether lists stay the same, and how long
// a search takes.
func (b *bench) search(ctx context.Context) error {
	s := service{name: "search", bundle: []string{"rival", "bundle", "--tools", "20"}, apps: 25}
	var lists [2][]byte // full and search
	different, times := 0, []float64(nil)
	for range 2 {
		p, err := b.startService(ctx, b.o.Service, s)
		if err != nil {
			return err
		}
		for i, surface := range []string{"full", "search"} {
			client, err := openClient(p.url + "?surface=" + surface)
			if err != nil {
				return err
			}
			defer client.Hangup()
			if i == 0 {
				err = listed(ctx, client, s.apps)
			}
			for n := 0; n < 1000 && err == nil; n++ {
				err = client.List()
				list := resultOf(client)
				if lists[i] == nil {
					lists[i] = list
				}
				if !bytes.Equal(list, lists[i]) {
					different++
				}
			}
			if err != nil {
				return err
			}
			more, err := searchTimes(client)
			if err != nil {
				return err
			}
			times = append(times, more...)
		}
		b.stopAll()
	}
	b.limit("500 tools from 25 apps: list on the search surface", 6, "KB", float64(len(lists[1]))/1000,
		fmt.Sprintf("%d bytes, about %d tokens", len(lists[1]), len(lists[1])/4), fmt.Sprintf("%d bytes (full)", len(lists[0])))
	b.limit("500 tools from 25 apps: lists that differ, of 4000 before and after a restart", 0, "", float64(different), fmt.Sprint(different), "")
	b.limit("500 tools from 25 apps: p50 of a search", 2, "ms", median(times), fmt.Sprintf("%.2f ms", median(times)), "")
	return ctx.Err()
}

// resultOf returns a copy of the last response, starting at its result. The part before it contains the id of the
// request.
func resultOf(client *load.Client) []byte {
	_, result, _ := bytes.Cut(client.Answer(), []byte(`"result":`))
	return bytes.Clone(result)
}

// searchTimes returns how long searches take, in milliseconds.
func searchTimes(client *load.Client) (times []float64, err error) {
	for _, query := range []string{"say back what it is given", "ecoh 7", "bench3 echo", "repeat some text", "list the open issues"} {
		for range 100 {
			begin := time.Now()
			if err := client.Ask("tools/call", fmt.Appendf(nil, `{"name":"system__search_tools","arguments":{"query":%q}}`, query)); err != nil {
				return nil, err
			}
			times = append(times, milliseconds(time.Since(begin)))
		}
	}
	return times, nil
}
