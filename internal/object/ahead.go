package object

import (
	"context"
	"time"

	"github.com/google/uuid"

	"socle/internal/blob"
	"socle/internal/tenant"
)

// aheadTime is how long a file is looked for that nobody may want any more.
const aheadTime = 10 * time.Second

// Ahead is a file that is looked for before it is known who may have it.
type Ahead struct {
	container, file uuid.UUID
	found           chan storedFile // closed without one if there is none, or the database failed
}

// LookAhead starts to look for a file of a container of project p. Nobody has to wait for it. It ends by itself, not with ctx: a statement that is broken
// off costs the project a connection.
func LookAhead(ctx context.Context, p *tenant.Project, container, file uuid.UUID) *Ahead {
	a := &Ahead{container, file, make(chan storedFile, 1)}
	go func() {
		defer close(a.found)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aheadTime)
		defer cancel()
		if f, err := fileByUUID(ctx, p, container, file)(); err == nil {
			a.found <- f
		}
	}()
	return a
}

// Open is [OpenFile] for the file. Only that it was found counts: whatever else came is asked for again, now that somebody may know.
func (a *Ahead) Open(ctx context.Context, p *tenant.Project, store *blob.Store) (File, *Content, error) {
	return open(ctx, p, store, func() (storedFile, error) {
		select {
		case f, ok := <-a.found:
			if ok {
				return f, nil
			}
			return fileByUUID(ctx, p, a.container, a.file)()
		case <-ctx.Done():
			return storedFile{}, ctx.Err()
		}
	})
}
