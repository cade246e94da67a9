// Package tablejob runs long table operations as jobs: index builds and compactions. Package schema
// has their statements.
package tablejob

import (
	"errors"
	"log/slog"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/queue"
)

// timeout is less than River's rescue threshold of one hour.
const timeout = 50 * time.Minute

// Service creates and runs the jobs.
type Service struct {
	lifecycle *lifecycle.Service
	queue     *queue.Queue
	log       *slog.Logger
}

// New registers the jobs' workers.
func New(l *lifecycle.Service, q *queue.Queue, log *slog.Logger) *Service {
	s := &Service{l, q, log}

	queue.Register(q, queue.Options{ // retried after lock conflicts and server restarts
		Workers:     queue.Workers{Queue: "compactions", PerServer: 4, PerAccount: 1, InDatabase: true},
		MaxAttempts: 5,
		Unique:      true, // per table
	}, s.compact)
	queue.Register(q, queue.Options{
		Workers:     queue.Workers{Queue: "indexes", PerServer: 4, PerAccount: 2, InDatabase: true},
		MaxAttempts: 5,
	}, s.buildIndex)

	return s
}

// compactionError returns the error to store with a failed compaction.
func compactionError(err error) error {
	f := fault.Of(err)
	return jobError(f, f.Kind == fault.Unprocessable || f.Kind == fault.NotFound)
}

// indexError returns the error to store with a failed index build.
func indexError(err error) error {
	f := fault.Of(err)
	return jobError(f, f.Kind == fault.Unprocessable || f.Kind == fault.NotFound ||
		(f.Kind == fault.Conflict && f.CodeWord() != "busy"))
}

// jobError returns the error to store with a failed job. Clients see it, so it has only the fault's
// detail. A final error is not retried: the job would fail alike.
func jobError(f *fault.Error, final bool) error {
	switch {
	case final:
		return queue.Cancel(errors.New(f.Detail))
	case f.Kind == fault.Internal:
		return errors.New("something went wrong on the server")
	}

	return errors.New(f.Detail)
}
