package link

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// What a request of StatelessVersion says of itself in params._meta.
const (
	reserved         = "io.modelcontextprotocol/"
	metaVersion      = reserved + "protocolVersion"
	metaClient       = reserved + "clientInfo"
	metaCapabilities = reserved + "clientCapabilities"
	metaLogLevel     = reserved + "logLevel"
)

// outgoing makes r ready to be sent: its params name the revision and the client where the connection's
// revision wants that, and do not where it knows no such fields.
func (l *Link) outgoing(r Request) (request, error) {
	out, at, err := readRequest(r.Method, r.Params)
	if err != nil {
		return out, err
	}
	meta := at.In(r.Params)
	switch {
	case l.info.Stateless:
		if version, err := findIn(meta, metaVersion); err != nil || version.Empty() {
			params, err := l.stamped(r, meta)
			if err != nil {
				return out, fmt.Errorf("%w: %w", ErrParams, err)
			}
			if out, err = newRequest(r.Method, params); err != nil {
				return out, err
			}
		}
		out.header = mirrored(r.Mirrors, r.Params)
	case bytes.Contains(meta, []byte(reserved)) || bytes.IndexByte(meta, '\\') >= 0: // a name can be written with escapes
		plain, err := rawjson.Without(meta, metaVersion, metaClient, metaCapabilities, metaLogLevel)
		if err != nil {
			return out, fmt.Errorf("%w: %w", ErrParams, err)
		}
		return newRequest(r.Method, rawjson.Replace(r.Params, at, plain))
	}
	return out, nil
}

// findIn is rawjson.Find, and finds nothing in an object that is not there.
func findIn(object []byte, name string) (rawjson.Span, error) {
	if object == nil {
		return rawjson.Span{}, nil
	}
	return rawjson.Find(object, name)
}

// stamped is r's params with what a stateless request must say of its client in _meta. meta is the
// _meta they have, nil for none.
func (l *Link) stamped(r Request, meta []byte) ([]byte, error) {
	capabilities := r.Capabilities
	if len(capabilities) == 0 {
		capabilities = json.RawMessage("{}")
	}
	client, _ := json.Marshal(map[string]string{"name": "ropewalk", "version": l.o.Version}) // strings always marshal
	if meta == nil {
		meta = []byte("{}")
	}
	stamped, err := rawjson.Set(meta,
		rawjson.Member{Name: metaVersion, Value: json.RawMessage(`"` + StatelessVersion + `"`)},
		rawjson.Member{Name: metaClient, Value: client},
		rawjson.Member{Name: metaCapabilities, Value: capabilities})
	if err != nil {
		return nil, err
	}
	params := r.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return rawjson.Set(params, rawjson.Member{Name: "_meta", Value: stamped})
}
