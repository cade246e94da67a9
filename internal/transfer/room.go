package transfer

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"socle/internal/fault"
)

const (
	workbooksRoom = 64 << 20 // memory budget of concurrent workbook imports in a process, in bytes
	workbookBase  = 4 << 20  // fixed share per workbook, with the current row, in bytes
	workbookWait  = 10 * time.Second
)

// workbooks bounds the memory of the workbook imports in this process.
var workbooks = workbookRoom{free: semaphore.NewWeighted(workbooksRoom)}

// workbookRoom is a shared memory budget, with one workbook at a time per project. It is safe for
// concurrent use.
type workbookRoom struct {
	free *semaphore.Weighted

	mu      sync.Mutex
	present map[uuid.UUID]bool
}

// enter reserves memory for an import; done returns it. It fails with TooMany if the project
// already imports a workbook, or if the budget stays exhausted for [workbookWait].
func enter(ctx context.Context, project uuid.UUID, file io.ReadSeeker, o Options) (done func(), err error) {
	if o.Format != XLSX {
		return func() {}, nil
	}

	weight, err := weigh(file)
	if err != nil {
		return nil, tooLong(err)
	}

	return workbooks.enter(ctx, project, weight)
}

func (w *workbookRoom) enter(ctx context.Context, project uuid.UUID, weight int64) (done func(), err error) {
	w.mu.Lock()
	taken := w.present[project]
	if !taken {
		if w.present == nil {
			w.present = map[uuid.UUID]bool{}
		}
		w.present[project] = true
	}

	w.mu.Unlock()

	if taken {
		f := fault.New(fault.TooMany, "the project imports a workbook already: one at a time").
			WithCode("too_many_imports")
		f.RetryAfter = workbookWait

		return nil, f
	}

	leave := func() {
		w.mu.Lock()
		defer w.mu.Unlock()

		delete(w.present, project)
	}

	bounded, cancel := context.WithTimeout(ctx, workbookWait)
	defer cancel()

	if err := w.free.Acquire(bounded, weight); err != nil {
		leave()

		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		f := fault.New(fault.TooMany, "too many workbooks are imported at the moment").WithCode("too_many_imports")
		f.RetryAfter = workbookWait

		return nil, f
	}

	return func() {
		w.free.Release(weight)
		leave()
	}, nil
}

// weigh estimates the memory of a workbook in bytes, from its archive directory. Shared strings
// dominate: their text, their end offsets, and the one being parsed. They are read no further than
// their declared size.
func weigh(file io.ReadSeeker) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("measure a file to import: %w", err)
	}

	at, ok := file.(io.ReaderAt)
	if !ok {
		return 0, fmt.Errorf("a workbook in a %T", file)
	}

	parts, err := openArchive(at, size)
	if err != nil {
		return 0, err
	}

	weight := int64(workbookBase)
	if shared := parts["xl/sharedStrings.xml"]; shared != nil {
		weight += 3 * int64(min(shared.UncompressedSize64, maxStrings))
	}

	return weight, nil
}
