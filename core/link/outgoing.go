package link

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/core/headerparam"
	"github.com/ropewalk/ropewalk/core/link/framing"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// The members that a request of StatelessVersion has in params._meta.
const (
	reserved         = "io.modelcontextprotocol/"
	metaVersion      = reserved + "protocolVersion"
	metaClient       = reserved + "clientInfo"
	metaCapabilities = reserved + "clientCapabilities"
	metaLogLevel     = reserved + "logLevel"
)

// outgoing checks r and prepares it to be sent: on a stateless connection params._meta names the revision
// and the client, and on others such members are removed. A trace context is added.
func (l *Link) outgoing(r Request, trace tracing.Wire) (framing.Request, error) {
	out, at, err := framing.ReadRequest(r.Method, r.Params)
	if err == nil && trace.Parent != "" {
		out, at, err = withoutTrace(out, at)
	}
	if err != nil {
		return out, err
	}
	meta := at.In(out.Params)
	switch {
	case l.info.Stateless:
		if version, err := findIn(meta, metaVersion); err != nil || version.Empty() {
			params, err := l.withClientMeta(out.Params, meta, r.Capabilities)
			if err != nil {
				return out, fmt.Errorf("%w: %w", ErrParams, err)
			}
			if out, at, err = framing.ReadRequest(r.Method, params); err != nil {
				return out, err
			}
		}
		out.Header = headerparam.Header(r.Mirrors, r.Params)
	case bytes.Contains(meta, []byte(reserved)) || bytes.IndexByte(meta, '\\') >= 0: // a name may be written with escapes
		plain, err := rawjson.Without(meta, metaVersion, metaClient, metaCapabilities, metaLogLevel)
		if err != nil {
			return out, fmt.Errorf("%w: %w", ErrParams, err)
		}
		if out, at, err = framing.ReadRequest(r.Method, rawjson.Replace(out.Params, at, plain)); err != nil {
			return out, err
		}
	}
	if trace.Parent != "" {
		out.AddMeta(at, traceMembers(trace))
	}
	return out, nil
}

// findIn is rawjson.Find for an object that may be nil, in which nothing is found.
func findIn(object []byte, name string) (rawjson.Span, error) {
	if object == nil {
		return rawjson.Span{}, nil
	}
	return rawjson.Find(object, name)
}

// withClientMeta returns params with the members that a stateless request must have in _meta. meta is their
// present _meta, nil for none.
func (l *Link) withClientMeta(params, meta []byte, capabilities json.RawMessage) ([]byte, error) {
	if len(capabilities) == 0 {
		capabilities = json.RawMessage("{}")
	}
	client, _ := json.Marshal(map[string]string{"name": "ropewalk", "version": l.o.Version}) // strings always marshal
	if meta == nil {
		meta = []byte("{}")
	}
	completed, err := rawjson.Set(meta,
		rawjson.Member{Name: metaVersion, Value: json.RawMessage(`"` + StatelessVersion + `"`)},
		rawjson.Member{Name: metaClient, Value: client},
		rawjson.Member{Name: metaCapabilities, Value: capabilities})
	if err != nil {
		return nil, err
	}
	if len(params) == 0 {
		params = []byte("{}")
	}
	return rawjson.Set(params, rawjson.Member{Name: "_meta", Value: completed})
}
