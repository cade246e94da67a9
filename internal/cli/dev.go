//go:build unix

package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/repository"
	"github.com/socle-dev/socle/internal/server"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	devFolder     = ".socle" // in the folder of the repository
	devEmail      = "dev@example.com"
	watchInterval = 500 * time.Millisecond
)

// dev is a server in the folder of a repository, with one project that follows the files.
type dev struct {
	e      environment // without settings of other servers; its log-in is that of the folder
	cmd    *cobra.Command
	root   string // folder of the repository
	folder string // folder of the server in it
}

func newDev(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev", Short: "Serve a repository on this machine, and push its files as they change", Args: noArgs,
		GroupID: groupRepository,
		Long: "Start a server with a private PostgreSQL in the folder .socle of the repository, which git ignores. It makes " +
			"an administrator and a project, pushes the files, and pushes again whenever config.toml, a migration, a " +
			"seed, a template or an edge function changes. Mails are kept in the mailbox of the project. Ctrl-C stops everything; the data " +
			"stay for the next start, unless it has --reset.\n\nPostgreSQL's programs must be installed. Settings of " +
			"other servers in the environment, such as SOCLE_URL, are not used.",
		Example: "  socle dev --open-tables --types src/database.ts",
	}

	addFolder(cmd)
	cmd.Flags().String("addr", devAddr, "address to listen on, host:port")
	cmd.Flags().Bool("open-tables", false, "grant anon and authenticated privileges on new tables, as Supabase does")
	cmd.Flags().String("types", "", "file to write types to, after each change")
	cmd.Flags().Bool("reset", false, "begin with an empty project")

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		root, err := repositoryFolder(cmd)
		if err != nil {
			return err
		}

		d := &dev{cmd: cmd, root: root, folder: filepath.Join(root, devFolder)}
		d.e.environ = append(slices.DeleteFunc(slices.Clone(e.environ), isForeign), "XDG_CONFIG_HOME="+d.folder)
		if program, err := d.e.deno(); err == nil { // the server looks elsewhere
			d.e.environ = append(d.e.environ, denoBin+"="+filepath.Dir(program))
		}
		if err := e.claimDevFolder(d.folder); err != nil {
			return err
		}

		return d.run(cmd.Context())
	}

	return cmd
}

// isForeign reports whether a variable selects another server or its log-in.
func isForeign(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return name == "XDG_CONFIG_HOME" || (strings.HasPrefix(name, "SOCLE_") && name != "SOCLE_POSTGRES_BIN" &&
		name != denoBin)
}

// run serves until ctx ends.
func (d *dev) run(ctx context.Context) error {
	unlock, err := d.prepare()
	if err != nil {
		return err
	}
	defer unlock()

	log, err := os.Create(filepath.Join(d.folder, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()

	addr, _ := d.cmd.Flags().GetString("addr")
	c, err := config.Load(d.e.environ, map[string]string{"addr": addr, "data-dir": filepath.Join(d.folder, "data")})
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}

	fmt.Fprintln(d.cmd.ErrOrStderr(), "Starting a server in "+shortPath(d.folder)+".")
	s, err := server.Start(ctx, c, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: c.LogLevel})))
	if err != nil {
		return err
	}

	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(serving)
		stop()
	}()

	err = d.follow(serving, s)
	stop()
	if errors.Is(err, context.Canceled) {
		err = nil
	}

	return errors.Join(err, <-ended)
}

// prepare locks the folder, which git ignores. --reset empties it.
func (d *dev) prepare() (unlock func(), err error) {
	lock, err := os.OpenFile(filepath.Join(d.folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("socle dev runs in this folder already"), lock.Close())
	}

	if reset, _ := d.cmd.Flags().GetBool("reset"); reset {
		for _, name := range []string{"data", "socle", "password"} {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.folder, name)))
		}
	}

	err = errors.Join(err, os.WriteFile(filepath.Join(d.folder, ".gitignore"), []byte("*\n"), 0o666))
	return func() { _ = lock.Close() }, err
}

// follow logs in, pushes the files, and again after each change, until ctx ends.
func (d *dev) follow(ctx context.Context, s *server.Server) error {
	if err := d.logIn(ctx, s); err != nil {
		return err
	}

	pushed := d.changed()
	d.push(ctx, s)
	d.printReady(ctx, s)

	before := pushed
	for range tick.Every(ctx, watchInterval) {
		now := d.changed()
		if now != pushed && now == before { // no file is still being written
			pushed = now
			d.push(ctx, s)
		}
		before = now
	}

	return nil
}

// logIn creates the administrator of a new server, and stores a session in the folder.
func (d *dev) logIn(ctx context.Context, s *server.Server) error {
	c := newClient(s.URL)
	file := filepath.Join(d.folder, "password")
	if s.SetupToken != "" {
		password := rand.Text()
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			return err
		}

		_, err := c.Do(ctx, client.Request{Method: http.MethodPost, Path: "/users", Body: map[string]string{
			"username": "dev", "email": devEmail, "password": password, "setup_token": s.SetupToken}})
		if err != nil {
			return explain(err)
		}
	}

	password, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	session, err := c.Login(ctx, devEmail, string(password), "")
	if err != nil {
		return explain(err)
	}

	if err := d.e.withAccount(func(a *account) error {
		a.URL, a.Session = c.URL, session
		return nil
	}); err != nil {
		return err
	}

	return d.moveLink(c.URL)
}

// moveLink makes the link of the folder one to an address, which may differ from that of the last
// start.
func (d *dev) moveLink(address string) error {
	name, err := d.e.linksFile()
	if err != nil {
		return err
	}

	var all repositoryLinks
	return withStored(name, &all, func() error {
		for i := range all.Repositories {
			all.Repositories[i].Folder, all.Repositories[i].Server = d.root, address
		}
		return nil
	})
}

// push pushes the files. A mistake is printed: the next change may mend it.
func (d *dev) push(ctx context.Context, s *server.Server) {
	args := []string{"--dir", d.root, "--yes", "--url", s.URL}
	if types, _ := d.cmd.Flags().GetString("types"); types != "" {
		args = append(args, "--types", types)
	}
	if open, _ := d.cmd.Flags().GetBool("open-tables"); open {
		args = append(args, "--open-tables")
	}

	if err := d.runCommand(ctx, newPush(d.e), args, func(cmd *cobra.Command) error {
		p, err := openPush(cmd, d.e)
		if err != nil {
			return err
		}

		p.hidesVariables, p.follows = true, true
		return p.run()
	}); err != nil && ctx.Err() == nil {
		fail(d.cmd.ErrOrStderr(), err)
	}
}

// runCommand runs a function with the flags of another command.
func (d *dev) runCommand(
	ctx context.Context, cmd *cobra.Command, args []string, run func(cmd *cobra.Command) error,
) error {
	cmd.SetContext(ctx)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(d.cmd.OutOrStdout())
	cmd.SetErr(d.cmd.ErrOrStderr())

	if err := cmd.ParseFlags(args); err != nil {
		return err
	}

	return run(cmd)
}

// printReady prints how an application and the other commands reach the project.
func (d *dev) printReady(ctx context.Context, s *server.Server) {
	w := d.cmd.OutOrStdout()
	fmt.Fprintln(w)

	env := newEnv(d.e)
	if err := d.runCommand(ctx, env, []string{"--dir", d.root, "--url", s.URL}, func(cmd *cobra.Command) error {
		return env.RunE(cmd, nil)
	}); err != nil && ctx.Err() == nil {
		fail(d.cmd.ErrOrStderr(), err)
	}

	err := d.e.withLink(d.root, s.URL, func(l *repositoryLink) error {
		return d.e.withAccount(func(a *account) error { a.Project = l.Project; return nil })
	})
	if err != nil {
		fail(d.cmd.ErrOrStderr(), err)
	}

	folder := config.ShellWord(shortPath(d.folder))
	fmt.Fprintf(w, "\nConsole: %s/console\nSocle is ready at %s, API reference at %s/docs\n"+
		"Other commands: XDG_CONFIG_HOME=%s socle sql\n"+
		"Mails to users: XDG_CONFIG_HOME=%s socle mails list\n"+
		"Log: %s\n"+
		"Watching %s. Stop with Ctrl-C.\n", s.URL, s.URL, s.URL, folder, folder,
		shortPath(filepath.Join(d.folder, "server.log")), shortPath(filepath.Join(d.root, repository.Folder)))
}

// changed returns what differs after a change of the files that a push reads.
func (d *dev) changed() string {
	skips := func(folder string) bool { return folder == "node_modules" }
	return fingerprint(filepath.Join(d.root, repository.Folder), skips, filepath.Join(d.root, ".env"),
		filepath.Join(d.root, ".env.local"))
}
