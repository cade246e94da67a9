package enduser

import (
	"context"
	"fmt"

	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/queue"
)

// outbox returns the outbox of the project.
func (d *Directory) outbox() (*message.Outbox, error) {
	return message.New(message.Config{Project: d.db, Settings: d.Config, Install: d.service.Sender,
		Client: d.service.Outbound, Log: d.service.Log})
}

// messageID returns the id of the message of a job, the same in all attempts.
func messageID(job *queue.Job[mailArgs]) string {
	return fmt.Sprintf("%d.%d", job.ID, job.CreatedAt.UnixNano())
}

// attemptOf returns the attempt of a job to deliver its mail.
func attemptOf(job *queue.Job[mailArgs]) message.Attempt {
	return message.Attempt{ID: messageID(job), Number: job.Attempt, Kind: job.Args.MailKind,
		Recipient: job.Args.Email}
}

// countFirst counts the mail of a job at its first attempt, see [Directory.countSent]. It cancels
// the job, and records why, if the mail exceeds a limit.
func (d *Directory) countFirst(
	ctx context.Context, outbox *message.Outbox, job *queue.Job[mailArgs], shared bool,
) error {
	if job.Attempt > 1 {
		return nil
	}

	over := d.countSent(ctx, job.Args.MailKind, job.Args.Email, shared)
	if over == nil {
		return nil
	}

	outbox.Record(ctx, attemptOf(job), over)
	return queue.Cancel(over)
}
