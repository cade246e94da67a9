package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/repository"
)

// Modes of default privileges.
const (
	modeClosed   = "closed"
	modeSupabase = "supabase"
)

// projectState is what a project has. Its settings are nil without a project.
type projectState struct {
	name         string
	auth, rest   map[string]any
	secrets      []string          // names, see [repository.Secret]
	vault        map[string]string // UUIDs of the vault's secrets, by name
	containers   []repository.Container
	mode         string            // see [modeClosed]
	closedTables []string          // which have no privileges for applications
	seeds        map[string]string // hashes of seeds that ran, by path
	types        string            // source; "": not read
}

// pushPlan is what a push changes.
type pushPlan struct {
	create     bool
	mode       string // see [modeClosed]; "": it stays
	askTables  bool
	rest       repository.Update
	auth       repository.Update // without hooks
	hooks      repository.Update // after the migrations, which create their functions
	secrets    []repository.Secret
	migrations []migration
	buckets    []bucketChange
	seeds      []repository.Seed
	functions  []deployment
	writeTypes bool
	unchanged  int
	notes      []repository.Remark
}

// bucketChange creates a bucket, or changes it.
type bucketChange struct {
	bucket repository.Bucket
	uuid   string // ""
	update repository.Update
}

func (p *pushPlan) empty() bool {
	return !p.create && p.mode == "" && len(p.rest.Body)+len(p.auth.Body)+len(p.hooks.Body)+len(p.secrets)+
		len(p.migrations)+len(p.buckets)+len(p.seeds)+len(p.functions) == 0 && !p.writeTypes
}

// plan compares the repository with the project.
func (p *push) plan() (*pushPlan, error) {
	if err := p.load(); err != nil {
		return nil, err
	}
	if err := p.repo.CheckSecrets(p.state.secrets); err != nil {
		return nil, err
	}

	plan := &pushPlan{create: p.client.Project == "", notes: slices.Clone(p.repo.Notes)}
	if err := p.planSettings(plan); err != nil {
		return nil, err
	}

	outOfOrder, _ := p.cmd.Flags().GetBool("allow-out-of-order")
	pending, err := p.migrations.pending(outOfOrder)
	if err != nil {
		return nil, err
	}

	plan.migrations = pending
	plan.unchanged += len(p.migrations.files) - len(pending)
	if err := p.planBuckets(plan); err != nil {
		return nil, err
	}

	p.planSeeds(plan)
	p.planFunctions(plan)
	p.planTables(plan)

	return plan, p.planTypes(plan)
}

// load reads what the project has. It fails for a linked project that is gone: a script is not to
// create another one in its place.
func (p *push) load() error {
	p.state, p.migrations.applied = projectState{}, nil
	if p.client.Project == "" {
		return p.refuseSameName()
	}

	ctx := p.cmd.Context()
	var project struct{ Name string }
	err := p.get(ctx, p.inProject(""), nil, &project)
	if isMissing(err) && !p.given {
		return fmt.Errorf("the project %s, with which this repository is linked, is gone or not yours; link another one: "+
			"socle link PROJECT, or none: socle link --remove", p.client.Project)
	}
	if err != nil {
		return err
	}

	p.state.name = project.Name
	var privileges struct {
		Mode         string
		ClosedTables []string
	}
	for path, into := range map[string]any{"/auth-settings": &p.state.auth, "/rest-settings": &p.state.rest,
		"/default-privileges": &privileges} {
		if err := p.get(ctx, p.inProject(path), nil, into); err != nil {
			return err
		}
	}

	p.state.mode, p.state.closedTables = privileges.Mode, privileges.ClosedTables
	names, _ := p.state.auth["secretNames"].([]any)
	for _, name := range names {
		p.state.secrets = append(p.state.secrets, fmt.Sprint(name))
	}
	delete(p.state.auth, "secretNames")

	if slices.ContainsFunc(p.repo.Config.Secrets, isOfVault) {
		if err := p.loadVault(); err != nil {
			return err
		}
	}
	if err := p.loadContainers(p.namesBucket); err != nil {
		return err
	}
	if p.state.seeds, err = p.loadSeeds(); err != nil {
		return err
	}

	if err := p.loadFunctions(); err != nil {
		return err
	}

	return p.migrations.readApplied(p.cmd)
}

// refuseSameName fails if a project has the name of the one to create: it may be that of the
// repository, pushed from another machine.
func (p *push) refuseSameName() error {
	if p.link.Creation != "" { // repeated until its answer arrives
		return nil
	}

	o, _ := p.document.lister("/projects")
	items, err := (finder{p.document, p.client}).list(p.cmd.Context(), o, "/projects", p.repo.Name())
	if err != nil {
		return err
	}

	for _, item := range items {
		if slices.Contains(namesOf(item), p.repo.Name()) {
			return fmt.Errorf("there is a project %q, but this machine has not pushed to it; link it: socle link %s, or "+
				"give the new one another name: project_id in %s", p.repo.Name(), config.ShellWord(p.repo.Name()),
				repository.ConfigFile)
		}
	}

	return nil
}

// isOfVault reports whether a secret is one of the vault.
func isOfVault(s repository.Secret) bool { return strings.HasPrefix(s.Name, repository.VaultPrefix) }

// loadVault reads the names of the vault's secrets.
func (p *push) loadVault() error {
	p.state.vault = map[string]string{}
	path := p.inProject("/vault-secrets")
	o, _ := p.document.lister("/projects/{projectUUID}/vault-secrets")
	items, err := (finder{p.document, p.client}).list(p.cmd.Context(), o, path, "")
	if err != nil {
		return err
	}

	for _, item := range items {
		id, _ := item.value("uuid").(string)
		if name, ok := item.value("name").(string); ok {
			p.state.vault[name] = id
			p.state.secrets = append(p.state.secrets, repository.VaultPrefix+name)
		}
	}

	return nil
}

// namesBucket reports whether the configuration has a bucket with a name.
func (p *push) namesBucket(name string) bool {
	return slices.ContainsFunc(p.repo.Config.Buckets, func(b repository.Bucket) bool { return b.Name == name })
}

// loadContainers reads the containers with certain names.
func (p *push) loadContainers(wanted func(name string) bool) error {
	p.state.containers = nil
	o, _ := p.document.lister("/containers")
	items, err := (finder{p.document, p.client}).list(p.cmd.Context(), o, "/containers", "")
	if err != nil {
		return err
	}

	for _, item := range items {
		id, _ := item.value("uuid").(string)
		name, _ := item.value("name").(string)
		if !wanted(name) {
			continue
		}

		reply, err := p.client.Do(p.cmd.Context(), client.Request{Method: http.MethodGet, Path: "/containers/" + id})
		if isMissing(err) { // deleted meanwhile
			continue
		}
		if err != nil {
			return explain(err)
		}

		var c repository.Container
		var metadata struct{ AllowedMimeTypes []string }
		if err := errors.Join(reply.Into(&c), unmarshal(reply.Metadata, &metadata)); err != nil {
			return err
		}

		c.Types = metadata.AllowedMimeTypes
		p.state.containers = append(p.state.containers, c)
	}

	return nil
}

// loadSeeds reads which seeds ran.
func (p *push) loadSeeds() (map[string]string, error) {
	if len(p.repo.Seeds) == 0 {
		return nil, nil
	}

	body := map[string]any{"query": repository.SelectSeeds, "read_only": true, "max_rows": 10_000}
	reply, err := p.client.Do(p.cmd.Context(), client.Request{Method: http.MethodPost, Path: "/sql", Body: body})
	if e, ok := errors.AsType[*client.Error](err); ok && strings.Contains(string(e.Metadata), `"42P01"`) {
		return map[string]string{}, nil // no seed has run
	}
	if err != nil {
		return nil, explain(err)
	}

	var a answer
	if err := reply.Into(&a); err != nil {
		return nil, err
	}

	seeds := map[string]string{}
	if len(a.Results) != 1 || len(a.Results[0].Columns) != 2 {
		return nil, errors.New("the server does not say which seeds ran")
	}
	for _, row := range a.Results[0].Rows {
		seeds[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
	}

	return seeds, nil
}

// planSettings plans the settings of the rows API and of end users.
func (p *push) planSettings(plan *pushPlan) (err error) {
	var auth, hooks []repository.Setting
	for _, s := range p.repo.Config.Auth {
		if s.Member[0] == "hooks" {
			hooks = append(hooks, s)
		} else {
			auth = append(auth, s)
		}
	}

	for _, part := range []struct {
		update   *repository.Update
		current  map[string]any
		settings []repository.Setting
	}{
		{&plan.rest, p.state.rest, p.repo.Config.Rest},
		{&plan.auth, p.state.auth, auth},
		{&plan.hooks, p.state.auth, hooks},
	} {
		if *part.update, err = repository.PlanSettings(part.current, part.settings); err != nil {
			return err
		}
		plan.unchanged += part.update.Unchanged
	}

	for _, s := range slices.Concat(p.repo.Config.Secrets, p.functionSecrets) {
		switch isSet := slices.Contains(p.state.secrets, s.Name); {
		case s.Missing != "", isSet && p.link.Secrets[s.Name] == p.link.hash(s):
			plan.unchanged++
		default:
			plan.secrets = append(plan.secrets, s)
		}
	}

	return nil
}

func (p *push) planBuckets(plan *pushPlan) error {
	for _, b := range p.repo.Config.Buckets {
		change := bucketChange{bucket: b}
		var current *repository.Container
		i := slices.IndexFunc(p.state.containers, func(c repository.Container) bool { return c.Name == b.Name })
		if i >= 0 {
			current, change.uuid = &p.state.containers[i], p.state.containers[i].UUID
		}

		var err error
		if change.update, err = repository.PlanBucket(b, current); err != nil {
			return err
		}

		if current != nil && len(change.update.Body) == 0 {
			plan.unchanged++
			continue
		}

		plan.buckets = append(plan.buckets, change)
	}

	return nil
}

// planSeeds plans the seeds that have not run. One that was changed since does not run again.
func (p *push) planSeeds(plan *pushPlan) {
	for _, s := range p.repo.Seeds {
		switch hash, ran := p.state.seeds[s.Path]; {
		case !ran:
			plan.seeds = append(plan.seeds, s)
		case hash != s.Hash:
			plan.notes = append(plan.notes, repository.Remark{File: s.Path,
				Text: "was changed after it ran, and does not run again; run it by socle db import " + s.Path})
		default:
			plan.unchanged++
		}
	}
}

// planTables plans the default privileges: of a flag, of the configuration, or of the answer to a
// question. A project that has migrations stays as it is.
func (p *push) planTables(plan *pushPlan) {
	open, _ := p.cmd.Flags().GetBool("open-tables")
	closed, _ := p.cmd.Flags().GetBool("closed-tables")
	said := p.repo.Config.OpenTables

	want := ""
	switch {
	case open, !closed && said != nil && *said:
		want = modeSupabase
	case closed, said != nil:
		want = modeClosed
	default:
		plan.askTables = len(p.migrations.applied) == 0 && len(plan.migrations) > 0 && p.state.mode != modeSupabase
		return
	}

	if want != p.state.mode && (p.state.mode != "" || want != modeClosed) { // a new project is closed
		plan.mode = want
		return
	}

	plan.unchanged++
}

// planTypes plans to write types, unless the file has those of the project already.
func (p *push) planTypes(plan *pushPlan) error {
	if p.types == "" {
		return nil
	}

	plan.writeTypes = true
	if plan.create || len(plan.migrations) > 0 || len(plan.rest.Body) > 0 {
		return nil
	}

	if err := p.loadTypes(); err != nil {
		return err
	}

	text, err := os.ReadFile(p.types)
	if err == nil && string(text) == p.state.types {
		plan.writeTypes = false
		plan.unchanged++
	}

	return nil
}

// loadTypes reads the types of the project.
func (p *push) loadTypes() error {
	var types struct{ Source string }
	err := p.get(p.cmd.Context(), p.inProject("/types"), url.Values{"language": {"typescript"}}, &types)
	p.state.types = types.Source

	return err
}
