package transfer

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

const (
	workbooksMemory  = 64 << 20 // bytes in memory for a process's concurrent workbook imports
	workbookOverhead = 4 << 20  // fixed share per workbook, with the current row, in bytes
	workbookTimeout  = 10 * time.Second
	maxWorkbooks     = 64 // imports in progress or waiting
	maxAccountBooks  = 4  // workbooks per account
)

// workbooks bounds the memory that workbook imports use in this process.
var workbooks = newWorkbookBudget(workbooksMemory)

// workbookBudget is a shared memory budget, with one workbook at a time per project. It is safe for
// concurrent use.
type workbookBudget struct {
	imports *fair.Pool // in progress or waiting
	memory  *fair.Pool // bytes in use
}

func newWorkbookBudget(memory int64) workbookBudget {
	return workbookBudget{
		imports: fair.New(fair.Config{Name: "workbook_imports", Capacity: maxWorkbooks, PerAccount: maxAccountBooks,
			PerPart: 1, Reserve: maxWorkbooks / 4}),
		memory: fair.New(fair.Config{Name: "workbook_memory", Capacity: memory, Waiting: maxWorkbooks,
			Timeout: workbookTimeout}),
	}
}

// reserveMemory reserves memory for an import, which release returns. It fails with TooMany if the
// project already imports a workbook or its account several, or if the budget stays exhausted for
// [workbookTimeout].
func reserveMemory(ctx context.Context, project fair.Key, file io.ReadSeeker, o Options) (release func(), err error) {
	if o.Format != XLSX {
		return func() {}, nil
	}

	size, err := estimateMemory(file)
	if err != nil {
		return nil, translateFileError(err)
	}

	return workbooks.reserve(ctx, project, size)
}

func (w *workbookBudget) reserve(ctx context.Context, project fair.Key, memory int64) (release func(), err error) {
	place := w.imports.TryAcquire(project, 1)
	if place == nil {
		return nil, tooManyImports("the project is already importing a workbook, or its account several")
	}

	lease, err := w.memory.Acquire(ctx, project, memory)
	if err != nil {
		place.Release()

		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		return nil, tooManyImports("too many workbooks are being imported")
	}

	return func() {
		lease.Release()
		place.Release()
	}, nil
}

func tooManyImports(detail string) error {
	return &fault.Error{Kind: fault.TooMany, Code: "too_many_imports", Detail: detail, RetryAfter: workbookTimeout}
}

// estimateMemory estimates a workbook's memory in bytes, from its archive directory. Shared strings
// dominate: their text, their end offsets, and the one being parsed. They are read no further than
// their declared size.
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
