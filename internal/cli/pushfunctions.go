package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/function/bundle"
	"github.com/socle-dev/socle/internal/repository"
)

// functionSecret begins the names of secrets of edge functions.
const functionSecret = "functions."

// isOfFunctions reports whether a secret is one of edge functions.
func isOfFunctions(s repository.Secret) bool { return strings.HasPrefix(s.Name, functionSecret) }

// bundleFunctions bundles the functions of the repository, and reads their secrets from the file of
// a flag. A push without Deno fails; socle dev goes on without them.
func (p *push) bundleFunctions() error {
	if err := p.readFunctionSecrets(); err != nil {
		return err
	}

	skip, _ := p.cmd.Flags().GetBool("no-functions")
	if skip || len(p.repo.Functions) == 0 {
		return nil
	}

	all, err := p.e.bundleAll(p.cmd, p.repo.Root, p.repo.Functions)
	switch {
	case errors.Is(err, bundle.ErrNoDeno) && p.follows:
		for _, f := range p.repo.Functions {
			p.repo.Notes = append(p.repo.Notes, repository.Remark{File: f.Entry,
				Text: "is not deployed: " + err.Error()})
		}
		return nil
	case errors.Is(err, bundle.ErrNoDeno):
		return fmt.Errorf("%w; without the functions: --no-functions", err)
	}

	p.functions = all
	return err
}

// readFunctionSecrets reads the file of secrets that a flag names.
func (p *push) readFunctionSecrets() error {
	name, _ := p.cmd.Flags().GetString("env-file")
	if name == "" {
		return nil
	}

	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	all, err := pick(nil, name, nil, repository.ParseVariables(string(text)))
	if err != nil {
		return err
	}

	for _, key := range slices.Sorted(maps.Keys(all)) {
		p.functionSecrets = append(p.functionSecrets, repository.Secret{Name: functionSecret + key, Value: all[key],
			Key: key, File: name})
	}

	return nil
}

// loadFunctions reads which functions and secrets of functions a project has.
func (p *push) loadFunctions() error {
	if len(p.functions) > 0 {
		if err := compareDeployed(p.cmd.Context(), p.client, p.functions); err != nil {
			return err
		}
	}
	if len(p.functionSecrets) == 0 {
		return nil
	}

	o, _ := p.document.lister("/projects/{projectUUID}/edge-function-secrets")
	items, err := (finder{p.document, p.client}).list(p.cmd.Context(), o, p.inProject("/edge-function-secrets"), "")
	if err != nil {
		return err
	}
	for _, item := range items {
		if name, ok := item.value("name").(string); ok {
			p.state.secrets = append(p.state.secrets, functionSecret+name)
		}
	}

	return nil
}

// planFunctions plans the functions that a project lacks, or has in another version.
func (p *push) planFunctions(plan *pushPlan) {
	for _, d := range p.functions {
		if d.changed || plan.create {
			plan.functions = append(plan.functions, d)
		} else {
			plan.unchanged++
		}
	}
}

// deployFunctions sets the secrets of functions and deploys those that changed, after the
// migrations that they may need.
func (p *push) deployFunctions(plan *pushPlan) error {
	for _, s := range plan.secrets {
		if !isOfFunctions(s) {
			continue
		}
		if err := setFunctionSecret(p.cmd.Context(), p.client, s.Key, s.Value); err != nil {
			return err
		}
		if err := p.recordSecrets([]repository.Secret{s}); err != nil {
			return err
		}
	}

	for _, d := range plan.functions {
		if err := d.deploy(p.cmd.Context(), p.client); err != nil {
			return err
		}
		if !p.quiet {
			fmt.Fprintf(p.cmd.OutOrStdout(), "Deployed %s: %s\n", d.Name, functionURL(p.client, d.Name))
		}
	}

	return nil
}

// functionLines returns the lines of a plan about functions.
func (p *push) functionLines(plan *pushPlan) []planLine {
	var all []planLine
	for _, d := range plan.functions {
		what := "new"
		if d.exists {
			what = "changed"
		}
		all = append(all, planLine{Action: "deploy", What: "function " + d.Name,
			To: what + ", " + formatSize(int64(len(d.Code)))})
	}

	return all
}
