package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/function/bundle"
	"github.com/socle-dev/socle/internal/repository"
)

// denoBin names the folder of Deno, for the server and for bundles.
const denoBin = "SOCLE_DENO_BIN"

// addFunctions adds the commands on edge functions that are more than one operation.
func addFunctions(group *cobra.Command, d *description, e environment) {
	group.Aliases = []string{"edge-functions"}
	group.AddCommand(newFunctionNew(), newFunctionDeploy(d, e), newFunctionServe(e), newFunctionRollback(d, e),
		newFunctionLogs(d, e), newFunctionInstall(e))

	secrets := groupOf(group, "secrets")
	secrets.Short = "Secrets in the environment of edge functions: set, list, delete"
	secrets.AddCommand(newFunctionSecretsSet(d, e))
}

// deno returns the path of Deno on this machine.
func (e environment) deno() (string, error) {
	if folder := e.value(denoBin); folder != "" {
		program, err := bundle.Find(folder)
		if err == nil && filepath.Dir(program) != filepath.Clean(folder) {
			return "", fmt.Errorf("%s names %s, which has no Deno", denoBin, folder)
		}
		return program, err
	}

	beside := ""
	if program, err := os.Executable(); err == nil {
		beside = filepath.Join(filepath.Dir(program), "deno")
	}

	own, _ := e.denoFolder() // "": none
	return bundle.Find(own, beside, "/usr/lib/socle/deno")
}

// denoFolder returns the folder in which socle functions install keeps Deno.
func (e environment) denoFolder() (string, error) {
	folder, ok := e.dataFolder()
	if !ok {
		return "", errors.New("name a folder for Deno: --folder")
	}

	return filepath.Join(folder, "deno"), nil
}

// dataFolder returns the folder of commands' data of this user. It reports false without a home.
func (e environment) dataFolder() (string, bool) {
	dir := cmp.Or(e.value("XDG_DATA_HOME"), e.value("LOCALAPPDATA")) // the latter on Windows
	if dir == "" {
		home := e.value("HOME")
		if home == "" {
			return "", false
		}

		dir = filepath.Join(home, ".local", "share")
	}

	return filepath.Join(dir, "socle"), true
}

func newFunctionInstall(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "install", Short: "Install Deno, which bundles and runs edge functions", Args: noArgs,
		Long: "Fetch the release of Deno that this version of Socle is tested with from npm's registry, check its sum, and " +
			"keep it for the commands of this user. For a server, install it in the folder deno of its data folder.",
		Example: "  socle functions install\n  socle functions install --folder /var/lib/socle/deno --from ./deno.tgz",
	}

	cmd.Flags().String("folder", "", "folder to install it in (default: that of the user's data)")
	cmd.Flags().String("from", "", "archive of the release, or URL of a registry (default: npm's registry)")
	_ = cmd.MarkFlagDirname("folder") // the flag exists

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, _ := cmd.Flags().GetString("folder")
		from, _ := cmd.Flags().GetString("from")
		if folder == "" {
			var err error
			if folder, err = e.denoFolder(); err != nil {
				return err
			}
		}

		program, was, err := bundle.Install(cmd.Context(), folder, from)
		if err != nil {
			return err
		}

		verb := "Installed"
		if was {
			verb = "There is"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s.\n", verb, program)
		return err
	}

	return cmd
}

// newFunction is the module of a new function.
const newFunction = `// Call it: supabase.functions.invoke("NAME", { body: { name: "Ada" } })
Deno.serve(async (request) => {
  const { name } = await request.json();

  return Response.json({ message: ` + "`Hello ${name}!`" + ` });
});
`

func newFunctionNew() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write an edge function into the repository", Args: exactArgs(1),
		Example: "  socle functions new hello",
	}
	addFolder(cmd)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !repository.IsFunctionName(args[0]) {
			return fmt.Errorf("%w: the name of a function has letters, digits, underscores and hyphens only, and at most 63 "+
				"characters", errUsage)
		}

		folder, err := repositoryFolder(cmd)
		if err != nil {
			return err
		}

		file := filepath.Join(folder, filepath.FromSlash(repository.FunctionEntry(args[0])))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}

		out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("there is a function %s: %s", args[0], shortPath(file))
		}
		if err != nil {
			return err
		}

		_, err = out.WriteString(strings.ReplaceAll(newFunction, "NAME", args[0]))
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}

		fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s.\n", shortPath(file))
		fmt.Fprintf(cmd.ErrOrStderr(), "Try it: socle functions serve\nDeploy it: socle functions deploy %s\n", args[0])
		return nil
	}

	return cmd
}

// functionVersion is a version of a function, see the operation listEdgeFunctionVersions.
type functionVersion struct {
	Version, DeployedAt string
	Current             bool
}

func newFunctionRollback(d *description, e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollback NAME [VERSION]", Short: "Make a former version of an edge function the current one",
		Args: cobra.RangeArgs(1, 2),
		Long: "Make a former version of an edge function the current one: the one that was deployed before it, or the one " +
			"whose name begins with VERSION. List them: socle functions versions NAME",
		Example: "  socle functions rollback hello\n  socle functions rollback hello 81a2f19e",
	}
	e.addConnectionFlags(cmd)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.projectClient(cmd, d)
		if err != nil {
			return err
		}

		path := functionsPath(c) + "/" + url.PathEscape(args[0])
		query := url.Values{"sort": {"deployedAt"}, "order": {"desc"}, "limit": {"100"}}
		reply, err := c.Do(cmd.Context(), client.Request{Method: http.MethodGet, Path: path + "/versions",
			Query: query})
		if err != nil {
			return explain(err)
		}

		var versions []functionVersion
		if err := reply.Into(&versions); err != nil {
			return err
		}

		prefix := ""
		if len(args) > 1 {
			prefix = args[1]
		}
		version, err := formerVersion(versions, prefix)
		if err != nil {
			return err
		}

		reply, err = c.Do(cmd.Context(), client.Request{Method: http.MethodPut, Path: path + "/settings",
			Body: map[string]any{"version": version}})
		if err != nil {
			return explain(err)
		}
		if asJSON(cmd) {
			return printJSON(cmd.OutOrStdout(), reply)
		}

		_, err = fmt.Fprintf(cmd.OutOrStdout(), "The current version of %s is %s.\n", args[0],
			sanitize(version[:min(shortVersion, len(version))]))
		return err
	}

	return cmd
}

// shortVersion is the number of characters by which messages name a version.
const shortVersion = 12

// formerVersion returns the version whose name begins with a prefix, or, without a prefix, the one
// that was deployed before the current one. versions begin with the newest.
func formerVersion(versions []functionVersion, prefix string) (string, error) {
	var found []string
	passed := false
	for _, v := range versions {
		switch {
		case prefix != "" && strings.HasPrefix(v.Version, prefix), prefix == "" && passed:
			found = append(found, v.Version)
		}
		passed = passed || v.Current
	}

	switch {
	case len(found) == 0 && prefix == "":
		return "", errors.New("there is no version before the current one")
	case len(found) == 0:
		return "", fmt.Errorf("no version begins with %s", prefix)
	case len(found) > 1 && prefix != "":
		return "", fmt.Errorf("%w: %d versions begin with %s", errUsage, len(found), prefix)
	}

	return found[0], nil
}

// projectClient returns a client of a command, with its project.
func (e environment) projectClient(cmd *cobra.Command, d *description) (*client.Client, error) {
	c, err := e.client(cmd)
	if err != nil {
		return nil, err
	}

	return c, finder{d, c}.selectProject(cmd.Context())
}

// functionsPath returns the path of the functions of a client's project.
func functionsPath(c *client.Client) string {
	return "/projects/" + url.PathEscape(c.Project) + "/edge-functions"
}
