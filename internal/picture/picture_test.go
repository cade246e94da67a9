package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"
	"strconv"
	"testing"
	"testing/iotest"
	"unsafe"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

// photo returns a JPEG of the given size with content.
func photo(t testing.TB, w, h int) []byte {
	t.Helper()

	m := image.NewYCbCr(image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio420)
	for i := range m.Y {
		m.Y[i] = uint8(i*7 ^ i>>9)
	}

	for i := range m.Cb {
		m.Cb[i], m.Cr[i] = uint8(i>>4), uint8(i>>8)
	}

	var out bytes.Buffer
	if err := jpeg.Encode(&out, m, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }

func opener(b []byte) func(context.Context) (io.ReadSeekCloser, error) {
	return func(context.Context) (io.ReadSeekCloser, error) { return nopCloser{bytes.NewReader(b)}, nil }
}

// BenchmarkMake scales photos of a phone, and the largest permitted picture. Allocations are about
// the peak memory.
func BenchmarkMake(b *testing.B) {
	drawing := image.NewNRGBA(image.Rect(0, 0, 4000, 3000))
	for i := range drawing.Pix {
		drawing.Pix[i] = uint8(i >> 10)
	}

	var drawn bytes.Buffer
	if err := png.Encode(&drawn, drawing); err != nil {
		b.Fatal(err)
	}

	for _, bb := range []struct {
		name   string
		source []byte
		width  int
	}{
		{"JPEG of 12 MP to 800", photo(b, 4000, 3000), 800}, {"JPEG of 12 MP to 80", photo(b, 4000, 3000), 80},
		{"PNG of 12 MP to 800", drawn.Bytes(), 800}, {"JPEG of 50 MP to 4096", photo(b, 8192, 6100), 4096},
	} {
		b.Run(bb.name, func(b *testing.B) {
			m := NewMaker()
			b.ReportAllocs()

			for b.Loop() {
				if _, err := m.Make(b.Context(), fair.Key{}, int64(len(bb.source)), opener(bb.source),
					Spec{Width: bb.width}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		spec          Spec
		width, height int // of the source
		want          layout
	}{
		{Spec{Width: 400}, 4000, 3000, layout{0, 0, 4000, 3000, 400, 300}},
		{Spec{Height: 400}, 4000, 3000, layout{0, 0, 4000, 3000, 533, 400}},
		{Spec{Width: 400, Height: 400}, 4000, 3000, layout{500, 0, 3000, 3000, 400, 400}},
		{Spec{Width: 400, Height: 400, Fit: Contain}, 4000, 3000, layout{0, 0, 4000, 3000, 400, 300}},
		{Spec{Width: 400, Height: 400, Fit: Fill}, 4000, 3000, layout{0, 0, 4000, 3000, 400, 400}},
		{Spec{Width: 4000}, 100, 50, layout{0, 0, 100, 50, 100, 50}},
		{Spec{Width: 200, Height: 100}, 100, 100, layout{0, 25, 100, 50, 100, 50}},
		{Spec{Width: 200, Height: 100, Fit: Fill}, 100, 100, layout{0, 0, 100, 100, 100, 50}},
		{Spec{}, 100, 50, layout{0, 0, 100, 50, 100, 50}},
		{Spec{}, 8192, 50, layout{0, 0, 8192, 50, 4096, 25}},
		{Spec{Width: 10}, 10_000, 1, layout{0, 0, 10_000, 1, 10, 1}},
		{Spec{Width: 4096, Height: 1}, 1, 4096, layout{0, 2047.5, 1, 1, 1, 1}},
	} {
		if got := tt.spec.clean().layout(tt.width, tt.height); got != tt.want {
			t.Errorf("%+v of %d × %d: got %+v, want %+v", tt.spec, tt.width, tt.height, got, tt.want)
		}
	}
}

// TestKey checks that equivalent specs have one key, and others different keys.
func TestKey(t *testing.T) {
	t.Parallel()

	same := [][]Spec{
		{{Width: 10}, {Width: 10, Fit: Contain}, {Width: 10, Fit: Fill}, {Width: 10, Quality: DefaultQuality}},
		{{Width: 10, Height: 10}, {Width: 10, Height: 10, Fit: Cover}},
		{{Format: PNG}, {Format: PNG, Quality: 3}},
		{{Width: 10, Height: 10, Fit: Contain}}, {{Height: 10}}, {{Format: JPEG}}, {{Width: 10, Quality: 3}},
	}

	seen := map[string]bool{}
	for _, specs := range same {
		key := specs[0].CacheKey()
		if seen[key] {
			t.Errorf("%+v: got the key of another spec: %q", specs[0], key)
		}

		seen[key] = true

		for _, s := range specs {
			if got := s.CacheKey(); got != key {
				t.Errorf("%+v: got %q, want %q", s, got, key)
			}
		}
	}
}

// TestScale checks that a uniform color is preserved at any size, to the edge, and that averages
// are preserved.
func TestScale(t *testing.T) {
	t.Parallel()

	for _, size := range [][2]int{{100, 80}, {99, 79}, {50, 40}, {7, 3}, {1, 1}} {
		m := image.NewNRGBA(image.Rect(0, 0, 100, 80))
		for i := range 100 * 80 {
			m.SetNRGBA(i%100, i/100, color.NRGBA{200, 100, 50, 128})
		}

		got := scale(t.Context(), m, layout{0, 0, 100, 80, size[0], size[1]})
		want := color.RGBAModel.Convert(color.NRGBA{200, 100, 50, 128})
		for y := range size[1] {
			for x := range size[0] {
				if c := got.RGBAAt(x, y); c != want {
					t.Fatalf("%v: got %v at %d, %d, want %v", size, c, x, y, want)
				}
			}
		}
	}

	checks := image.NewGray(image.Rect(0, 0, 1024, 1024)) // of one pixel: scaled down it is gray
	for i := range checks.Pix {
		checks.Pix[i] = uint8(255 * ((i + i/1024) & 1))
	}

	for _, p := range scale(t.Context(), checks, layout{0, 0, 1024, 1024, 100, 100}).Pix {
		if p != 255 && (p < 120 || p > 135) {
			t.Fatalf("black and white checks: got %d, want gray", p)
		}
	}

	// transparent pixels have no color, and don't affect the color of their neighbors
	far := image.NewRGBA(image.Rect(0, 0, 40, 40))
	far.SetRGBA(20, 20, color.RGBA{255, 0, 0, 255})
	scaled := scale(t.Context(), far, layout{0, 0, 40, 40, 10, 10})
	for i := 0; i < len(scaled.Pix); i += 4 {
		if p := scaled.Pix[i:][:4]; p[0] > p[3] || p[1] > 0 || p[2] > 0 {
			t.Fatalf("got %v", p)
		}
	}
}

// TestTurn checks that a mark stored where EXIF puts the upper left corner is in the upper left
// corner of the result.
func TestTurn(t *testing.T) {
	t.Parallel()

	for o, at := range map[int]image.Point{
		1: {0, 0}, 2: {2, 0}, 3: {2, 1}, 4: {0, 1}, 5: {0, 0}, 6: {0, 1}, 7: {2, 1}, 8: {2, 0},
	} {
		stored := image.NewRGBA(image.Rect(0, 0, 3, 2))
		stored.SetRGBA(at.X, at.Y, color.RGBA{255, 0, 0, 255})
		got := applyOrientation(stored, o)
		want := image.Pt(3, 2)
		if o >= 5 {
			want = image.Pt(2, 3)
		}

		if got.Rect.Max != want || got.RGBAAt(0, 0).R != 255 {
			t.Errorf("orientation %s: got %v of %v, want the mark first, of %v", strconv.Itoa(o), got.Pix,
				got.Rect, want)
		}
	}
}

// TestScaleCountsItsMemory checks that the memory estimate covers the tables for any proportions.
func TestScaleCountsItsMemory(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		width, height, to int
	}{{4000, 3000, 800}, {4096, 4096, 4096}, {1_000_000, 1, 4096}, {1, 1_000_000, 4096}, {500_000, 2, 1}} {
		l := Spec{Width: test.to, Height: test.to, Fit: Fill}.layout(test.width, test.height)
		taken := 4*int64(test.width) + 16*int64(l.width)
		for _, all := range [][]tap{taps(l.x, l.w, l.width, test.width), taps(l.y, l.h, l.height, test.height)} {
			for _, one := range all {
				taken += int64(unsafe.Sizeof(one)) + 4*int64(len(one.weights))
			}
		}

		if counted := l.memory(test.width, test.height); counted < taken || counted > 2*taken+1<<20 {
			t.Errorf("%d × %d to %d: got an estimate of %d bytes, want about %d",
				test.width, test.height, test.to, counted, taken)
		}
	}
}

// pngHead returns the start of a gray PNG, without its pixels.
func pngHead(width, height uint32) []byte {
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")

	for _, chunk := range []struct{ kind, data string }{
		{"IHDR",
			string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)) +
				"\x08\x00\x00\x00\x00"}, {"IDAT", "\x78"},
	} {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(chunk.data))))
		b.WriteString(chunk.kind + chunk.data)
		b.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(chunk.kind+chunk.data))))
	}

	return b.Bytes()
}

// TestExtremeProportions checks that pictures with tables beyond the memory budget are rejected by
// their heads. It is not parallel, since it measures allocations.
func TestExtremeProportions(t *testing.T) {
	maker := NewMaker()
	for _, size := range [][2]uint32{{50_000_000, 1}, {1, 50_000_000}, {25_000_000, 2}, {65_535, 65_535}} {
		source := pngHead(size[0], size[1])
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)

		_, err := maker.Make(t.Context(), fair.Key{}, int64(len(source)), opener(source), Spec{Width: 4096})
		runtime.ReadMemStats(&after)

		if f, ok := errors.AsType[*fault.Error](err); !ok || f.CodeWord() != "too_many_pixels" {
			t.Errorf("%d × %d: got %v, want too_many_pixels", size[0], size[1], err)
		}
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 8 {
			t.Errorf("%d × %d: got %d MB allocated", size[0], size[1], got)
		}
	}

	truncated := pngHead(1000, 1000)
	if _, err := maker.Make(t.Context(), fair.Key{}, int64(len(truncated)), opener(truncated),
		Spec{Width: 10}); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("truncated: got %v, want Unprocessable", err)
	}
}

// TestScalingEndsWithItsContext checks that scaling stops when its context ends.
func TestScalingEndsWithItsContext(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	white := image.NewUniform(color.White)
	src := image.NewRGBA(image.Rect(0, 0, 10, 10_000))
	draw.Draw(src, src.Rect, white, image.Point{}, draw.Src)

	for _, p := range scale(ctx, src, layout{0, 0, 10, 10_000, 10, 10}).Pix {
		if p != 0 {
			t.Fatal("the picture was scaled after the end of its context")
		}
	}
}

// TestAnimatedWebP scales the first frame of an animation, at its place on the canvas.
func TestAnimatedWebP(t *testing.T) {
	t.Parallel()

	pixel := "VP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00\x00" // 1 × 1 and padding
	frame := func(x, y byte) string {
		header := string([]byte{x, 0, 0, y, 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0})
		return "ANMF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(header)+len(pixel)-1))) + header + pixel
	}
	animation := func(chunks string) []byte {
		body := "WEBPVP8X\x0a\x00\x00\x00\x12\x00\x00\x00\x07\x00\x00\x0f\x00\x00ANIM\x06\x00\x00\x00\xff\xff\xff\xff\x00\x00" + chunks
		return []byte("RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) + body)
	}

	m, err := decodeWebP(bytes.NewReader(animation(frame(1, 3) + frame(0, 0))))
	if err != nil || m.Bounds() != image.Rect(2, 6, 3, 7) {
		t.Fatalf("got %v (%v), want the pixel at 2, 6", m, err)
	}

	source := animation(frame(1, 3))
	p, err := NewMaker().Make(t.Context(), fair.Key{}, int64(len(source)), opener(source), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(p.Bytes))
	if err != nil || c.Width != 8 || c.Height != 16 {
		t.Errorf("got %d × %d (%v), want the canvas of 8 × 16", c.Width, c.Height, err)
	}

	for name, chunks := range map[string]string{
		"no frame": "", "outside": frame(4, 0), "cut": frame(0, 0)[:30], "short": "ANMF\x04\x00\x00\x00abcd",
	} {
		if m, err := decodeWebP(bytes.NewReader(animation(chunks))); err == nil {
			t.Errorf("%s: got %v", name, m.Bounds())
		}
	}
}

// TestWrongChecksums decodes a PNG whose chunks have wrong checksums, in reads of any size.
func TestWrongChecksums(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}

	source, good := out.Bytes(), bytes.Clone(out.Bytes())
	for at := 8; at < len(source); {
		end := at + 8 + int(binary.BigEndian.Uint32(source[at:]))
		copy(source[end:], "\xde\xad\xbe\xef")
		at = end + 4
	}

	r := &checksumWriter{r: iotest.HalfReader(bytes.NewReader(source)), skip: 8}
	repaired, err := io.ReadAll(iotest.OneByteReader(r))
	if err != nil || !bytes.Equal(repaired, good) {
		t.Errorf("got another file (%v)", err)
	}
	make10 := func() error {
		_, err := NewMaker().Make(t.Context(), fair.Key{}, int64(len(source)), opener(source), Spec{Width: 10})
		return err
	}
	if err := make10(); err != nil {
		t.Error(err)
	}

	source[len(source)-30] ^= 0xff // a pixel
	if err := make10(); err == nil {
		t.Error("a damaged pixel was not noticed")
	}
}
