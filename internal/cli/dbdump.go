package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pgdump"
)

// selectPolicyRoles returns the roles that policies name, other than PUBLIC.
const selectPolicyRoles = `
	select distinct r.rolname::text from pg_catalog.pg_policy p
	cross join pg_catalog.unnest(p.polroles) o(id) join pg_catalog.pg_roles r on r.oid = o.id order by 1`

// dbDump is the command that dumps a project's database.
type dbDump struct {
	e    environment
	file string // "" for standard output
	args []string
	text bool // a plain dump
}

func newDBDump(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dump [FILE]", Short: "Dump the database by pg_dump", Args: cobra.MaximumNArgs(1),
		Example: "  socle db dump library.sql\n  socle db dump library.dump --format custom",
		Long: "Dump the project's schemas and rows for psql or pg_restore elsewhere, by the pg_dump of this machine.\n\n" +
			"Owners, privileges and the platform's schemas are left out. For a backup with files and forms: socle " +
			"backups create. Requires the role of admin in the project's organization.",
	}

	format := cmd.Flags().String("format", "plain", "plain, for psql, or custom, for pg_restore")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions( // the flag exists
		[]string{"plain", "custom"}, cobra.ShellCompDirectiveNoFileComp))
	schema := cmd.Flags().Bool("schema-only", false, "dump no rows")
	data := cmd.Flags().Bool("data-only", false, "dump rows only")
	exclude(cmd, "schema-only", "data-only")
	e.addTunnelFlags(cmd)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *format != "plain" && *format != "custom" {
			return fmt.Errorf("%w: --format is plain or custom", errUsage)
		}

		d := dbDump{e: e, text: *format == "plain"}
		if len(args) > 0 && args[0] != "-" {
			d.file = args[0]
		}
		if *schema {
			d.args = append(d.args, "--schema-only")
		}
		if *data {
			d.args = append(d.args, "--data-only")
		}

		if _, ok := terminal(cmd.OutOrStdout()); ok && !d.text && d.file == "" {
			return fmt.Errorf("%w: an archive is no text for a terminal: name a file", errUsage)
		}

		return d.run(cmd)
	}

	return cmd
}

// run dumps into an archive, removes the platform's objects, and converts it to text if wanted.
func (d dbDump) run(cmd *cobra.Command) error {
	folder := os.TempDir()
	if d.file != "" {
		folder = filepath.Dir(d.file)
	}

	archive, err := os.CreateTemp(folder, ".socle-dump-*") // readable by this user only
	if err != nil {
		return writeFailure(cmp.Or(d.file, "a temporary file"), err)
	}
	defer func() {
		_ = archive.Close()
		_ = os.Remove(archive.Name())
	}()

	if err := d.dump(cmd, archive.Name()); err != nil {
		return err
	}

	if err := pgdump.Clear(archive, isPlatformEntry); err != nil {
		return err
	}

	if d.text {
		return d.restore(cmd, archive)
	}
	if d.file != "" {
		return d.report(cmd, writeFailure(d.file, os.Rename(archive.Name(), d.file)))
	}

	_, err = io.Copy(cmd.OutOrStdout(), archive)
	return err
}

// dump runs pg_dump through a tunnel.
func (d dbDump) dump(cmd *cobra.Command, name string) error {
	program, err := exec.LookPath("pg_dump")
	if err != nil {
		return errors.New("pg_dump is not installed; on Debian and Ubuntu: apt install postgresql-client")
	}

	t, err := newTunnel(cmd, d.e)
	if err != nil {
		return err
	}
	services, err := d.inspect(cmd, t)
	if err != nil {
		return err
	}

	p, err := t.listen(cmd.Context(), "127.0.0.1:0")
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(cmd.Context())
	served := make(chan error, 1)
	go func() { served <- p.serve(ctx) }()

	args := append([]string{"--format=custom", "--no-privileges", "--file=" + name}, d.args...)
	for _, schema := range namespace.Platform { // the owner can't read them
		args = append(args, "--exclude-schema="+schema)
	}
	for _, schema := range services {
		args = append(args, "--exclude-schema="+schema)
	}

	err = runProgram(ctx, program, append(d.e.environ, p.environ()...), args...)
	cancel()

	return errors.Join(err, <-served)
}

// selectServiceSchemas returns the schemas of services that are not the project's own. Schema
// pgmq stays in the dump of a project with queues, which would work nowhere else without it.
var selectServiceSchemas = `
	select nspname::text from pg_catalog.pg_namespace n
	where nspname in ` + namespace.List(namespace.Services...) + `
		and nspowner = (select nspowner from pg_catalog.pg_namespace where nspname = 'socle')
		and not (nspname = 'pgmq' and exists (
			select from pg_catalog.pg_class c where c.relnamespace = n.oid and c.relname like 'q\_%'))`

// inspect names the roles that must exist where the dump is restored. It returns the schemas of
// services that belong to the platform.
func (d dbDump) inspect(cmd *cobra.Command, t *tunnel) ([]string, error) {
	conn, err := t.connect(cmd.Context(), nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(cmd.Context()))

	result := conn.ExecParams(cmd.Context(), selectPolicyRoles, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, plainError(result.Err)
	}

	var roles []string
	for _, row := range result.Rows {
		roles = append(roles, string(row[0]))
	}
	if len(roles) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "Policies name roles that must exist where you restore the dump: %s\n",
			sanitize(strings.Join(roles, ", ")))
	}

	result = conn.ExecParams(cmd.Context(), selectServiceSchemas, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, plainError(result.Err)
	}

	var services []string
	for _, row := range result.Rows {
		services = append(services, string(row[0]))
	}

	return services, nil
}

// extensionsSchema is the schema that each project has from the start.
const extensionsSchema = "extensions"

// isPlatformEntry reports whether an entry of a dump belongs to the platform: an event trigger, the
// publication that each project has from the start, whose tables stay, or the comment on an
// extension, which only its owner may set.
func isPlatformEntry(e pgdump.Entry) bool {
	return (e.Desc == "COMMENT" && strings.HasPrefix(e.Tag, "EXTENSION ")) ||
		(e.Desc == "EVENT TRIGGER" && strings.HasPrefix(e.Tag, "socle_")) ||
		(e.Desc == "PUBLICATION" && e.Tag == "supabase_realtime")
}

// platformOwner returns the platform's login, which owns the event triggers.
func platformOwner(entries []pgdump.Entry) string {
	i := slices.IndexFunc(entries, func(e pgdump.Entry) bool {
		return e.Desc == "EVENT TRIGGER" && strings.HasPrefix(e.Tag, "socle_")
	})
	if i < 0 {
		return ""
	}

	return entries[i].Owner
}

// queueSchema has the tables of queues, among objects of the platform.
const queueSchema = "pgmq"

// queuePlatform returns the owner of the platform's objects in [queueSchema]. It returns "" if the
// schema is the project's own, so that its owner also has the tables in it.
func queuePlatform(entries []pgdump.Entry) string {
	platform := ""
	for _, e := range entries {
		switch {
		case e.Desc == "SCHEMA" && e.Tag == queueSchema:
			platform = e.Owner
		case e.Desc == "TABLE" && e.Namespace == queueSchema && strings.HasPrefix(e.Tag, "q_") && e.Owner == platform:
			return ""
		}
	}

	return platform
}

// restore turns the archive into text.
func (d dbDump) restore(cmd *cobra.Command, archive *os.File) error {
	entries, err := pgdump.ReadTOC(archive)
	if err != nil {
		return err
	}

	list, err := os.CreateTemp("", "socle-dump-*.list")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(list.Name()) }()

	head, platform, server := "", queuePlatform(entries), platformOwner(entries)
	for _, e := range entries {
		switch {
		case isPlatformEntry(e), e.Namespace == queueSchema && e.Owner == platform:
		case e.Namespace == extensionsSchema && e.Owner == server: // it stands for an extension
		case e.Desc == "SCHEMA" && (e.Tag == extensionsSchema || (e.Tag == queueSchema && platform != "")):
			head += "CREATE SCHEMA IF NOT EXISTS " + e.Tag + ";\n\n"
		default:
			fmt.Fprintf(list, "%d;\n", e.ID)
		}
	}
	if err := list.Close(); err != nil {
		return err
	}

	text, err := restoreToText(cmd.Context(), nil, d.e.environ, "--no-owner", "--use-list="+list.Name(), archive.Name())
	if err != nil {
		return err
	}
	defer text.Close()

	content := io.MultiReader(strings.NewReader(head), text)
	if d.file == "" {
		_, err := io.Copy(cmd.OutOrStdout(), content)
		return err
	}

	return d.report(cmd, writeNew(d.file, content))
}

// report tells the name and size of the dump.
func (d dbDump) report(cmd *cobra.Command, err error) error {
	if err != nil {
		return err
	}

	info, err := os.Stat(d.file)
	if err != nil {
		return err
	}

	fmt.Fprintf(cmd.ErrOrStderr(), "Wrote %s (%s).\n", d.file, formatSize(info.Size()))
	return nil
}

// writeNew writes a file that only this user can read, under a temporary name until it is complete.
func writeNew(name string, content io.Reader) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".socle-dump-*")
	if err != nil {
		return writeFailure(name, err)
	}

	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(writeFailure(name, err), os.Remove(file.Name()))
	}

	return writeFailure(name, os.Rename(file.Name(), name))
}

// runProgram runs one of PostgreSQL's programs. Its error contains the program's output.
func runProgram(ctx context.Context, name string, environ []string, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stderr = environ, &stderr

	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return errors.New("canceled")
	case err != nil:
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, oneLine(strings.TrimSpace(stderr.String())))
	}

	return nil
}
