package api_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
)

// quarters returns an image of four colors: red and green above blue and white.
func quarters(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, []color.Color{red, green, blue, white}[x*2/w+y*2/h*2])
		}
	}

	return m
}

var (
	red     = color.NRGBA{255, 0, 0, 255}
	green   = color.NRGBA{0, 255, 0, 255}
	blue    = color.NRGBA{0, 0, 255, 255}
	white   = color.NRGBA{255, 255, 255, 255}
	nothing = color.NRGBA{}
)

func asPNG(t *testing.T, m image.Image) string {
	t.Helper()

	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}

	return out.String()
}

// asJPEG encodes a JPEG with additional segments in front of the image, each starting with its
// marker.
func asJPEG(t *testing.T, m image.Image, segments ...string) string {
	t.Helper()

	var out bytes.Buffer
	if err := jpeg.Encode(&out, m, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}

	text := out.String()
	front := text[:2]
	for _, s := range segments {
		front += "\xff" + s[:1] + string(binary.BigEndian.AppendUint16(nil, uint16(len(s)+1))) + s[1:]
	}

	return front + text[2:]
}

// exif returns an EXIF segment with an orientation and a location.
func exif(order binary.AppendByteOrder, orientation uint16) string {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}

	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(order.AppendUint16(b, 0x010e), 2) // a description, stored after the directory
	b = order.AppendUint32(order.AppendUint32(b, uint32(len(secretPlace))), 38)
	b = order.AppendUint16(order.AppendUint16(b, 0x0112), 3)
	b = order.AppendUint32(b, 1)
	b = order.AppendUint16(order.AppendUint16(b, orientation), 0)
	b = order.AppendUint32(b, 0)

	return string(b) + secretPlace
}

const secretPlace = "52.5200 N 13.4050 E"

// profile returns the minimum of a valid color profile, padded to a size in bytes.
func profile(size int) string {
	p := bytes.Repeat([]byte("colour "), size/7+1)[:size]
	copy(p[16:], "RGB ")
	copy(p[36:], "acsp")

	return string(p)
}

// chunk returns a chunk of a PNG.
func chunk(kind, data string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(b, kind+data...)

	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])))
}

func deflated(t *testing.T, text []byte) string {
	t.Helper()

	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return out.String()
}

// headerPNG returns a PNG with a size and chunks, but no pixels.
func headerPNG(w, h uint32, chunks ...string) string {
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	text := "\x89PNG\r\n\x1a\n" + chunk("IHDR", string(size)+"\x08\x06\x00\x00\x00")
	for _, c := range chunks {
		text += c
	}

	return text + chunk("IEND", "")
}

// asGIF returns an animation. Its first frame covers the right half of the screen.
func asGIF(t *testing.T) string {
	t.Helper()

	first, second := image.NewPaletted(image.Rect(20, 0, 40, 20),
		palette.Plan9), image.NewPaletted(image.Rect(0, 0, 40, 20), palette.Plan9)
	for i := range first.Pix {
		first.Pix[i] = uint8(first.Palette.Index(red))
	}

	for i := range second.Pix {
		second.Pix[i] = uint8(second.Palette.Index(blue))
	}

	var out bytes.Buffer
	if err := gif.EncodeAll(&out, &gif.GIF{Image: []*image.Paletted{first, second}, Delay: []int{10, 10},
		Config: image.Config{ColorModel: first.Palette, Width: 40, Height: 20}}); err != nil {
		t.Fatal(err)
	}

	return out.String()
}

// asWebP returns an image of one color, in which every symbol has a code of zero bits.
func asWebP(w, h int, c color.NRGBA, chunks ...string) string {
	var stream uint64
	bits, data := 0, []byte{0x2f}
	add := func(v uint64, n int) {
		stream |= v << bits
		for bits += n; bits >= 8; bits -= 8 {
			data = append(data, byte(stream))
			stream >>= 8
		}
	}

	add(uint64(w-1), 14)
	add(uint64(h-1), 14)
	add(1, 1) // alpha is used
	add(0, 3+1+1+1)

	for _, value := range []uint8{c.G, c.R, c.B, c.A} {
		add(1|0<<1|1<<2, 3)
		add(uint64(value), 8)
	}

	add(1, 4)
	data = append(data, byte(stream), 0)
	whole := "WEBP" +
		riff("VP8X",
			string([]byte{0x18, 0, 0, 0, byte(w - 1), byte((w - 1) >> 8), 0, byte(h - 1), byte((h - 1) >> 8), 0})) +
		riff("VP8L", string(data))

	for _, c := range chunks {
		whole += c
	}

	return riff("RIFF", whole)
}

func riff(kind, data string) string {
	text := kind + string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + data
	if len(data)%2 == 1 {
		text += "\x00"
	}

	return text
}
