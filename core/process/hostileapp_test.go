//go:build linux

package process_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
)

// hostileApp is an MCP server with one tool, which runs all probes. The end-to-end tests install it in a real
// server. Its result lists the probes that succeeded, and how many there were.
func hostileApp() {
	requests := bufio.NewScanner(os.Stdin)
	requests.Buffer(nil, 1<<20)
	for requests.Scan() {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				ProtocolVersion string `json:"protocolVersion"`
				Arguments       struct {
					Target target   `json:"target"`
					Except []string `json:"except"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(requests.Bytes(), &request); err != nil || request.ID == nil {
			continue
		}
		var result any = map[string]any{}
		switch request.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": request.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "hostile", "version": "1.0.0"},
			}
		case "tools/list":
			result = map[string]any{"tools": []any{map[string]any{"name": "attack", "inputSchema": map[string]any{"type": "object"}}}}
		case "tools/call":
			report, _ := json.Marshal(attack(request.Params.Arguments.Target, request.Params.Arguments.Except)) // always valid
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": string(report)}}}
		}
		answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result})
		if err != nil {
			return
		}
		fmt.Println(string(answer))
	}
}

// attacked is the result of hostileApp's tool.
type attacked struct {
	Probes  int               `json:"probes"`
	Escaped map[string]string `json:"escaped"`
}

func attack(t target, except []string) attacked {
	all := allProbes()
	report := attacked{Escaped: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(except, name) {
			continue
		}
		report.Probes++
		if got := all[name](t); got != "" {
			report.Escaped[name] = got
		}
	}
	return report
}
