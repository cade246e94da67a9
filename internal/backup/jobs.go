package backup

import (
	"context"
	"errors"

	"socle/internal/queue"
)

// registerWorkers registers the workers of all jobs. A backup and a restore have one attempt: a
// retry is a new one with its own status. A proof is retried after restarts of the server or
// PostgreSQL for about a quarter of an hour.
func (s *Service) registerWorkers() {
	register(s, queue.Options{
		Workers:     queue.Workers{Queue: "backups", PerServer: 3, PerOrganization: 2},
		MaxAttempts: 1,
	}, s.runBackup)
	register(s, queue.Options{
		Workers:     queue.Workers{Queue: "restores", PerServer: 2, PerOrganization: 1},
		MaxAttempts: 1,
	}, func(ctx context.Context, a restoreArgs) error { return s.Restore(ctx, a.Restore) })
	register(s, queue.Options{
		Workers:     queue.Workers{Queue: "proofs", PerServer: 2, PerOrganization: 1},
		MaxAttempts: 6,
		Unique:      true, // per backup
	}, s.runProof)
}

// register registers a worker whose errors are final. A job is retried only if the server stopped
// or if it returns a [RetryError].
func register[A queue.Args](s *Service, o queue.Options, work func(context.Context, A) error) {
	queue.Register(s.Queue, o, func(ctx context.Context, job *queue.Job[A]) error {
		err := work(ctx, job.Args)
		if err == nil {
			return nil
		}

		kind := job.Args.Kind()
		retry, ok := errors.AsType[*RetryError](err)
		if ok && retry.After > 0 {
			s.Log.Info(kind+" postponed", "error", err)
			return queue.Snooze(retry.After)
		}

		if ok || ctx.Err() != nil { // the server is stopping, for example: the next one retries the job
			s.Log.Info(kind+" interrupted", "error", err)
			return err
		}

		s.Log.Error(kind, "error", err) // River stores the error with the job but does not log it
		return queue.Cancel(err)
	})
}
