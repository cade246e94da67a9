package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/function/bundle"
	"github.com/socle-dev/socle/internal/repository"
)

// maxBundlers is the number of functions that are bundled at a time.
const maxBundlers = 4

// deployment is a bundled function, and what a project has of it.
type deployment struct {
	repository.Function
	bundle.Bundle
	exists  bool
	changed bool
}

// deployedFunction is a function of a project.
type deployedFunction struct {
	Name, Version string
	VerifyJWT     bool
}

// errCode is the usage error of a deployment that is neither of a repository nor of a file.
var errCode = fmt.Errorf("%w: --file deploys one function: name it", errUsage)

func newFunctionDeploy(d *description, e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "deploy [NAME...]", Short: "Bundle edge functions of the repository and deploy them",
		Long: "Bundle functions of supabase/functions, all without a name, and deploy those that changed. Each is one module " +
			"with its imports (npm:, jsr:, https:, import maps, deno.json) and a source map, and starts on the server " +
			"once before it becomes the current version.\n\n[functions.NAME] in config.toml has verify_jwt, import_map, " +
			"entrypoint, static_files and enabled. Deno bundles: socle functions install.\n\nThe project is that of " +
			"--project, SOCLE_PROJECT, the repository's link, or socle use.",
		Example: "  socle functions deploy\n  socle functions deploy stripe-webhook --no-verify-jwt",
	}

	addFolder(cmd)
	e.addConnectionFlags(cmd)
	addBundleFlags(cmd)
	cmd.Flags().Bool("no-verify-jwt", false, "let requests without a key or token of the project in")
	cmd.Flags().Bool("verify-jwt", false, "demand a key or token of the project")
	cmd.Flags().String("file", "", "JavaScript module to deploy as it is, - for standard input")
	cmd.Flags().Bool("dry-run", false, "bundle, and show what would change")
	cmd.MarkFlagsMutuallyExclusive("no-verify-jwt", "verify-jwt")
	cmd.MarkFlagsMutuallyExclusive("file", "import-map")

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := e.deployments(cmd, args)
		if err != nil {
			return err
		}

		c, err := e.repositoryClient(cmd, d)
		if err != nil {
			return err
		}
		if err := compareDeployed(cmd.Context(), c, all); err != nil {
			return err
		}

		return runDeployments(cmd, c, all)
	}

	return cmd
}

// addBundleFlags adds the flags on how functions are bundled.
func addBundleFlags(cmd *cobra.Command) {
	cmd.Flags().String("import-map", "", "import map or deno.json, instead of that of the function")
	cmd.Flags().StringSlice("allow-import", nil, "further host that modules may be imported from")
}

// deployments returns the functions of a command, bundled.
func (e environment) deployments(cmd *cobra.Command, names []string) ([]deployment, error) {
	var verify *bool
	for flag, value := range map[string]bool{"verify-jwt": true, "no-verify-jwt": false} {
		if yes, _ := cmd.Flags().GetBool(flag); yes {
			verify = &value
		}
	}

	file, _ := cmd.Flags().GetString("file")
	if file != "" {
		if len(names) != 1 {
			return nil, errCode
		}

		code, err := readInput(cmd, file)
		if err == nil && !utf8.Valid(code) {
			err = fmt.Errorf("%w: %s is no text in UTF-8", errUsage, file)
		}
		return []deployment{{Function: repository.Function{Name: names[0], VerifyJWT: verify},
			Bundle: bundle.Bundle{Code: code}}}, err
	}

	root, functions, err := e.repositoryFunctions(cmd, names)
	if err != nil {
		return nil, err
	}

	for i := range functions {
		functions[i].VerifyJWT = cmp.Or(verify, functions[i].VerifyJWT)
	}

	return e.bundleAll(cmd, root, functions)
}

// repositoryFunctions returns the folder of a command's repository and its functions with certain
// names, all without any.
func (e environment) repositoryFunctions(
	cmd *cobra.Command, names []string,
) (root string, functions []repository.Function, err error) {
	if root, err = repositoryFolder(cmd); err != nil {
		return "", nil, err
	}

	all, notes, err := repository.ReadFunctions(root, e.lookup)
	if err != nil {
		return "", nil, err
	}

	printRemarks(cmd.ErrOrStderr(), "Not deployed:", notes)
	if len(all) == 0 {
		return "", nil, fmt.Errorf("the repository has no edge functions; write one: socle functions new NAME")
	}

	var found []string
	for _, f := range all {
		found = append(found, f.Name)
		if len(names) == 0 || slices.Contains(names, f.Name) {
			functions = append(functions, f)
		}
	}
	for _, name := range names {
		if !slices.Contains(found, name) {
			return "", nil, fmt.Errorf("%w: the repository has no function %q; it has %s", errUsage, name,
				strings.Join(found, ", "))
		}
	}

	return root, functions, setImportMap(cmd, root, functions)
}

// setImportMap gives functions the import map of a flag.
func setImportMap(cmd *cobra.Command, root string, functions []repository.Function) error {
	name, _ := cmd.Flags().GetString("import-map")
	if name == "" {
		return nil
	}

	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	file, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}

	for i := range functions {
		functions[i].SetImportMap(filepath.ToSlash(file))
	}

	return nil
}

// bundleAll bundles functions. It fails with the problems of all.
func (e environment) bundleAll(
	cmd *cobra.Command, root string, functions []repository.Function,
) ([]deployment, error) {
	program, err := e.deno()
	if err != nil {
		return nil, err
	}

	hosts, _ := cmd.Flags().GetStringSlice("allow-import")
	bundler := &bundle.Bundler{Program: program, Root: root, Environ: e.environ, Hosts: hosts}
	all, failures := make([]deployment, len(functions)), make([]error, len(functions))
	places := make(chan struct{}, maxBundlers)
	var open sync.WaitGroup
	for i, f := range functions {
		open.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()

			all[i].Function = f
			all[i].Bundle, failures[i] = bundler.Bundle(cmd.Context(), f)
		})
	}
	open.Wait()

	var problems repository.Problems
	for _, err := range failures {
		some, ok := errors.AsType[repository.Problems](err)
		if err != nil && !ok {
			return nil, err
		}
		problems = append(problems, some...)
	}
	if len(problems) > 0 {
		return nil, problems
	}

	return all, nil
}

// repositoryClient returns a client with the project of a flag, of the environment, of the
// repository's link, or of socle use.
func (e environment) repositoryClient(cmd *cobra.Command, d *description) (*client.Client, error) {
	c, err := e.client(cmd)
	if err != nil {
		return nil, err
	}

	given := cmd.Flags().Lookup("project").Value.String() != "" || e.value("SOCLE_PROJECT") != ""
	folder, err := repositoryFolder(cmd)
	if _, noFile := e.linksFile(); !given && err == nil && noFile == nil {
		err = e.withLink(folder, c.URL, func(l *repositoryLink) error {
			c.Project = cmp.Or(l.Project, c.Project)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}

	return c, finder{d, c}.selectProject(cmd.Context())
}

// compareDeployed notes which deployments the client's project has already.
func compareDeployed(ctx context.Context, c *client.Client, all []deployment) error {
	deployed, err := deployedFunctions(ctx, c)
	if err != nil {
		return err
	}

	for i, d := range all {
		has, exists := deployed[d.Name]
		all[i].exists = exists
		all[i].changed = !exists || has.Version != d.Version() || (d.VerifyJWT != nil && *d.VerifyJWT != has.VerifyJWT)
	}

	return nil
}

// deployedFunctions returns the functions of a client's project by name.
func deployedFunctions(ctx context.Context, c *client.Client) (map[string]deployedFunction, error) {
	query := url.Values{"limit": {"100"}} // as many as a project can have
	reply, err := c.Do(ctx, client.Request{Method: http.MethodGet, Path: functionsPath(c), Query: query})
	if err != nil {
		return nil, explain(err)
	}

	var functions []deployedFunction
	if err := reply.Into(&functions); err != nil {
		return nil, err
	}

	byName := map[string]deployedFunction{}
	for _, f := range functions {
		byName[f.Name] = f
	}

	return byName, nil
}

// runDeployments deploys what changed, and reports all.
func runDeployments(cmd *cobra.Command, c *client.Client, all []deployment) error {
	dry, _ := cmd.Flags().GetBool("dry-run")
	w := cmd.OutOrStdout()
	report := []map[string]any{}
	for _, d := range all {
		switch {
		case !d.changed && !asJSON(cmd):
			fmt.Fprintf(w, "%s is unchanged.\n", d.Name)
		case dry && !asJSON(cmd):
			fmt.Fprintf(w, "%s would be deployed, %s.\n", d.Name, formatSize(int64(len(d.Code))))
		case d.changed && !dry:
			if err := d.deploy(cmd.Context(), c); err != nil {
				return err
			}
			if !asJSON(cmd) {
				fmt.Fprintf(w, "Deployed %s, %s: %s\n", d.Name, formatSize(int64(len(d.Code))), functionURL(c, d.Name))
			}
		}

		report = append(report, map[string]any{"name": d.Name, "version": d.Version(), "size": len(d.Code),
			"changed": d.changed, "url": functionURL(c, d.Name)})
	}

	if asJSON(cmd) {
		return printContent(w, report)
	}

	return nil
}

// deploy deploys a function.
func (d deployment) deploy(ctx context.Context, c *client.Client) error {
	body := map[string]any{"code": string(d.Code)}
	if d.VerifyJWT != nil {
		body["verify_jwt"] = *d.VerifyJWT
	}

	_, err := c.Do(ctx, client.Request{Method: http.MethodPut, Path: functionsPath(c) + "/" + url.PathEscape(d.Name),
		Body: body})
	if e, ok := errors.AsType[*client.Error](err); ok {
		f := newFailure(e)
		f.label = func(field string) string { return d.Name + ": " + field }
		if e.Code == "boot_error" {
			f.hints = append(f.hints, "It is the function "+d.Name+". Its log: socle functions logs "+d.Name)
		}
		return f
	}

	return err
}

// functionURL returns the address at which applications call a function.
func functionURL(c *client.Client, name string) string {
	return c.URL + "/projects/" + url.PathEscape(c.Project) + "/functions/v1/" + url.PathEscape(name)
}
