package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/socle-dev/socle/internal/repository"
)

// planLine is a line of a plan.
type planLine struct {
	Action string `json:"action"`
	What   string `json:"what"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
}

// maxListed is the number of migrations from which a plan names the first and the last one only.
const maxListed = 20

// lines returns a plan in the order in which it is carried out.
func (p *push) lines(plan *pushPlan) []planLine {
	var all []planLine
	if plan.create {
		all = append(all, planLine{Action: "create", What: "project " + p.repo.Name()})
	}

	set := func(prefix string, changes []repository.Change) {
		for _, c := range changes {
			action := "set"
			if c.To == "" {
				action = "remove"
			}
			all = append(all, planLine{action, prefix + c.What, c.From, c.To})
		}
	}

	set("api ", plan.rest.Changes)
	set("auth ", plan.auth.Changes)
	set("auth ", plan.hooks.Changes)
	for _, s := range plan.secrets {
		all = append(all, planLine{Action: "set", What: "secret " + s.Name})
	}

	switch plan.mode {
	case modeSupabase:
		all = append(all, planLine{Action: "open", What: "new tables to anon and authenticated"})
	case modeClosed:
		all = append(all, planLine{Action: "close", What: "new tables to anon and authenticated"})
	}

	if n := len(plan.migrations); n > maxListed {
		all = append(all, planLine{Action: "apply", What: fmt.Sprintf("%d migrations, %s to %s", n,
			filepath.Base(plan.migrations[0].path), filepath.Base(plan.migrations[n-1].path))})
	} else {
		for _, m := range plan.migrations {
			all = append(all, planLine{Action: "apply", What: m.path})
		}
	}

	all = append(all, p.functionLines(plan)...)
	for _, b := range plan.buckets {
		if b.uuid == "" {
			all = append(all, planLine{Action: "create", What: "bucket " + b.bucket.Name})
		}
		set("bucket "+b.bucket.Name+" ", withUnits(b.update.Changes))
	}

	for _, s := range plan.seeds {
		all = append(all, planLine{Action: "run", What: fmt.Sprintf("%s, %s", s.Path, formatSize(s.Size))})
	}

	if plan.writeTypes {
		all = append(all, planLine{Action: "write", What: "types to " + p.types})
	}
	if plan.create {
		all = append(all, planLine{Action: "create", What: "publishable key " + p.repo.Name()})
	}

	return all
}

// withUnits returns changes whose sizes have units.
func withUnits(changes []repository.Change) []repository.Change {
	all := slices.Clone(changes)
	for i, c := range all {
		if c.What != "max_file_size" {
			continue
		}

		for _, text := range []*string{&all[i].From, &all[i].To} {
			if n, err := strconv.ParseInt(*text, 10, 64); err == nil {
				*text = formatSize(n)
			}
		}
	}

	return all
}

// printPlan prints a plan.
func (p *push) printPlan(plan *pushPlan) {
	w := p.cmd.OutOrStdout()
	target := "a new project"
	if !plan.create {
		target = "the project " + sanitize(p.state.name)
	}

	fmt.Fprintf(w, "Plan of %s for %s at %s:\n\n", sanitize(p.repo.Root), target, p.client.URL)
	for _, l := range p.lines(plan) {
		text := l.What
		switch {
		case l.From != "" && l.To != "":
			text += ": " + l.From + " → " + l.To
		case l.To != "":
			text += ": " + l.To
		case l.From != "":
			text += ": " + l.From
		}

		fmt.Fprintf(w, "  %-7s %s\n", l.Action, sanitize(text))
	}

	if plan.unchanged > 0 {
		fmt.Fprintf(w, "  %-7s %s\n", "keep", count(int64(plan.unchanged), "other"))
	}

	fmt.Fprintln(w)
}

// report prints what a push has changed, or would change, and what a project can't have.
func (p *push) report(plan *pushPlan, done bool, start time.Time) error {
	if p.quiet {
		return p.printReport(plan, done)
	}

	w := p.cmd.OutOrStdout()
	switch {
	case done:
		fmt.Fprintf(w, "Pushed to %s in %v.\n", sanitize(p.state.name), time.Since(start).Round(time.Millisecond))
	case plan.empty():
		fmt.Fprintf(w, "Nothing to do: the project %s has all of %s.\n", sanitize(p.state.name), sanitize(p.repo.Root))
	default:
		p.printPlan(plan)
		fmt.Fprintln(w, "Nothing has changed.")
	}

	errs := p.cmd.ErrOrStderr()
	p.printTables(plan)
	printRemarks(errs, "Not taken over:", plan.notes)
	if done && !p.hidesVariables {
		fmt.Fprintln(w)
		return p.printVariables()
	}

	return nil
}

// printTables prints which tables applications can't use for want of privileges.
func (p *push) printTables(plan *pushPlan) {
	errs := p.cmd.ErrOrStderr()
	switch {
	case plan.askTables && plan.mode == "":
		fmt.Fprintln(errs, "New tables have no privileges for anon and authenticated, on which a schema written for "+
			"Supabase relies.\nGrant them: --open-tables")
	case len(p.state.closedTables) > 0 && plan.mode == modeSupabase:
		fmt.Fprintf(errs, "%s of before have no privileges for anon and authenticated.\nGrant them: "+
			"socle default-privileges update --mode supabase --existing --project %s\n",
			count(int64(len(p.state.closedTables)), "table"), p.client.Project)
	}
}

// printRemarks prints remarks under a heading.
func printRemarks(w io.Writer, heading string, all []repository.Remark) {
	if len(all) == 0 {
		return
	}

	fmt.Fprintln(w, heading)
	for _, r := range all {
		fmt.Fprintf(w, "  %s\n", sanitize(r.String()))
	}
}

// printReport prints a report as JSON.
func (p *push) printReport(plan *pushPlan, done bool) error {
	text, err := json.Marshal(map[string]any{"content": map[string]any{
		"projectUuid": p.client.Project, "changed": done, "changes": append([]planLine{}, p.lines(plan)...),
		"unchanged": plan.unchanged, "notes": append([]repository.Remark{}, plan.notes...),
	}, "metadata": map[string]any{}})
	if err != nil {
		return err
	}

	return printIndented(p.cmd.OutOrStdout(), text)
}

// printVariables prints the variables of the application, if this machine has its key.
func (p *push) printVariables() error {
	w := p.cmd.OutOrStdout()
	if p.link.Key == "" {
		_, err := fmt.Fprintln(w, "The variables of the application: socle env")
		return err
	}

	for _, v := range p.repo.Framework().Variables(p.client.URL+p.inProject(""), p.link.Key) {
		fmt.Fprintf(w, "%s=%s\n", v.Name, v.Value)
	}

	return nil
}
