package chat

import (
	"bytes"
	"context"
	"crypto/sha256"
	"image"
	_ "image/gif" // the decoder
	"image/jpeg"
	"image/png"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // the decoder

	"github.com/ropewalk/ropewalk/core/chat/model"
)

const (
	imageEdge   = 1568    // maximum pixels of the longer edge; Anthropic scales larger images down
	imageLimit  = 5 << 20 // bytes per image sent to a model: Anthropic's limit
	imagePixels = 20_000_000

	scaledKept  = 32      // scaled images in the cache
	scaledBytes = 1 << 20 // per image in the cache; an opaque PNG above this size is sent as JPEG
	jpegQuality = 90
)

// imageScaler scales the images of tool results down to a size that models use. It decodes one image at a time,
// because a small file can decode to an image that needs a lot of memory.
type imageScaler struct {
	turn   chan struct{}
	scaled *lru.Cache[[sha256.Size]byte, model.Block] // by the hash of the original
}

func newImageScaler() *imageScaler {
	scaled, _ := lru.New[[sha256.Size]byte, model.Block](scaledKept) // it only fails for sizes below 1
	return &imageScaler{turn: make(chan struct{}, 1), scaled: scaled}
}

// fitResults scales the latest images in the tool results and removes the others.
func (s *imageScaler) fitResults(ctx context.Context, messages []model.Message) []model.Message {
	out := withLatestImages(messages)
	for i := range out {
		for j := range out[i].Blocks {
			if files := out[i].Blocks[j].Files; len(files) > 0 {
				out[i].Blocks = slices.Clone(out[i].Blocks)
				out[i].Blocks[j].Files = s.fit(ctx, files)
			}
		}
	}
	return out
}

// fit scales down the images that are larger than models use. It drops images that have too many bytes to send, or
// too many pixels to decode.
func (s *imageScaler) fit(ctx context.Context, images []model.Block) (fitting []model.Block) {
	for _, b := range images {
		about, _, err := image.DecodeConfig(bytes.NewReader(b.Data))
		switch {
		case err == nil && about.Width*about.Height > imagePixels:
			continue
		case err == nil && max(about.Width, about.Height) > imageEdge:
			b = s.smaller(ctx, b)
		}
		if len(b.Data) <= imageLimit {
			fitting = append(fitting, b)
		}
	}
	return fitting
}

// smaller returns the image scaled down to imageEdge, or the image unchanged if it cannot be decoded.
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
	small := image.NewNRGBA(image.Rect(0, 0, max(size.X*imageEdge/edge, 1), max(size.Y*imageEdge/edge, 1)))
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
