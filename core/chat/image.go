package chat

import (
	"bytes"
	"context"
	"crypto/sha256"
	"image"
	_ "image/gif" // the decoder
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // the decoder

	"github.com/ropewalk/ropewalk/core/chat/model"
)

const (
	imageEdge   = 1568            // maximum pixels of the longer edge; Anthropic scales larger images down
	imageLimit  = 5 << 20 / 4 * 3 // bytes per image sent to a model: 5 MiB in base64, Anthropic's limit
	longestEdge = 8000            // Anthropic's limit, in pixels
	manyImages  = 20              // with more images in a request, the limit is manyEdge
	manyEdge    = 2000
	imagePixels = 20_000_000

	scaledKept  = 32      // scaled images in the cache
	scaledBytes = 1 << 20 // per image in the cache; an opaque PNG above this size is sent as JPEG
	jpegQuality = 90
)

// imageScaler scales the images of tool results down to a size that models use, and attached images that providers would
// reject. It decodes one image at a time, because a small file can decode to an image that needs a lot of memory.
type imageScaler struct {
	turn   chan struct{}
	scaled *lru.Cache[[sha256.Size]byte, model.Block] // by the hash of the original
}

func newImageScaler() *imageScaler {
	scaled, _ := lru.New[[sha256.Size]byte, model.Block](scaledKept) // it only fails for sizes below 1
	return &imageScaler{turn: make(chan struct{}, 1), scaled: scaled}
}

// fitAll scales the latest images in the tool results and removes the others. It scales attached images only if they
// are too large, and corrects their types, because browsers derive them from the file name.
func (s *imageScaler) fitAll(ctx context.Context, messages []model.Message) []model.Message {
	out := withLatestImages(messages)
	edge := longestEdge
	if countImages(out) > manyImages {
		edge = manyEdge
	}
	for i := range out {
		for j := range out[i].Blocks {
			b := out[i].Blocks[j]
			switch {
			case len(b.Files) > 0:
				b.Files = s.fit(ctx, b.Files)
			case b.Kind == model.File && b.IsImage() && len(b.Data) > 0:
				b = s.fitAttached(ctx, b, edge)
			default:
				continue
			}
			out[i].Blocks = slices.Clone(out[i].Blocks)
			out[i].Blocks[j] = b
		}
	}
	return out
}

// fit scales down images that are larger than models use. It drops images that have too many bytes to send, or
// too many pixels to decode.
func (s *imageScaler) fit(ctx context.Context, images []model.Block) (fitted []model.Block) {
	for _, b := range images {
		about, _, err := image.DecodeConfig(bytes.NewReader(b.Data))
		switch {
		case err == nil && about.Width*about.Height > imagePixels:
			continue
		case err == nil && max(about.Width, about.Height) > imageEdge:
			b = s.smaller(ctx, b)
		}
		if len(b.Data) <= imageLimit {
			fitted = append(fitted, b)
		}
	}
	return fitted
}

func countImages(messages []model.Message) (n int) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			n += len(b.Files)
			if b.Kind == model.File && b.IsImage() {
				n++
			}
		}
	}
	return n
}

// fitAttached returns an attached image in a form that providers accept, if possible.
func (s *imageScaler) fitAttached(ctx context.Context, b model.Block, edge int) model.Block {
	if media := http.DetectContentType(b.Data); isForModels(media) {
		b.MIMEType = media
	}
	about, _, err := image.DecodeConfig(bytes.NewReader(b.Data))
	if err == nil && about.Width*about.Height <= imagePixels && (len(b.Data) > imageLimit || max(about.Width, about.Height) > edge) {
		b = s.smaller(ctx, b)
	}
	return b
}

// smaller returns the image re-encoded with at most imageEdge pixels on an edge, or the image unchanged if it
// cannot be decoded.
func (s *imageScaler) smaller(ctx context.Context, b model.Block) model.Block {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return b
	}
	sum := sha256.Sum256(b.Data)
	if known, ok := s.scaled.Get(sum); ok {
		b.Data, b.MIMEType = known.Data, known.MIMEType
		return b
	}
	whole, _, err := image.Decode(bytes.NewReader(b.Data))
	if err != nil {
		return b
	}
	size := whole.Bounds().Size()
	edge := max(size.X, size.Y)
	to := min(edge, imageEdge)
	small := image.NewNRGBA(image.Rect(0, 0, max(size.X*to/edge, 1), max(size.Y*to/edge, 1)))
	draw.BiLinear.Scale(small, small.Bounds(), whole, whole.Bounds(), draw.Src, nil)
	encoded, media, err := encode(small, b.MIMEType)
	if err != nil {
		return b
	}
	b.Data, b.MIMEType = encoded, media
	if len(encoded) <= scaledBytes {
		s.scaled.Add(sum, model.Block{Data: encoded, MIMEType: media})
	}
	return b
}

// encode returns the encoded image and its media type. The result is a JPEG if the original was one, or if the image
// is opaque and its PNG would be too large; otherwise it is a PNG.
func encode(m *image.NRGBA, media string) ([]byte, string, error) {
	var out bytes.Buffer
	if media != "image/jpeg" {
		err := png.Encode(&out, m)
		if err != nil || out.Len() <= scaledBytes || !m.Opaque() {
			return out.Bytes(), "image/png", err
		}
		out.Reset()
	}
	err := jpeg.Encode(&out, m, &jpeg.Options{Quality: jpegQuality})
	return out.Bytes(), "image/jpeg", err
}
