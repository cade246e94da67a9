package picture

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"strconv"
	"testing"

	"github.com/google/uuid"
)

// photo is a JPEG of a size with something in it.
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

type opened struct{ *bytes.Reader }

func (opened) Close() error { return nil }

func reading(b []byte) func(context.Context) (io.ReadSeekCloser, error) {
	return func(context.Context) (io.ReadSeekCloser, error) { return opened{bytes.NewReader(b)}, nil }
}

// BenchmarkMake scales what a telephone sends, and the largest that is taken. What is allocated is about what is held.
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
				if _, err := m.Make(b.Context(), uuid.Nil, int64(len(bb.source)), reading(bb.source), Spec{Width: bb.width}); err != nil {
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

// TestKey: what says the same is kept once.
func TestKey(t *testing.T) {
	t.Parallel()
	same := [][]Spec{
		{{Width: 10}, {Width: 10, Fit: Contain}, {Width: 10, Fit: Fill}, {Width: 10, Quality: UsualQuality}},
		{{Width: 10, Height: 10}, {Width: 10, Height: 10, Fit: Cover}},
		{{Format: PNG}, {Format: PNG, Quality: 3}},
		{{Width: 10, Height: 10, Fit: Contain}}, {{Height: 10}}, {{Format: JPEG}}, {{Width: 10, Quality: 3}},
	}
	seen := map[string]bool{}
	for _, specs := range same {
		key := specs[0].Key()
		if seen[key] {
			t.Errorf("%+v has the key of another one: %q", specs[0], key)
		}
		seen[key] = true
		for _, s := range specs {
			if got := s.Key(); got != key {
				t.Errorf("%+v: got %q, want %q", s, got, key)
			}
		}
	}
}

// TestScale: a colour stays itself at any size, to the edge, and so does the sum of what there is.
func TestScale(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{100, 80}, {99, 79}, {50, 40}, {7, 3}, {1, 1}} {
		m := image.NewNRGBA(image.Rect(0, 0, 100, 80))
		for i := range 100 * 80 {
			m.SetNRGBA(i%100, i/100, color.NRGBA{200, 100, 50, 128})
		}
		got := scale(m, layout{0, 0, 100, 80, size[0], size[1]})
		want := color.RGBAModel.Convert(color.NRGBA{200, 100, 50, 128})
		for y := range size[1] {
			for x := range size[0] {
				if c := got.RGBAAt(x, y); c != want {
					t.Fatalf("%v: got %v at %d, %d, want %v", size, c, x, y, want)
				}
			}
		}
	}
	checks := image.NewGray(image.Rect(0, 0, 1024, 1024)) // of one pixel: from afar it is grey
	for i := range checks.Pix {
		checks.Pix[i] = uint8(255 * ((i + i/1024) & 1))
	}
	for _, p := range scale(checks, layout{0, 0, 1024, 1024, 100, 100}).Pix {
		if p != 255 && (p < 120 || p > 135) {
			t.Fatalf("got %d of a board of black and white", p)
		}
	}
	far := image.NewRGBA(image.Rect(0, 0, 40, 40)) // what is transparent has no colour, and neither does its neighbour get one
	far.SetRGBA(20, 20, color.RGBA{255, 0, 0, 255})
	scaled := scale(far, layout{0, 0, 40, 40, 10, 10})
	for i := 0; i < len(scaled.Pix); i += 4 {
		if p := scaled.Pix[i:][:4]; p[0] > p[3] || p[1] > 0 || p[2] > 0 {
			t.Fatalf("got %v", p)
		}
	}
}

// TestTurn: a mark in the upper left corner of what is seen is where EXIF says that it is stored.
func TestTurn(t *testing.T) {
	t.Parallel()
	for o, at := range map[int]image.Point{1: {0, 0}, 2: {2, 0}, 3: {2, 1}, 4: {0, 1}, 5: {0, 0}, 6: {0, 1}, 7: {2, 1}, 8: {2, 0}} {
		stored := image.NewRGBA(image.Rect(0, 0, 3, 2))
		stored.SetRGBA(at.X, at.Y, color.RGBA{255, 0, 0, 255})
		got := turn(stored, o)
		want := image.Pt(3, 2)
		if o >= 5 {
			want = image.Pt(2, 3)
		}
		if got.Rect.Max != want || got.RGBAAt(0, 0).R != 255 {
			t.Errorf("orientation %s: got %v of %v, want the mark first, of %v", strconv.Itoa(o), got.Pix, got.Rect, want)
		}
	}
}
