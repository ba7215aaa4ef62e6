package tools

import (
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// CheckForm holds what a person filled in against the schema that an app asked with (elicitation,
// form mode): core.CodeInvalidInput with every violation in its details. Formats count here, since
// MCP names those that a form may ask for. With a schema that is none, any object fits.
func (n *Namespace) CheckForm(schema, content json.RawMessage) error {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return n.inputs.fits("the fields of content", "what the app asks for", content, compile(schema, c))
}
