package chat

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// picture returns an image of the given size: plain, with some noise, or transparent.
func picture(width, height int, noise, transparent bool) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(1, 2))
	for y := range height {
		for x := range width {
			c := color.NRGBA{uint8(x), uint8(y), 100, 255}
			if noise {
				c.R, c.G, c.B = uint8(random.Uint32()), uint8(random.Uint32()), uint8(random.Uint32())
			}
			if transparent && x > width/2 {
				c.A = 0
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

func file(t *testing.T, media string, m image.Image) model.Block {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch media {
	case "image/png":
		err = png.Encode(&out, m)
	case "image/jpeg":
		err = jpeg.Encode(&out, m, nil)
	case "image/gif":
		err = gif.Encode(&out, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return model.Block{Kind: model.File, Name: "n", MIMEType: media, Data: out.Bytes()}
}

// bomb returns a small PNG file that claims to have many pixels.
func bomb(width, height uint32) model.Block {
	var out bytes.Buffer
	out.WriteString("\x89PNG\r\n\x1a\n")
	chunk := func(name string, data []byte) {
		_ = binary.Write(&out, binary.BigEndian, uint32(len(data)))
		body := append([]byte(name), data...)
		out.Write(body)
		_ = binary.Write(&out, binary.BigEndian, crc32.ChecksumIEEE(body))
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	chunk("IHDR", append(header, 8, 6, 0, 0, 0))
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	chunk("IDAT", packed.Bytes())
	chunk("IEND", nil)
	return model.Block{Kind: model.File, MIMEType: "image/png", Data: out.Bytes()}
}

func TestImagesInResultsAreScaledToWhatModelsCanSee(t *testing.T) {
	s := newImageScaler()
	broken := file(t, "image/png", picture(2000, 10, false, false))
	broken.Data = broken.Data[:len(broken.Data)-40]
	for name, c := range map[string]struct {
		of            model.Block
		width, height int // 0 if it is not sent; -1 if it cannot be decoded
		media         string
	}{
		"a small one":              {file(t, "image/png", picture(1568, 20, false, false)), 1568, 20, "image/png"},
		"a wide one":               {file(t, "image/png", picture(3136, 100, false, false)), 1568, 50, "image/png"},
		"a tall one":               {file(t, "image/jpeg", picture(40, 4000, false, false)), 15, 1568, "image/jpeg"},
		"a narrow one":             {file(t, "image/png", picture(1, 8000, false, false)), 1, 1568, "image/png"},
		"a GIF":                    {file(t, "image/gif", picture(1600, 200, false, false)), 1568, 196, "image/png"},
		"a transparent one":        {file(t, "image/png", picture(2000, 100, true, true)), 1568, 78, "image/png"},
		"one of more than 5 MiB":   {file(t, "image/png", picture(2000, 1000, true, false)), 1568, 784, "image/jpeg"},
		"a JPEG":                   {file(t, "image/jpeg", picture(1700, 1700, true, false)), 1568, 1568, "image/jpeg"},
		"too many pixels":          {bomb(50_000, 50_000), 0, 0, ""},
		"slightly too many pixels": {bomb(20_000, 1001), 0, 0, ""},
		"a truncated one":          {broken, 2000, 10, "image/png"},
		"not an image":             {model.Block{MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\nx")}, -1, 0, "image/png"},
	} {
		original := bytes.Clone(c.of.Data)
		for range 2 { // the second time, the result is cached
			got := s.fit(t.Context(), []model.Block{c.of})
			if !bytes.Equal(c.of.Data, original) {
				t.Fatalf("%s: the original was changed", name)
			}
			if c.width == 0 {
				if len(got) != 0 {
					t.Errorf("%s was sent", name)
				}
				continue
			}
			if len(got) != 1 || got[0].MIMEType != c.media || got[0].Kind != c.of.Kind || got[0].Name != c.of.Name {
				t.Fatalf("%s: %d images", name, len(got))
			}
			about, format, err := image.DecodeConfig(bytes.NewReader(got[0].Data))
			if c.width > 0 && (err != nil || about.Width != c.width || about.Height != c.height || "image/"+format != c.media) {
				t.Errorf("%s: %s of %d x %d, %v", name, format, about.Width, about.Height, err)
			}
			if c.width < 0 && !bytes.Equal(got[0].Data, original) {
				t.Errorf("%s was changed", name)
			}
		}
	}
	large := file(t, "image/png", picture(1500, 1500, true, false))
	if got := s.fit(t.Context(), []model.Block{large}); len(large.Data) <= imageLimit || len(got) != 0 {
		t.Errorf("an image of %d bytes that is small enough in pixels was sent in %d blocks", len(large.Data), len(got))
	}
}

func TestAttachedImagesAreOnlyScaledIfTheyAreTooLarge(t *testing.T) {
	large := file(t, "image/png", picture(2000, 10, false, false))
	messages := []model.Message{{Role: model.User, Blocks: []model.Block{large, {Kind: model.ToolResult, ID: "1", Files: []model.Block{large}}}}}
	got := newImageScaler().fitAll(t.Context(), messages)
	if !bytes.Equal(got[0].Blocks[0].Data, large.Data) || bytes.Equal(got[0].Blocks[1].Files[0].Data, large.Data) {
		t.Error("the attachment was scaled, or the image of the result was not")
	}
	if !bytes.Equal(messages[0].Blocks[1].Files[0].Data, large.Data) {
		t.Error("the messages were changed")
	}
}

func TestAttachedImagesThatProvidersRejectAreSentInAnotherForm(t *testing.T) {
	heavy := file(t, "image/png", picture(1500, 1500, true, false))
	mistaken := file(t, "image/png", picture(10, 10, false, false))
	mistaken.MIMEType = "image/jpeg"
	for name, c := range map[string]struct {
		of          model.Block
		same        bool
		media       string
		edge, bytes int // at most
	}{
		"too many bytes": {heavy, false, "image/jpeg", 1500, imageLimit},
		"too wide":       {file(t, "image/png", picture(8001, 10, false, false)), false, "image/png", imageEdge, imageLimit},
		"a wrong type":   {mistaken, true, "image/png", 10, imageLimit},
		"not an image":   {model.Block{Kind: model.File, MIMEType: "image/png", Data: []byte("words")}, true, "image/png", 0, 5},
	} {
		got := newImageScaler().fitAll(t.Context(), []model.Message{{Role: model.User, Blocks: []model.Block{c.of}}})[0].Blocks[0]
		about, _, _ := image.DecodeConfig(bytes.NewReader(got.Data))
		if bytes.Equal(got.Data, c.of.Data) != c.same || got.MIMEType != c.media || max(about.Width, about.Height) > c.edge || len(got.Data) > c.bytes {
			t.Errorf("%s: %s of %d x %d, %d bytes", name, got.MIMEType, about.Width, about.Height, len(got.Data))
		}
	}
}

// https://docs.anthropic.com/en/docs/build-with-claude/vision: with more than 20 images, none may exceed 2000 pixels.
func TestManyAttachedImagesAreScaledMore(t *testing.T) {
	wide := file(t, "image/png", picture(2001, 10, false, false))
	for n, same := range map[int]bool{manyImages: true, manyImages + 1: false} {
		got := newImageScaler().fitAll(t.Context(), []model.Message{{Role: model.User, Blocks: slices.Repeat([]model.Block{wide}, n)}})
		if bytes.Equal(got[0].Blocks[n-1].Data, wide.Data) != same {
			t.Errorf("the last of %d images: unchanged is %v", n, !same)
		}
	}
}
