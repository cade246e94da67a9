package enduser

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/pg"
)

// admission decides about a new user, and sets its ID. It ends the transaction in order to ask.
type admission func(n *newUser) error

// newUserEvent is the event for the hooks before_user_created and after_user_created.
type newUserEvent struct {
	Metadata hookMetadata `json:"metadata"`
	User     User         `json:"user"`
}

// txAdmitting is [Directory.Tx] for a change that may create a user. It tells a hook about the user
// after the commit.
func (d *Directory) txAdmitting(
	ctx context.Context, change string, c Client, f func(ctx context.Context, tx pgx.Tx, admit admission) error,
) error {
	id := uuid.New() // random, since applications' pages show it
	var isNew bool
	err := d.txAsking(ctx, change, rules.HookNewUser, func(hook.Reply) error { return nil },
		func(ctx context.Context, tx pgx.Tx, consent func(func() any) error) error {
			isNew = false
			return f(ctx, tx, func(n *newUser) error {
				n.ID, isNew = id, true
				return consent(func() any {
					return newUserEvent{Metadata: newHookMetadata(rules.HookNewUser, c), User: n.preview()}
				})
			})
		})
	if err != nil || !isNew || d.Hooks[rules.HookCreated] == "" {
		return err
	}

	return d.tellOfUser(ctx, id, c)
}

// txFinding is [Directory.txAdmitting] for a change that creates a user if it finds none. It runs
// again if another request creates the user meanwhile.
func (d *Directory) txFinding(
	ctx context.Context, change string, c Client, f func(ctx context.Context, tx pgx.Tx, admit admission) error,
) error {
	err := d.txAdmitting(ctx, change, c, f)
	if pg.Violates(err, usersEmailKey) {
		return d.txAdmitting(ctx, change, c, f)
	}

	return err
}

// tellOfUser tells a hook about a new user, even if the client has disconnected. If the hook fails,
// the user stays, and the session that has begun ends, since nobody has its tokens.
func (d *Directory) tellOfUser(ctx context.Context, id uuid.UUID, c Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), txTimeout)
	defer cancel()

	u, err := userByID(ctx, d.Rows(), id)
	if err != nil {
		return fault.Ignore(err, fault.NotFound) // deleted meanwhile
	}

	_, err = d.ask(ctx, rules.HookCreated, newUserEvent{Metadata: newHookMetadata(rules.HookCreated, c), User: u})
	if err == nil {
		return nil
	}

	_, failure := pg.Exec(ctx, d.Rows(), `delete from auth.sessions where user_id = @id`,
		pgx.StrictNamedArgs{"id": id})
	return errors.Join(err, failure)
}

// admitUser inserts a user who has signed up, if the hook admits it.
func (d *Directory) admitUser(ctx context.Context, tx pgx.Tx, n newUser, admit admission, c Client) (User, error) {
	if err := admit(&n); err != nil {
		return User{}, err
	}

	u, err := insertUser(ctx, tx, n)
	if err != nil {
		return User{}, err
	}

	return u, d.log(ctx, tx, "user_signedup", u, c)
}
