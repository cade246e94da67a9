package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/pgdump"
)

// dbImport is the command that imports a dump.
type dbImport struct {
	e      environment
	tunnel *tunnel
	name   string // file name, - for standard input
	last   string // statement after those of the dump, which is a part of something larger; "": none
}

func newDBImport(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import FILE|-", Short: "Import a dump of pg_dump", Args: cobra.ExactArgs(1),
		Example: "  socle db import library.sql\n  pg_dump postgres://old.example.com/library | socle db import -",
		Long: "Import a dump of pg_dump into the project's database, with the rights of the project's owner.\n\n" +
			"Plain dumps, also compressed by gzip, are read as they are; archives (custom, directory, tar) need " +
			"pg_restore on this machine. Owners, unknown roles, and objects that a project can't have are left out and " +
			"listed with their lines. Extensions are installed by the server, before the transaction begins, and stay " +
			"if the import fails.\n\n" +
			"Requires the role of admin in the project's organization.",
	}

	single := cmd.Flags().Bool("single-transaction", true, "import everything or nothing")
	skip := cmd.Flags().StringArray("skip", nil,
		"object of the dump to leave out: schema.name, or schema.table.name for a trigger, rule, policy or constraint; repeatable")
	exclude := cmd.Flags().StringSlice("exclude-schema", nil, "schema of the dump to leave out; repeatable")
	e.addConnectionFlags(cmd)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := newTunnel(cmd, e)
		if err != nil {
			return err
		}

		i := dbImport{e: e, tunnel: t, name: args[0]}
		return i.run(cmd, pgdump.Options{
			Separately: !*single, ExcludeSchemas: *exclude, Skip: *skip, Install: i.install,
		})
	}

	return cmd
}

// run imports the dump and prints the report.
func (i dbImport) run(cmd *cobra.Command, o pgdump.Options) error {
	dump, progress, err := i.open(cmd)
	if err != nil {
		return err
	}
	defer dump.Close()

	conn, err := i.tunnel.connect(cmd.Context(), map[string]string{"application_name": "socle db import"})
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(cmd.Context()))

	statements := io.Reader(dump)
	if i.last != "" {
		statements = io.MultiReader(dump, strings.NewReader("\n;\n"+i.last+";\n"))
	}

	start := time.Now()
	report, err := pgdump.Import(cmd.Context(), conn, statements, o)
	progress.end()

	if err != nil {
		return &importError{cause: err, report: report, file: i.name, separately: o.Separately}
	}

	if asJSON(cmd) {
		if i.last != "" {
			printImportReport(cmd.ErrOrStderr(), report)
			return nil
		}
		return printValue(cmd.OutOrStdout(), report)
	}

	fmt.Fprintf(cmd.ErrOrStderr(), "Imported %s and %s in %s.\n", count(report.Rows, "row"),
		count(int64(report.Statements), "statement"), time.Since(start).Round(time.Millisecond))
	printImportReport(cmd.OutOrStdout(), report)

	return nil
}

// open opens the dump as plain text.
func (i dbImport) open(cmd *cobra.Command) (io.ReadCloser, *progress, error) {
	if i.name == "-" {
		p := newProgress(cmd.ErrOrStderr(), -1)
		in := canceledReader{cmd.Context(), cmd.InOrStdin()}
		dump, err := openDump(cmd.Context(), io.TeeReader(in, p), i.e.environ)

		return dump, p, err
	}

	info, err := os.Stat(i.name)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		p := newProgress(cmd.ErrOrStderr(), -1)
		dump, err := restoreToText(cmd.Context(), nil, i.e.environ, i.name)

		return teeCloser{io.TeeReader(dump, p), dump}, p, err
	}

	file, err := os.Open(i.name)
	if err != nil {
		return nil, nil, err
	}

	p := newProgress(cmd.ErrOrStderr(), info.Size())
	dump, err := openDump(cmd.Context(), io.TeeReader(file, p), i.e.environ)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}

	return closers{dump, file}, p, nil
}

// install installs an extension by the platform's operation.
func (i dbImport) install(ctx context.Context, name string) error {
	c, err := i.tunnel.client()
	if err != nil {
		return err
	}

	c.Project = i.tunnel.Project
	body := map[string]string{"name": name}
	_, err = c.Do(ctx, client.Request{Method: http.MethodPost, Path: "/extensions", Body: body})

	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return err
	case e.Code == "already_exists":
		return nil
	case e.Status == http.StatusUnprocessableEntity && len(e.Fields) > 0:
		reason, _, _ := strings.Cut(e.Fields[0].Message, ":") // without the list of others
		return &pgdump.UnavailableError{Reason: reason}
	}

	return explain(err)
}
