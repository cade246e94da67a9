package transfer

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/socle-dev/socle/internal/fault"
)

const (
	workbooksMemory  = 64 << 20 // memory budget of concurrent workbook imports in a process, in bytes
	workbookOverhead = 4 << 20  // fixed share per workbook, with the current row, in bytes
	workbookTimeout  = 10 * time.Second
)

// workbooks bounds the memory of the workbook imports in this process.
var workbooks = workbookBudget{available: semaphore.NewWeighted(workbooksMemory)}

// workbookBudget is a shared memory budget, with one workbook at a time per project. It is safe for
// concurrent use.
type workbookBudget struct {
	available *semaphore.Weighted

	mu     sync.Mutex
	active map[uuid.UUID]bool
}

// reserveMemory reserves memory for an import; done releases it. It fails with TooMany if the
// project already imports a workbook, or if the budget stays exhausted for [workbookTimeout].
func reserveMemory(ctx context.Context, project uuid.UUID, file io.ReadSeeker, o Options) (done func(), err error) {
	if o.Format != XLSX {
		return func() {}, nil
	}

	size, err := estimateMemory(file)
	if err != nil {
		return nil, translateFileError(err)
	}

	return workbooks.reserve(ctx, project, size)
}

func (w *workbookBudget) reserve(ctx context.Context, project uuid.UUID, memory int64) (done func(), err error) {
	w.mu.Lock()
	busy := w.active[project]
	if !busy {
		if w.active == nil {
			w.active = map[uuid.UUID]bool{}
		}
		w.active[project] = true
	}

	w.mu.Unlock()

	if busy {
		f := fault.New(fault.TooMany, "the project is already importing a workbook").
			WithCode("too_many_imports")
		f.RetryAfter = workbookTimeout

		return nil, f
	}

	deactivate := func() {
		w.mu.Lock()
		defer w.mu.Unlock()

		delete(w.active, project)
	}

	bounded, cancel := context.WithTimeout(ctx, workbookTimeout)
	defer cancel()

	if err := w.available.Acquire(bounded, memory); err != nil {
		deactivate()

		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		f := fault.New(fault.TooMany, "too many workbooks are being imported").WithCode("too_many_imports")
		f.RetryAfter = workbookTimeout

		return nil, f
	}

	return func() {
		w.available.Release(memory)
		deactivate()
	}, nil
}

// estimateMemory estimates the memory of a workbook in bytes, from its archive directory. Shared
// strings dominate: their text, their end offsets, and the one being parsed. They are read no
// further than their declared size.
func estimateMemory(file io.ReadSeeker) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("measure a file to import: %w", err)
	}

	at, ok := file.(io.ReaderAt)
	if !ok {
		return 0, fmt.Errorf("open a workbook: %T is not an io.ReaderAt", file)
	}

	parts, err := openArchive(at, size)
	if err != nil {
		return 0, err
	}

	memory := int64(workbookOverhead)
	if shared := parts["xl/sharedStrings.xml"]; shared != nil {
		memory += 3 * int64(min(shared.UncompressedSize64, maxStrings))
	}

	return memory, nil
}
