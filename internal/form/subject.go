package form

import (
	"context"
	"errors"

	"github.com/socle-dev/socle/internal/projectdb"
)

// Subject returns the subject "forms": forms and responses.
func (n *Notifier) Subject() projectdb.Subject {
	return projectdb.Subject{
		Schema: "forms",
		Sweep: func(ctx context.Context, p *projectdb.Project) error {
			_, err := Sweep(ctx, p)
			return errors.Join(err, n.Sweep(ctx, p))
		},
		Restore: projectdb.Restore{UUIDs: listUUIDs, Renew: renew, Repair: repair},
	}
}
