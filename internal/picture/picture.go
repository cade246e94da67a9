// Package picture scales pictures. It reads JPEG, PNG, GIF and WebP, applies the orientation, and
// writes JPEG or PNG.
//
// The input is untrusted. So the header is read and validated before decoding, and a [Maker] bounds
// the memory for all pictures in progress. The output has the pixels and the color profile, but no
// other metadata, which could identify a person or a place. Packages object and api store pictures
// and authorize callers.
package picture

import (
	"math"
	"strconv"
)

// Output formats.
const (
	JPEG = "jpeg"
	PNG  = "png"
)

// Fits, for specs with both sides. The values are CSS object-fit keywords.
const (
	Cover   = "cover"   // fills both sides; crops the excess equally at both ends
	Contain = "contain" // as large as possible within both sides
	Fill    = "fill"    // stretches to both sides
)

// Picture limits, and the default quality.
const (
	MaxSide        = 4096       // pixels per output side
	MaxPixels      = 50_000_000 // pixels in a source
	MaxSourceBytes = 64 << 20   // source size in bytes
	DefaultQuality = 80
)

// Spec describes the output.
type Spec struct {
	// pixels, up to MaxSide; 0 derives it from the other side, or from the source if both are 0
	Width, Height int
	Fit           string // "" means Cover; ignored unless both sides are given
	// "" means the source's format if it can be written, otherwise JPEG for an opaque WebP and PNG
	// for the rest
	Format  string
	Quality int // JPEG quality, 1 to 100; 0 means DefaultQuality
}

// CacheKey returns a cache key: equivalent specs have the same key. The version prefix changes with
// the output.
func (s Spec) CacheKey() string {
	s = s.clean()
	return "1:" + strconv.Itoa(s.Width) + "x" + strconv.Itoa(s.Height) + ":" + s.Fit + ":" + s.Format + ":" +
		strconv.Itoa(s.Quality)
}

// clean sets defaults and clears fields without effect.
func (s Spec) clean() Spec {
	if s.Width == 0 || s.Height == 0 {
		s.Fit = Contain
	}
	if s.Fit == "" {
		s.Fit = Cover
	}
	if s.Quality == 0 {
		s.Quality = DefaultQuality
	}
	if s.Format == PNG {
		s.Quality = 0
	}

	return s
}

// Picture is an encoded picture.
type Picture struct {
	Format string
	Bytes  []byte
}

// layout maps a region in a source to the output size.
type layout struct {
	x, y, w, h    float64 // source region in pixels
	width, height int
}

// layout computes the layout for a source with the given size. It never enlarges: sides that exceed
// the source shrink in proportion.
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
		l.width, l.height = roundSide(w*scale), roundSide(h*scale)

		return l
	}

	wide, high := float64(s.Width), float64(s.Height)
	shrink := min(1, w/wide, h/high)
	l.width, l.height = roundSide(wide*shrink), roundSide(high*shrink)
	if s.Fit == Cover {
		scale := max(float64(l.width)/w, float64(l.height)/h)
		l.w, l.h = min(w, float64(l.width)/scale), min(h, float64(l.height)/scale)
		l.x, l.y = (w-l.w)/2, (h-l.h)/2
	}

	return l
}

func roundSide(pixels float64) int { return max(1, int(math.Round(pixels))) }

// rotated returns the layout for a source that is stored rotated by 90°.
func (l layout) rotated() layout {
	return layout{x: l.y, y: l.x, w: l.h, h: l.w, width: l.height, height: l.width}
}
