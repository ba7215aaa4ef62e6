package model

import (
	"fmt"
	"mime"
	"slices"
	"strings"
)

// IsImage reports whether a File is a raster image. A vector image (SVG) is text.
func (b Block) IsImage() bool { return strings.HasPrefix(b.MIMEType, "image/") && !b.IsText() }

// IsText reports whether a File can be passed to a model as text.
func (b Block) IsText() bool {
	media, _, err := mime.ParseMediaType(b.MIMEType)
	if err != nil {
		return false
	}
	switch media {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript", "application/sql":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
}

// WithoutFiles returns messages with notes in place of the images and documents, and whether there were any.
func WithoutFiles(messages []Message) (out []Message, had bool) {
	out = slices.Clone(messages)
	for i := range out {
		out[i].Blocks = slices.Clone(out[i].Blocks)
		for j := range out[i].Blocks {
			switch b := &out[i].Blocks[j]; {
			case b.Kind == File && !b.IsText():
				*b, had = Block{Kind: Text, Text: "[The file " + b.Name + " was left out: it cannot be read.]"}, true
			case len(b.Files) > 0:
				b.Text, b.Files, had = strings.TrimLeft(b.Text+"\n\n[The images of this result were left out: they cannot be read.]", "\n"), nil, true
			}
		}
	}
	return out, had
}

// FileText returns the content of a text File, wrapped in an element with its name.
func (b Block) FileText() string {
	return fmt.Sprintf("<attachment name=%q>\n%s\n</attachment>", b.Name, strings.ToValidUTF8(string(b.Data), "\ufffd"))
}
