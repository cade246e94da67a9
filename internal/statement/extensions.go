package migration

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/migration/file"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/sqllex"
	"github.com/socle-dev/socle/internal/statement"
)

// No login of a project may create or drop an extension, so the platform does. It can't take part
// in the owner's transaction. Extensions are therefore created before the transaction of the file
// that creates them, and stay if the transaction fails. They are dropped in a file without a
// transaction only, where statements run in order.

// extensionOf returns the name of the extension that a statement creates or drops, or "".
func extensionOf(s sqllex.Statement) (name string, drop bool) {
	if len(s.Words) < 2 || s.Words[1] != "extension" || (s.Words[0] != "create" && s.Words[0] != "drop") {
		return "", false
	}

	l := sqllex.New(s.Text)
	for words := 0; ; {
		t, ok := l.Next()
		if !ok {
			return "", false
		}

		text := s.Text[t.Start:t.End]
		switch {
		case t.Kind == sqllex.Comment:
		case words < 2:
			words++
		case t.Kind == sqllex.Word && slices.Contains([]string{"if", "not", "exists"}, strings.ToLower(text)):
		case t.Kind == sqllex.QuotedName && strings.HasPrefix(text, `"`):
			return strings.ReplaceAll(strings.Trim(text, `"`), `""`, `"`), s.Words[0] == "drop"
		default:
			return strings.ToLower(text), s.Words[0] == "drop"
		}
	}
}

// checkExtensions fails with Unprocessable if the script drops an extension in a transaction.
func (s script) checkExtensions() error {
	if s.separate {
		return nil
	}

	for i, st := range s.statements {
		if name, drop := extensionOf(st); name != "" && drop {
			return s.rejectExtension(i, "an extension can't be dropped in a transaction",
				"Drop it in a file of its own, whose first line is "+file.NoTransaction+".")
		}
	}

	return nil
}

// rejectExtension is the failure of the statement i, in the form of PostgreSQL's errors.
func (s script) rejectExtension(i int, message, hint string) error {
	f := fault.OnField(fault.Unprocessable, s.field, "not_allowed", "was rejected: %s", message)
	st := s.statements[i]
	f.Extra = map[string]any{"postgres": statement.PostgresError{
		Message: message, Hint: hint, Position: st.FirstChar() + 1, Statement: i + 1,
	}}

	return f
}

// skipExtension leaves out the statements that [script.createExtensions] has run.
func skipExtension(_ context.Context, s sqllex.Statement) (skip bool, err error) {
	name, _ := extensionOf(s)
	return name != "", nil
}

// createExtensions creates the extensions of a script that are missing. platform runs a function in
// a transaction of the platform's login.
func (s script) createExtensions(ctx context.Context, platform func(context.Context, func(pgx.Tx) error) error) error {
	for i, st := range s.statements {
		if name, _ := extensionOf(st); name != "" {
			if err := s.ensure(ctx, i, name, platform); err != nil {
				return err
			}
		}
	}

	return nil
}

// runExtension runs a statement on an extension. It reports false for any other statement.
func (s script) runExtension(
	ctx context.Context, st sqllex.Statement, platform func(context.Context, func(pgx.Tx) error) error,
) (bool, error) {
	name, drop := extensionOf(st)
	if name == "" {
		return false, nil
	}

	i := slices.IndexFunc(s.statements, func(o sqllex.Statement) bool { return o.Char == st.Char })
	if !drop {
		return true, s.ensure(ctx, i, name, platform)
	}

	err := platform(ctx, func(tx pgx.Tx) error {
		_, err := schema.DeleteExtension(ctx, tx, name)
		return fault.Ignore(err, fault.NotFound)
	})

	return true, s.explainExtension(i, name, err)
}

func (s script) ensure(
	ctx context.Context, i int, name string, platform func(context.Context, func(pgx.Tx) error) error,
) error {
	err := platform(ctx, func(tx pgx.Tx) error {
		installed, err := pg.Value[bool](ctx, tx, `select exists (select from pg_extension where extname = @name)`,
			pgx.StrictNamedArgs{"name": name})
		if err != nil || installed {
			return err
		}

		_, err = schema.CreateExtension(ctx, tx, name)
		return err
	})

	return s.explainExtension(i, name, err)
}

// explainExtension turns the failure of a statement on an extension into one of the script.
func (s script) explainExtension(i int, name string, err error) error {
	e := fault.Of(err)
	if err == nil || e.Kind == fault.Internal || e.Kind == fault.Unavailable {
		return err
	}

	detail := strings.TrimPrefix(e.Detail, "name ")
	return s.rejectExtension(i, "extension "+name+": "+detail, "")
}
