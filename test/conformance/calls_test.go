package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// runClient installs the scenario's server as a remote app on the server at base. If the scenario is about
// authorization, runClient links an account for the app. It then makes the scenario's calls as a client of /mcp.
func runClient(base, url string) error {
	app := cmp.Or(os.Getenv(clientApp), "suite")
	p := person{base: base, app: app}
	if _, err := request(http.MethodPost, base+"/v1/apps/install", installation(app, url)); err != nil {
		return err
	}
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
		if err := p.link(); err != nil {
			return err
		}
	}
	calls, err := scenarioCalls(base, app)
	if err != nil {
		return err
	}
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "suite", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: p.answer,
		Capabilities:       &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: base + "/mcp/" + workspace},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}) // a revision with sessions, so that apps can ask the client
	if err != nil {
		return err
	}
	for _, c := range calls {
		if _, err := session.CallTool(ctx, c); err != nil {
			fmt.Fprintln(os.Stderr, c.Name, err) // the suite decides whether this is a failure
		}
	}
	if err := session.Close(); err != nil {
		return err
	}
	_, err = request(http.MethodDelete, base+"/v1/apps/"+app, nil) // the suite waits until the app's connections are closed
	return err
}

// tool is a tool of the scenario's server, as the Ropewalk server lists it.
type tool struct {
	Name       string // the full name
	Tool       string // the name on the scenario's server
	Definition struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	}
}

func toolsOf(base, app string) ([]tool, error) {
	listed, err := request(http.MethodGet, base+"/v1/tools?server="+app, nil)
	if err != nil {
		return nil, err
	}
	var offered struct{ Tools []tool }
	err = json.Unmarshal(listed, &offered)
	return offered.Tools, err
}

// scenarioCalls returns the calls that the scenario prescribes, or else one call for each tool of the scenario's
// server.
func scenarioCalls(base, app string) (calls []*mcp.CallToolParams, err error) {
	offered, err := toolsOf(base, app)
	if err != nil {
		return nil, err
	}
	var prescribed struct {
		ToolCalls []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &prescribed) == nil && len(prescribed.ToolCalls) > 0 {
		for _, c := range prescribed.ToolCalls {
			calls = append(calls, &mcp.CallToolParams{Name: app + "__" + c.Name, Arguments: c.Arguments})
		}
		return calls, nil
	}
	for _, t := range offered {
		calls = append(calls, &mcp.CallToolParams{Name: t.Name, Arguments: argumentsOf(t.Tool, offered)})
	}
	return calls, nil
}

// argumentsOf returns the arguments that the scenarios require for a tool.
func argumentsOf(name string, tools []tool) map[string]any {
	switch name {
	case "add_numbers":
		return map[string]any{"a": 5, "b": 3}
	case "valid_tool":
		return map[string]any{"region": "us-west1"}
	case "lookup_user":
		return map[string]any{"id": "alice"}
	case "json_schema_echo": // the other tool's schema, exactly as the server received it
		for _, other := range tools {
			if other.Tool == "json_schema_2020_12_tool" {
				return map[string]any{"schema": other.Definition.InputSchema}
			}
		}
	}
	return map[string]any{}
}

func request(method, url string, body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s %s", url, resp.Status, answer)
	}
	return answer, err
}
