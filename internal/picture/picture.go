// Package picture makes smaller pictures of pictures: it reads JPEG, PNG, GIF and WebP, scales, turns them upright, and writes JPEG or PNG.
//
// The bytes come from strangers. So the header is read and judged before anything is decoded, and a [Maker] bounds what all that
// are being made at one time need of memory. What it makes holds the pixels and their colour profile, and nothing else that the
// source may tell of a person or a place. Where pictures are kept, and who may see them, is not known here.
package picture

import (
	"math"
	"strconv"
)

// The formats that are written.
const (
	JPEG = "jpeg"
	PNG  = "png"
)

// What becomes of the proportions if both sides are given. The words are those of CSS's object-fit.
const (
	Cover   = "cover"   // fills both sides; what juts out is cut off, alike at both ends
	Contain = "contain" // as large as it can be within both
	Fill    = "fill"    // stretched to both
)

// Limits of pictures, and the quality if none is asked for.
const (
	MaxSide      = 4096       // pixels of a side of what is made
	MaxPixels    = 50_000_000 // of a source
	MaxBytes     = 64 << 20   // of a source
	UsualQuality = 80
)

// Spec says what to make of a picture.
type Spec struct {
	Width, Height int    // pixels, at most MaxSide; 0 follows from the other, and if both are 0, from the source
	Fit           string // "" is Cover; without meaning unless both sides are given
	Format        string // "" is the source's if that can be written, else JPEG for a WebP that is opaque, and PNG
	Quality       int    // of JPEG, 1 to 100; 0 is UsualQuality
}

// Key names the spec: specs that say the same have the same one. It changes with what we make of a spec.
func (s Spec) Key() string {
	s = s.clean()
	return "1:" + strconv.Itoa(s.Width) + "x" + strconv.Itoa(s.Height) + ":" + s.Fit + ":" + s.Format + ":" +
		strconv.Itoa(s.Quality)
}

// clean fills in what is not said, and takes out what has no meaning.
func (s Spec) clean() Spec {
	if s.Width == 0 || s.Height == 0 {
		s.Fit = Contain
	}
	if s.Fit == "" {
		s.Fit = Cover
	}
	if s.Quality == 0 {
		s.Quality = UsualQuality
	}
	if s.Format == PNG {
		s.Quality = 0
	}

	return s
}

// Picture is what was made.
type Picture struct {
	Format string
	Bytes  []byte
}

// layout is which part of a source is scaled to which size.
type layout struct {
	x, y, w, h    float64 // of the source, in pixels
	width, height int
}

// layout places a spec on a source of a size. Nothing is ever made larger than it is in the source: sides beyond it are shortened, both alike.
func (s Spec) layout(width, height int) layout {
	w, h := float64(width), float64(height)
	l := layout{w: w, h: h}
	if s.Fit == Contain {
		wide, high := float64(MaxSide), float64(MaxSide)
		if s.Width > 0 {
			wide = float64(s.Width)
		}
		if s.Height > 0 {
			high = float64(s.Height)
		}

		scale := min(1, wide/w, high/h)
		l.width, l.height = side(w*scale), side(h*scale)

		return l
	}

	wide, high := float64(s.Width), float64(s.Height)
	shrink := min(1, w/wide, h/high)
	l.width, l.height = side(wide*shrink), side(high*shrink)
	if s.Fit == Cover {
		scale := max(float64(l.width)/w, float64(l.height)/h)
		l.w, l.h = min(w, float64(l.width)/scale), min(h, float64(l.height)/scale)
		l.x, l.y = (w-l.w)/2, (h-l.h)/2
	}

	return l
}

func side(pixels float64) int { return max(1, int(math.Round(pixels))) }

// turned is the layout as it lies in a source that is stored on its side.
func (l layout) turned() layout {
	return layout{x: l.y, y: l.x, w: l.h, h: l.w, width: l.height, height: l.width}
}
