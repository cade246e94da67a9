package picture

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/png"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

// TestMakeOfDamaged changes bytes of pictures at random. The result must be a picture or an
// Unprocessable error.
func TestMakeOfDamaged(t *testing.T) {
	t.Parallel()

	var drawn, animated bytes.Buffer
	m := image.NewPaletted(image.Rect(0, 0, 40, 30), palette.WebSafe)
	if err := errors.Join(png.Encode(&drawn, image.NewNRGBA64(m.Rect)), gif.Encode(&animated, m, nil)); err != nil {
		t.Fatal(err)
	}

	maker := NewMaker()
	random := rand.New(rand.NewPCG(1, 2))
	for _, intact := range [][]byte{photo(t, 40, 30), drawn.Bytes(), animated.Bytes()} {
		for range 300 {
			b := bytes.Clone(intact)
			for range 1 + random.IntN(4) {
				b[3+random.IntN(len(b)-3)] = byte(random.IntN(256))
			}

			if random.IntN(4) == 0 {
				b = b[:random.IntN(len(b))]
			}

			if _, err := maker.Make(t.Context(), fair.Key{}, int64(len(b)), opener(b), Spec{Width: 7}); err != nil &&
				!fault.Is(err, fault.Unprocessable) {
				t.Fatalf("%x: got %v", b, err)
			}
		}
	}
}

// failingSource is a source that fails after far bytes.
type failingSource struct {
	nopCloser
	limit int64
	err   error
}

// Read fails after far bytes.
func (b failingSource) Read(p []byte) (int, error) {
	if at, _ := b.Seek(0, io.SeekCurrent); at >= b.limit {
		return 0, b.err
	}
	return b.nopCloser.Read(p[:1])
}

// TestMakeFails checks that errors of the storage, the deadline and the picture differ.
func TestMakeFails(t *testing.T) {
	t.Parallel()

	m, source := NewMaker(), photo(t, 40, 30)
	storageErr := errors.New("the storage is gone")
	failing := func(context.Context) (io.ReadSeekCloser, error) {
		return failingSource{nopCloser{bytes.NewReader(source)}, int64(len(source) / 3), storageErr}, nil
	}
	if _, err := m.Make(t.Context(), fair.Key{}, 1, failing, Spec{}); !errors.Is(err, storageErr) ||
		!fault.Is(err, fault.Internal) {
		t.Errorf("got %v, want the error of the storage", err)
	}

	if _, err := m.Make(t.Context(), fair.Key{}, 1, func(context.Context) (io.ReadSeekCloser, error) {
		return nil, storageErr
	}, Spec{}); !errors.Is(err, storageErr) {
		t.Errorf("got %v, want the error of the storage", err)
	}

	expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()

	if _, err := m.Make(expired, fair.Key{}, 1, opener(source), Spec{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("after the deadline: got %v, want Unavailable", err)
	}
	if got := m.pending.Stats().InUse; got != 0 {
		t.Errorf("got %d pictures in progress", got)
	}
}

// TestMakerIsBounded checks that an account leaves room to others, and that all memory is released.
func TestMakerIsBounded(t *testing.T) {
	t.Parallel()

	m := NewMaker()
	greedy, other := fair.Key{Account: "greedy"}, fair.Key{Account: "other"}
	n := 0
	for m.pending.TryAcquire(greedy.In(string(rune('a'+n%2))), 1) != nil { // of two projects
		n++
	}
	if want := maxPending / 2; n != want {
		t.Errorf("one account: got %d places, want %d", n, want)
	}

	source := photo(t, 40, 30)
	if _, err := m.Make(t.Context(), greedy, 1, opener(source), Spec{}); !fault.Is(err, fault.TooMany) {
		t.Errorf("got %v, want TooMany", err)
	}

	waiting, cancel := context.WithCancel(t.Context())

	all := m.memory.TryAcquire(greedy, memoryBudget)
	if all == nil {
		t.Fatal("the memory is not free")
	}

	opened := make(chan struct{})
	go func() {
		<-opened
		cancel()
	}()

	if _, err := m.Make(waiting, other, 1, func(ctx context.Context) (io.ReadSeekCloser, error) {
		close(opened)
		return opener(source)(ctx)
	}, Spec{}); err == nil {
		t.Error("Make succeeded without memory")
	}

	all.Release()
	if _, err := m.Make(t.Context(), other, 1, opener(source), Spec{}); err != nil {
		t.Error(err)
	}
}

// TestMemory checks the memory estimates of the formats.
func TestMemory(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		h    head
		want int64 // megabytes for 12 million pixels
	}{
		"of a telephone":     {head{format: formats[0], model: color.YCbCrModel}, 36},
		"progressive":        {head{format: formats[0], model: color.YCbCrModel, multiPass: true}, 180},
		"a PNG of 16 bits":   {head{format: formats[1], model: color.NRGBA64Model}, 144},
		"interlaced besides": {head{format: formats[1], model: color.NRGBA64Model, multiPass: true}, 240},
		"GIF":                {head{format: formats[2]}, 96},
		"WebP":               {head{format: formats[3], model: color.YCbCrModel}, 144},
	} {
		tt.h.width, tt.h.height = 4000, 3000
		if got := tt.h.memory() / 1_000_000; got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
