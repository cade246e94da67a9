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
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/socle-dev/socle/internal/fault"
)

const (
	memoryBudget       = 512 << 20       // memory of all pictures in progress, in bytes
	maxPending         = 48              // pictures in progress or waiting
	maxPendingPerOwner = 24              // of them per owner, so that no owner fills the queue
	retryAfter         = 2 * time.Second // Retry-After if the queue is full
)

// Maker scales pictures with bounded concurrency. Its methods are safe for concurrent use.
type Maker struct {
	memory *semaphore.Weighted
	// minimum charge per picture, which bounds the number of concurrent decoders by that of
	// processors
	minCharge int64

	mu      sync.Mutex
	pending map[uuid.UUID]int // by owner
	total   int
}

// NewMaker returns a Maker.
func NewMaker() *Maker {
	return &Maker{
		memory:    semaphore.NewWeighted(memoryBudget),
		minCharge: memoryBudget / int64(2*runtime.GOMAXPROCS(0)),
		pending:   map[uuid.UUID]int{},
	}
}

// Make scales the picture in a source of size bytes for owner, and closes the source. It fails with
// TooMany if too many pictures are waiting or ctx ends in the queue, with Unprocessable if the
// source is no picture, damaged or too large, and with the wrapped error of open or of reading.
func (m *Maker) Make(
	ctx context.Context, owner uuid.UUID, size int64, open func(context.Context) (io.ReadSeekCloser, error), spec Spec,
) (Picture, error) {
	if size > MaxSourceBytes {
		return Picture{}, unprocessable("too_large",
			"the file exceeds the limit of %d bytes for pictures", MaxSourceBytes)
	}
	if !m.admit(owner) {
		return Picture{}, tooMany()
	}

	defer m.release(owner)

	content, err := open(ctx)
	if err != nil {
		return Picture{}, err
	}
	defer content.Close()

	s := &source{ctx: ctx, content: content}
	h, err := m.readHead(ctx, s)
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

	need = max(need, m.minCharge)
	if err := m.memory.Acquire(ctx, need); err != nil {
		return Picture{}, tooMany().WithCause(err)
	}
	defer m.memory.Release(need)

	decoded, err := s.decode(h)
	if err != nil {
		return Picture{}, s.explain(err)
	}

	p, err := render(ctx, decoded, h, l, spec)

	if s.failed = ctx.Err(); s.failed != nil {
		return Picture{}, s.explain(s.failed)
	}

	return p, err
}

// readHead reads the metadata of a picture, which needs memory too.
func (m *Maker) readHead(ctx context.Context, s *source) (head, error) {
	const need = 2 * maxHeadBytes // the metadata and a profile
	if !m.memory.TryAcquire(need) {
		if err := m.memory.Acquire(ctx, need); err != nil {
			return head{}, tooMany().WithCause(err)
		}
	}

	defer m.memory.Release(need)

	return readHead(s)
}

func (m *Maker) admit(owner uuid.UUID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.total == maxPending || m.pending[owner] == maxPendingPerOwner {
		return false
	}

	m.total++
	m.pending[owner]++

	return true
}

func (m *Maker) release(owner uuid.UUID) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.total--

	if m.pending[owner]--; m.pending[owner] == 0 {
		delete(m.pending, owner)
	}
}

func tooMany() *fault.Error {
	return &fault.Error{Kind: fault.TooMany, Detail: "too many pictures are being scaled", RetryAfter: retryAfter}
}

func unprocessable(code, format string, args ...any) *fault.Error {
	return fault.New(fault.Unprocessable, format, args...).WithCode(code)
}

// source reads a picture. It distinguishes damaged pictures from failures of the storage.
type source struct {
	ctx     context.Context
	content io.ReadSeeker
	failed  error
}

// Read implements io.Reader. It fails after ctx ends, which stops the decoder.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.failed = err
		return 0, err
	}

	n, err := s.content.Read(p)
	if err != nil && err != io.EOF {
		s.failed = err
	}

	return n, err
}

// Seek implements io.Seeker.
func (s *source) Seek(offset int64, whence int) (int64, error) {
	at, err := s.content.Seek(offset, whence)
	if err != nil {
		s.failed = err
	}

	return at, err
}

// explain returns the error of the source, if any, instead of the decoder's.
func (s *source) explain(err error) error {
	switch {
	case errors.Is(s.failed, context.DeadlineExceeded):
		return fault.New(fault.Unavailable, "scaling the picture took too long").WithCause(s.failed)
	case s.failed != nil:
		return fmt.Errorf("read a picture: %w", s.failed)
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

	decoded, err := h.format.decode(bufio.NewReaderSize(s, 64<<10))
	if err != nil {
		return nil, err
	}

	// the first frame may cover only a part of the canvas
	if screen := image.Rect(0, 0, h.width, h.height); decoded.Bounds() != screen {
		canvas := image.NewRGBA(screen)
		draw.Draw(canvas, decoded.Bounds(), decoded, decoded.Bounds().Min, draw.Src)
		decoded = canvas
	}

	return decoded, nil
}

// render scales a decoded picture, turns it upright and encodes it. l is the layout in the stored
// orientation.
func render(ctx context.Context, decoded image.Image, h head, l layout, spec Spec) (Picture, error) {
	scaled := scale(ctx, decoded, l)

	if err := ctx.Err(); err != nil {
		return Picture{}, err
	}

	upright := applyOrientation(scaled, h.orientation)

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
