package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
)

// Bounds of a request of an import. The server takes 100 users and 1 MiB.
const (
	maxUsersPerRequest = 100
	maxUserBytes       = 512 << 10
)

// Bounds of the report: failures, and columns that are left out.
const (
	maxUserFailures = 100
	maxLeftOut      = 100
)

// userImport is an import of users under way.
type userImport struct {
	client *client.Client
	batch  []sourceUser
	size   int // bytes of the batch

	leftOut map[string]bool // columns that are no members

	Created  int           `json:"created"`
	Exists   int           `json:"exists"`
	Failed   int           `json:"failed"`
	Failures []userFailure `json:"failures"`
}

// userFailure is a user that was not created.
type userFailure struct {
	Line   int    `json:"line"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail"`
}

func newEndUserImport(d *description, e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import FILE|-", Short: "Import users of another system with their password hashes", Args: exactArgs(1),
		Example: "  socle end-users import users.csv\n  socle end-users import supabase.sql",
		Long: "Import users from CSV with a header, JSON lines, or a dump of a Supabase project.\n\n" +
			"Columns: uuid (or id), email, password_hash (argon2id, bcrypt, $fbscrypt$ of Firebase), role, created_at, " +
			"email_confirmed_at, invited_at, last_sign_in_at, banned_until, is_anonymous, app_metadata, user_metadata; " +
			"also by the names of Supabase's auth.users. Users keep their UUIDs, and a known UUID stays as it is: an import can be " +
			"repeated. Users that fail are listed with their lines, and the others are imported.\n\n" +
			"Requires the role of admin in the project's organization.",
	}

	e.addConnectionFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		if err := (finder{d, c}).selectProject(cmd.Context()); err != nil {
			return err
		}

		in := io.NopCloser(cmd.InOrStdin())
		if args[0] != "-" {
			if in, err = os.Open(args[0]); err != nil {
				return err
			}
		}
		defer in.Close()

		text, err := openDump(cmd.Context(), in, e.environ)
		if err != nil {
			return err
		}
		defer text.Close()

		i := &userImport{client: c, Failures: []userFailure{}, leftOut: map[string]bool{}}
		err = readUsers(cmd.Context(), text, func(u sourceUser) error { return i.add(cmd.Context(), u) })
		if err == nil {
			err = i.flush(cmd.Context())
		}

		return errors.Join(err, i.print(cmd))
	}

	return cmd
}

// add sends the batch if it has no room for a user, and puts the user into it.
func (i *userImport) add(ctx context.Context, u sourceUser) error {
	for _, column := range u.leftOut {
		if column != "deleted_at" && len(i.leftOut) < maxLeftOut {
			i.leftOut[column] = true
		}
	}

	if u.err == nil && u.members["uuid"] == nil {
		u.err = errors.New("uuid is missing")
	}
	if u.err != nil {
		i.fail(u, "", u.err.Error())
		return nil
	}

	text, err := json.Marshal(u.members)
	if err != nil {
		return err
	}

	if len(i.batch) == maxUsersPerRequest || (len(i.batch) > 0 && i.size+len(text) > maxUserBytes) {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}

	i.batch, i.size = append(i.batch, u), i.size+len(text)
	return nil
}

func (i *userImport) flush(ctx context.Context) error {
	batch := i.batch
	i.batch, i.size = nil, 0
	if len(batch) == 0 {
		return nil
	}

	return i.send(ctx, batch)
}

// send imports users. A request that the server refuses as invalid is sent again in halves, so that
// only the invalid user fails.
func (i *userImport) send(ctx context.Context, users []sourceUser) error {
	members := make([]map[string]any, len(users))
	for n, u := range users {
		members[n] = u.members
	}

	reply, err := i.client.Do(ctx, client.Request{Method: http.MethodPost,
		Path: "/projects/" + url.PathEscape(i.client.Project) + "/end-users/import",
		Body: map[string]any{"users": members}})
	if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusUnprocessableEntity {
		if len(users) == 1 {
			i.fail(users[0], e.Code, e.Error())
			return nil
		}

		half := len(users) / 2
		if err := i.send(ctx, users[:half]); err != nil {
			return err
		}

		return i.send(ctx, users[half:])
	}
	if err != nil {
		return err
	}

	var results []struct{ Outcome, Code, Detail string }
	if err := reply.Into(&results); err != nil {
		return err
	}

	for n, r := range results {
		switch r.Outcome {
		case "created":
			i.Created++
		case "exists":
			i.Exists++
		default:
			i.fail(users[n], r.Code, r.Detail)
		}
	}

	return nil
}

func (i *userImport) fail(u sourceUser, code, detail string) {
	i.Failed++
	if len(i.Failures) < maxUserFailures {
		i.Failures = append(i.Failures, userFailure{u.line, code, detail})
	}
}

// print prints the outcome. It returns an error if users have failed.
func (i *userImport) print(cmd *cobra.Command) error {
	if asJSON(cmd) {
		if err := json.NewEncoder(cmd.OutOrStdout()).Encode(i); err != nil {
			return err
		}
	} else {
		if names := slices.Sorted(maps.Keys(i.leftOut)); len(names) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "Left out, since users have no such members: %s\n", sanitize(strings.Join(names, ", ")))
		}

		fmt.Fprintf(cmd.OutOrStdout(), "%d created, %d exist already, %d failed\n", i.Created, i.Exists, i.Failed)
		for _, f := range i.Failures {
			fmt.Fprintf(cmd.ErrOrStderr(), "line %d: %s\n", f.Line, sanitize(f.Detail))
		}
		if more := i.Failed - len(i.Failures); more > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "… and %d more\n", more)
		}
	}

	if i.Failed > 0 {
		return fmt.Errorf("%d users were not imported", i.Failed)
	}

	return nil
}
