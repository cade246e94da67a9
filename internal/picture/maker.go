package picture

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

const (
	memoryBudget = 512 << 20       // bytes for all pictures in progress
	maxPending   = 48              // pictures in progress or waiting
	retryAfter   = 2 * time.Second // Retry-After if the queue is full
)

// Maker scales pictures with bounded concurrency. Its methods are safe for concurrent use.
type Maker struct {
	pending *fair.Pool // pictures in progress or waiting
	memory  *fair.Pool // bytes in use
	// minimum charge per picture, which bounds concurrent decoders by the processor count
	minCharge int64
}

// NewMaker returns a Maker.
func NewMaker() *Maker {
	return &Maker{
		pending: fair.New(fair.Config{Name: "pictures", Capacity: maxPending, PerAccount: maxPending / 2,
			PerPart: maxPending * 3 / 8, Reserve: maxPending / 4}),
		memory:    fair.New(fair.Config{Name: "picture_memory", Capacity: memoryBudget, Waiting: maxPending}),
		minCharge: memoryBudget / int64(2*runtime.GOMAXPROCS(0)),
	}
}

// Make scales the picture in a source of size bytes for owner, and closes the source. It fails with
// TooMany if too many pictures are waiting or ctx ends in the queue, with Unprocessable if the
// source is no picture, damaged or too large, and with the error, wrapped, from open or from
// reading.
func (m *Maker) Make(
	ctx context.Context, owner fair.Key, size int64, open func(context.Context) (io.ReadSeekCloser, error), spec Spec,
) (Picture, error) {
	if size > MaxSourceBytes {
		return Picture{}, unprocessable("too_large",
			"the file exceeds the limit of %d bytes for pictures", MaxSourceBytes)
	}

	place := m.pending.TryAcquire(owner, 1)
	if place == nil {
		return Picture{}, tooMany()
	}
	defer place.Release()

	content, err := open(ctx)
	if err != nil {
		return Picture{}, err
	}
	defer content.Close()

	s := &source{ctx: ctx, content: content}
	h, err := m.readHead(ctx, s, owner)
	if err != nil {
		return Picture{}, s.explain(err)
	}

	spec = spec.clean()
	l := spec.layout(h.upright())
	if h.orientation >= 5 {
		l = l.rotated()
	}

	// the source's pixels, and the same again for the output
	need := h.memory() + l.memory(h.width, h.height) + int64(l.width)*int64(l.height)*8
	if need > memoryBudget {
		return Picture{}, unprocessable("too_many_pixels", "decoding the picture of %d × %d requires too much memory",
			h.width, h.height)
	}

	memory, err := m.memory.Acquire(ctx, owner, max(need, m.minCharge))
	if err != nil {
		return Picture{}, tooMany().WithCause(err)
	}
	defer memory.Release()

	img, err := s.decode(h)
	if err != nil {
		return Picture{}, s.explain(err)
	}

	p, err := render(ctx, img, h, l, spec)

	if s.err = ctx.Err(); s.err != nil {
		return Picture{}, s.explain(s.err)
	}

	return p, err
}

// readHead reads a picture's metadata, which needs memory too.
func (m *Maker) readHead(ctx context.Context, s *source, owner fair.Key) (head, error) {
	const need = 2 * maxHeadBytes // the metadata and a profile
	memory := m.memory.TryAcquire(owner, need)
	if memory == nil {
		var err error
		if memory, err = m.memory.Acquire(ctx, owner, need); err != nil {
			return head{}, tooMany().WithCause(err)
		}
	}
	defer memory.Release()

	return readHead(s)
}

func tooMany() *fault.Error {
	return &fault.Error{Kind: fault.TooMany, Detail: "too many pictures are being scaled", RetryAfter: retryAfter}
}

func unprocessable(code, format string, args ...any) *fault.Error {
	return fault.New(fault.Unprocessable, format, args...).WithCode(code)
}

// source reads a picture. It distinguishes damaged pictures from storage failures.
type source struct {
	ctx     context.Context
	content io.ReadSeeker
	err     error
}

// Read implements io.Reader. It fails after ctx ends, which stops the decoder.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.err = err
		return 0, err
	}

	n, err := s.content.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}

	return n, err
}

// Seek implements io.Seeker.
func (s *source) Seek(offset int64, whence int) (int64, error) {
	at, err := s.content.Seek(offset, whence)
	if err != nil {
		s.err = err
	}

	return at, err
}

// explain returns the source's error, if any, in place of the decoder's.
func (s *source) explain(err error) error {
	switch {
	case errors.Is(s.err, context.DeadlineExceeded):
		return fault.New(fault.Unavailable, "scaling the picture took too long").WithCause(s.err)
	case s.err != nil:
		return fmt.Errorf("read a picture: %w", s.err)
	}

	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}

	_, unsupportedJPEG := errors.AsType[jpeg.UnsupportedError](err)
	_, unsupportedPNG := errors.AsType[png.UnsupportedError](err)
	if unsupportedJPEG || unsupportedPNG {
		return unprocessable("unsupported_image", "the picture uses a feature of its format that is not supported").
			WithCause(err)
	}

	return unprocessable("damaged_image", "the picture is damaged or can't be decoded").WithCause(err)
}

// decode decodes the picture, or the first frame of an animation.
func (s *source) decode(h head) (image.Image, error) {
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}

	img, err := h.format.decode(bufio.NewReaderSize(s, 64<<10))
	if err != nil {
		return nil, err
	}

	// the first frame may cover only a part of the canvas
	if screen := image.Rect(0, 0, h.width, h.height); img.Bounds() != screen {
		canvas := image.NewRGBA(screen)
		draw.Draw(canvas, img.Bounds(), img, img.Bounds().Min, draw.Src)
		img = canvas
	}

	return img, nil
}

// render scales a decoded picture, turns it upright and encodes it. l is the layout in the stored
// orientation.
func render(ctx context.Context, img image.Image, h head, l layout, spec Spec) (Picture, error) {
	dst := scale(ctx, img, l)

	if err := ctx.Err(); err != nil {
		return Picture{}, err
	}

	upright := applyOrientation(dst, h.orientation)

	if spec.Format == "" {
		spec.Format = h.format.output
	}

	if spec.Format == "" {
		if spec.Format = PNG; upright.Opaque() {
			spec.Format = JPEG
		}
	}

	p := Picture{Format: spec.Format}
	var out bytes.Buffer
	var err error
	if spec.Format == JPEG {
		onWhite(upright)
		err = jpeg.Encode(&out, upright, &jpeg.Options{Quality: spec.Quality})
	} else {
		err = png.Encode(&out, upright)
	}

	if err != nil {
		return Picture{}, fmt.Errorf("write a picture: %w", err)
	}

	if p.Bytes = out.Bytes(); h.keepsProfile() {
		p.Bytes = withProfile(p, h.profile)
	}

	return p, nil
}

// onWhite draws a picture on a white background.
func onWhite(m *image.RGBA) {
	if m.Opaque() {
		return
	}

	original := *m
	ground := image.NewRGBA(m.Rect)
	draw.Draw(ground, m.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(ground, m.Rect, &original, m.Rect.Min, draw.Over)
	m.Pix = ground.Pix
}
