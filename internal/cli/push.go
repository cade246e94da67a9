package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/repository"
)

// push is a push of a repository to its project.
type push struct {
	e        environment
	cmd      *cobra.Command
	document *description
	client   *client.Client // its project is that of the repository; "": it is to be created
	repo     *repository.Repository
	link     repositoryLink
	given    bool // the project is that of a flag or of the environment

	migrations *migrationState
	state      projectState
	types      string // file for types; ""
	quiet      bool   // prints no more than what fails

	functions       []deployment        // none with --no-functions
	functionSecrets []repository.Secret // those in the file of a flag

	hidesVariables bool
	follows        bool // the push is one of socle dev
}

func newPush(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "push", Short: "Bring a project to what a repository says: settings, schema, rows, buckets, functions",
		Args: noArgs, GroupID: groupRepository,
		Long: "Read the folder supabase of a repository, compare it with its project, show what changes, and change " +
			"it. Without a project, one is created.\n\n" +
			"config.toml has the settings and buckets, migrations the schema, seed.sql the rows of a new database, " +
			"which run once, functions the edge functions, which Deno bundles. What the files do not name stays as it is. Values such as env(SECRET) come from the environment, " +
			"or from a file .env of the repository. A mistake in a file stops the push before anything has changed; a push " +
			"that was interrupted is repeated. What a project can't have is listed with file and line.\n\n" +
			"The project is that of --project or " + config.ClientProject + ", or the one that the repository was " +
			"pushed to or linked with before, on this machine; never the project of socle use.",
		Example: "  socle push --dry-run\n  socle push --yes --open-tables --types src/database.ts",
	}

	e.addProjectFlags(cmd)
	cmd.Flags().Bool("dry-run", false, "show what would change")
	cmd.Flags().BoolP("yes", "y", false, "do not ask")
	cmd.Flags().Bool("open-tables", false, "grant anon and authenticated privileges on new tables, as Supabase does")
	cmd.Flags().Bool("closed-tables", false, "grant no privileges on new tables")
	cmd.Flags().Bool("allow-out-of-order", false, "apply a migration although a newer one is applied")
	cmd.Flags().String("types", "", "file to write types to, such as src/database.ts")
	cmd.Flags().Bool("no-functions", false, "leave edge functions as they are")
	cmd.Flags().String("env-file", "", "file of secrets of edge functions, such as supabase/functions/.env")
	cmd.Flags().StringSlice("allow-import", nil, "further host that modules of functions may be imported from")
	cmd.MarkFlagsMutuallyExclusive("open-tables", "closed-tables")

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p, err := openPush(cmd, e)
		if err != nil {
			return err
		}

		return p.run()
	}

	return cmd
}

// addFolder adds the flag that names a repository.
func addFolder(cmd *cobra.Command) {
	cmd.Flags().String("dir", "", "folder of the repository (default: the nearest one upwards)")
	_ = cmd.MarkFlagDirname("dir") // the flag exists
}

// addProjectFlags adds the flags that select the server and the project of a repository.
func (e environment) addProjectFlags(cmd *cobra.Command) {
	addFolder(cmd)
	e.addConnectionFlags(cmd)
	cmd.Flags().Lookup("project").Usage = "name or UUID of the project (default: " + config.ClientProject +
		", then the one that the repository is linked with)"
}

// openPush reads the repository of a command and all of its files, without a request.
func openPush(cmd *cobra.Command, e environment) (*push, error) {
	p := &push{e: e, cmd: cmd, quiet: asJSON(cmd)}
	folder, err := repositoryFolder(cmd)
	if err != nil {
		return nil, err
	}

	if err := p.read(folder); err != nil {
		return nil, err
	}

	if f := cmd.Flags().Lookup("types"); f != nil {
		p.types = f.Value.String()
	}

	return p, p.connect()
}

// repositoryFolder returns the folder of a command's repository.
func repositoryFolder(cmd *cobra.Command) (string, error) {
	dir, _ := cmd.Flags().GetString("dir")
	if dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return "", err
		}
	}

	folder, err := repository.Find(cmp.Or(dir, "."))
	if errors.Is(err, repository.ErrNone) {
		return "", fmt.Errorf("%w; create one: socle init", err)
	}

	return folder, err
}

// read reads the repository of a folder.
func (p *push) read(folder string) error {
	repo, err := repository.Open(folder, p.e.lookup)
	if err != nil {
		return err
	}

	m := &migrationState{e: p.e, dir: shortPath(repo.Path(repository.Migrations))}
	if !repo.Config.SkipMigrations {
		files, err := readMigrations(m.dir, repo.Root)
		if err != nil {
			return err
		}

		m.files = files.files
		for _, path := range files.skipped {
			repo.Notes = append(repo.Notes, repository.Remark{File: filepath.ToSlash(path),
				Text: "is no migration: its name has no version, as 20261123101500_create_books.sql has"})
		}
	}

	p.repo, p.migrations = repo, m
	return nil
}

// shortPath returns a path from the working directory, if that contains it.
func shortPath(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}

	short, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(short) {
		return path
	}

	return short
}

// connect selects the server and the project. Without a project of a flag, the environment or the
// link, that is none.
func (p *push) connect() error {
	d, err := describe()
	if err != nil {
		return err
	}

	c, err := p.e.client(p.cmd)
	if err != nil {
		return err
	}

	p.document, p.client, p.migrations.client = d, c, c
	c.Project = cmp.Or(p.cmd.Flags().Lookup("project").Value.String(), p.e.value(config.ClientProject))
	p.given = c.Project != ""
	if p.given {
		if err := (finder{d, c}).selectProject(p.cmd.Context()); err != nil {
			return err
		}
	}

	return p.readLink()
}

// readLink reads this machine's record of the repository. It is empty without a folder for records.
func (p *push) readLink() error {
	if _, err := p.e.linksFile(); err != nil {
		return nil
	}

	return p.e.withLink(p.repo.Root, p.client.URL, func(l *repositoryLink) error {
		p.link = *l
		if p.given && l.Project != p.client.Project {
			p.link = repositoryLink{Salt: l.Salt}
		}
		if !p.given {
			p.client.Project = l.Project
		}

		return nil
	})
}

// changeLink changes what this machine keeps of the repository. Of a project that a flag names
// beside the linked one, nothing is kept.
func (p *push) changeLink(f func(l *repositoryLink)) error {
	if _, err := p.e.linksFile(); err != nil {
		f(&p.link)
		return nil
	}

	return p.e.withLink(p.repo.Root, p.client.URL, func(l *repositoryLink) error {
		if id := p.client.Project; id != "" && l.Project != "" && l.Project != id {
			f(&p.link)
			return nil
		}

		f(l)
		p.link = *l

		return nil
	})
}

// run shows the plan, asks, and carries it out.
func (p *push) run() error {
	if err := p.bundleFunctions(); err != nil {
		return err
	}

	unlock, err := p.lock()
	if err != nil {
		return err
	}
	defer unlock()

	plan, err := p.plan()
	if err != nil {
		return err
	}

	dry, _ := p.cmd.Flags().GetBool("dry-run")
	if dry || plan.empty() {
		return p.report(plan, false, time.Time{})
	}

	if !p.quiet {
		p.printPlan(plan)
	}

	if err := p.confirm(plan); err != nil {
		return err
	}

	start := time.Now()
	if err := p.execute(plan); err != nil {
		fmt.Fprintln(p.cmd.ErrOrStderr(), "The push stops here. What it did before stays, and the next push goes on.")
		return err
	}

	return p.report(plan, true, start)
}

// lock waits for other pushes of the repository, and reads the link that they leave.
func (p *push) lock() (unlock func(), err error) {
	if _, err := p.e.linksFile(); err != nil {
		return func() {}, nil
	}

	unlock, err = p.e.lockRepository(p.cmd.Context(), p.repo.Root, func() {
		fmt.Fprintln(p.cmd.ErrOrStderr(), "Waiting for another push of this repository.")
	})
	if err != nil {
		return nil, err
	}

	if err := p.readLink(); err != nil {
		unlock()
		return nil, err
	}

	return unlock, nil
}

// confirm asks on a terminal whether to go on, and first how new tables are to be. Without a
// terminal it demands --yes.
func (p *push) confirm(plan *pushPlan) error {
	if yes, _ := p.cmd.Flags().GetBool("yes"); yes {
		return nil
	}

	if _, ok := terminal(p.cmd.InOrStdin()); !ok {
		return fmt.Errorf("%w: push needs --yes if no terminal can ask for confirmation", errUsage)
	}

	if plan.askTables {
		open, err := ask(p.cmd, "Grant anon and authenticated privileges on new tables, as Supabase does? Row level "+
			"security stays on, so policies decide.")
		if err != nil {
			return err
		}
		if open {
			plan.mode = modeSupabase
		}
	}

	yes, err := ask(p.cmd, "Continue?")
	if err != nil {
		return err
	}
	if !yes {
		return errCanceled
	}

	return nil
}

// get reads the content of an operation without a body.
func (p *push) get(ctx context.Context, path string, query url.Values, into any) error {
	reply, err := p.client.Do(ctx, client.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return explain(err)
	}

	return reply.Into(into)
}

// inProject returns the path of an operation in the project.
func (p *push) inProject(path string) string {
	return "/projects/" + url.PathEscape(p.client.Project) + path
}

// isMissing reports whether an error is that of a file or thing that does not exist.
func isMissing(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return errors.Is(err, fs.ErrNotExist) || (ok && e.Status == http.StatusNotFound)
}
