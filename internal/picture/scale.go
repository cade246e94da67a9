package picture

import (
	"context"
	"image"
	"image/draw"
	"math"

	kernel "golang.org/x/image/draw"
)

// scale scales a picture region with the Catmull-Rom kernel, one source row at a time. Beside the
// source and the result it needs [layout.memory] bytes; [kernel.Kernel.Scale] would need 32 bytes
// times the result's width times the source's height. Transparent pixels contribute no color. scale
// stops when ctx ends.
func scale(ctx context.Context, src image.Image, l layout) *image.RGBA {
	b := src.Bounds()
	dst := image.NewRGBA(image.Rect(0, 0, l.width, l.height))
	if identity := (layout{0, 0, float64(b.Dx()), float64(b.Dy()), b.Dx(), b.Dy()}); l == identity {
		draw.Draw(dst, dst.Rect, src, b.Min, draw.Src)
		return dst
	}

	across, down := taps(l.x, l.w, l.width, b.Dx()), taps(l.y, l.h, l.height, b.Dy())
	row := image.NewRGBA(image.Rect(0, 0, b.Dx(), 1))
	narrow := make([]float32, 4*l.width)
	sums := map[int][]float32{} // sums for the result rows in progress

	var spare [][]float32
	first := 0 // first row in progress
	for y := down[0].from; first < l.height; y++ {
		if y%1024 == 0 && ctx.Err() != nil {
			return dst
		}

		draw.Draw(row, row.Rect, src, image.Pt(b.Min.X, b.Min.Y+y), draw.Src)
		scaleRow(narrow, row.Pix, across)

		for i := first; i < l.height && down[i].from <= y; i++ {
			t := down[i]
			if y >= t.from+len(t.weights) {
				continue
			}

			sum, ok := sums[i]
			if !ok {
				if n := len(spare); n > 0 {
					sum, spare = spare[n-1], spare[:n-1]
					clear(sum)
				} else {
					sum = make([]float32, 4*l.width)
				}

				sums[i] = sum
			}

			weight := t.weights[y-t.from]
			for j, v := range narrow {
				sum[j] += weight * v
			}
		}

		for first < l.height && y >= down[first].from+len(down[first].weights)-1 {
			roundRow(dst.Pix[first*dst.Stride:][:4*l.width], sums[first])
			spare = append(spare, sums[first])
			delete(sums, first)
			first++
		}
	}

	return dst
}

// memory returns an upper bound for the bytes that scaling a source with the given size needs
// beside the source and the result: column and row weights, a source row, and the result rows in
// progress.
func (l layout) memory(width, height int) int64 {
	// a source pixel contributes to at most four result pixels, and as many rows are spare
	const underWay = 2 * 4
	return tapsMemory(l.w, l.width, width) + tapsMemory(l.h, l.height, height) + 4*int64(width) +
		16*underWay*int64(l.width)
}

// tapsMemory returns an upper bound for the bytes that taps allocates.
func tapsMemory(length float64, n, size int) int64 {
	const tapSize = 48 // the struct, and rounding up for weights
	weights := min(2*reach(length/float64(n))+1, float64(size))

	return int64(n) * (tapSize + 4*int64(math.Ceil(weights)))
}

// reach returns how many pixels on each side contribute to a result pixel at the given ratio.
func reach(ratio float64) float64 { return kernel.CatmullRom.Support * max(1, ratio) }

// tap has the source pixels in a row or column that make one result pixel, with weights.
type tap struct {
	from    int
	weights []float32 // sum to 1
}

// taps returns the taps for the n pixels to which length pixels from start are scaled, in a row
// with size pixels.
func taps(start, length float64, n, size int) []tap {
	ratio := length / float64(n)
	stretch := max(1, ratio)
	reach := reach(ratio)
	all := make([]tap, n)
	for i := range all {
		center := start + (float64(i)+0.5)*ratio - 0.5
		from, to := max(0, int(math.Ceil(center-reach))), min(size-1, int(math.Floor(center+reach)))
		weights := make([]float32, max(1, to-from+1))
		sum := 0.0
		for j := range weights {
			if d := math.Abs(float64(from+j)-center) / stretch; d < kernel.CatmullRom.Support {
				weights[j] = float32(kernel.CatmullRom.At(d))
			}
			sum += float64(weights[j])
		}

		for j := range weights {
			weights[j] = float32(float64(weights[j]) / sum)
		}

		all[i] = tap{from, weights}
	}

	return all
}

func scaleRow(dst []float32, src []uint8, across []tap) {
	for i, t := range across {
		var r, g, b, a float32
		p := src[4*t.from:][:4*len(t.weights)]
		for j, w := range t.weights {
			q := p[4*j:][:4]
			r += w * float32(q[0])
			g += w * float32(q[1])
			b += w * float32(q[2])
			a += w * float32(q[3])
		}

		d := dst[4*i:][:4]
		d[0], d[1], d[2], d[3] = r, g, b, a
	}
}

// roundRow rounds sums to a row's pixels. The kernel overshoots in both directions, and a
// premultiplied color is at most its alpha.
func roundRow(dst []uint8, sums []float32) {
	for i := 0; i < len(dst); i += 4 {
		a := min(max(sums[i+3], 0), 255)
		for j := range 3 {
			dst[i+j] = uint8(min(max(sums[i+j], 0), a) + 0.5)
		}

		dst[i+3] = uint8(a + 0.5)
	}
}

// applyOrientation applies an EXIF orientation.
func applyOrientation(m *image.RGBA, orientation int) *image.RGBA {
	if orientation <= 1 {
		return m
	}

	w, h := m.Rect.Dx(), m.Rect.Dy()
	size := image.Rect(0, 0, w, h)
	if orientation >= 5 {
		size = image.Rect(0, 0, h, w)
	}

	result := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch orientation {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}

			copy(result.Pix[result.PixOffset(tx, ty):][:4], m.Pix[m.PixOffset(x, y):][:4])
		}
	}

	return result
}
