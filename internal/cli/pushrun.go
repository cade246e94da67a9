package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/repository"
)

// execute carries out a plan. Each step is complete in itself, so a push that stops goes on when it
// is repeated. Settings come first: the server refuses them before the schema changes.
func (p *push) execute(plan *pushPlan) error {
	if plan.create {
		mode := plan.mode
		if err := p.createProject(); err != nil {
			return err
		}

		fresh, err := p.plan() // against the settings of a new project
		if err != nil {
			return err
		}

		fresh.mode, fresh.create = mode, true
		*plan = *fresh
	} else if err := p.changeLink(func(l *repositoryLink) {
		if l.Project == "" { // a first push with --project
			l.setProject(p.client.Project)
		}
	}); err != nil {
		return err
	}

	for _, step := range []func(*pushPlan) error{
		p.updateRest, p.updateAuth, p.updateMode, p.updateVault, p.applyMigrations, p.deployFunctions, p.updateHooks,
		p.changeBuckets, p.runSeeds, p.writeTypes,
	} {
		if err := step(plan); err != nil {
			return err
		}
	}

	if plan.create {
		return p.createKey()
	}

	return nil
}

// createProject creates the project. Its idempotency key is kept, so a repeated push gets the same
// one.
func (p *push) createProject() error {
	if err := p.changeLink(func(l *repositoryLink) {
		if l.Creation == "" {
			l.Creation = rand.Text()
		}
		l.Project = ""
	}); err != nil {
		return err
	}

	reply, err := p.client.Do(p.cmd.Context(), client.Request{Method: http.MethodPost, Path: "/projects",
		Header: http.Header{"Idempotency-Key": {p.link.Creation}}, Body: map[string]any{"name": p.repo.Name()}})
	if err != nil {
		if e, ok := errors.AsType[*client.Error](err); ok && e.Status < http.StatusInternalServerError {
			err = errors.Join(explain(err), p.changeLink(func(l *repositoryLink) { l.Creation = "" }))
		}
		return err
	}

	var project struct{ UUID string }
	if err := reply.Into(&project); err != nil {
		return err
	}

	p.client.Project = project.UUID
	return p.changeLink(func(l *repositoryLink) { l.setProject(project.UUID) })
}

// put sends an update. A refused setting is named by its place in the configuration.
func (p *push) put(path string, body map[string]any) error {
	if len(body) == 0 {
		return nil
	}

	_, err := p.client.Do(p.cmd.Context(), client.Request{Method: http.MethodPut, Path: path, Body: body})
	return p.inConfig(err)
}

// inConfig adds to a failure where the configuration has the refused settings.
func (p *push) inConfig(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}

	f := newFailure(e)
	f.label = func(field string) string {
		for _, s := range append(p.repo.Config.Auth, p.repo.Config.Rest...) {
			member := strings.Join(s.Member, ".")
			if member == field || strings.HasPrefix(member, field+".") || strings.HasPrefix(field, member+".") {
				return fmt.Sprintf("%s:%d: %s", s.File, s.Line, field)
			}
		}
		for _, s := range p.repo.Config.Secrets {
			if field == "secrets."+s.Name {
				return fmt.Sprintf("%s:%d: %s", s.File, s.Line, s.Key)
			}
		}

		return field
	}

	return f
}

func (p *push) updateRest(plan *pushPlan) error {
	return p.put(p.inProject("/rest-settings"), plan.rest.Body)
}

func (p *push) updateAuth(plan *pushPlan) error { return p.updateSettings(plan, plan.auth.Body, false) }

func (p *push) updateHooks(plan *pushPlan) error {
	return p.updateSettings(plan, plan.hooks.Body, true)
}

// updateSettings updates settings of end users, with the secrets of hooks or all others.
func (p *push) updateSettings(plan *pushPlan, body map[string]any, hooks bool) error {
	secrets := map[string]string{}
	for _, s := range plan.secrets {
		if !isOfVault(s) && !isOfFunctions(s) && strings.HasPrefix(s.Name, "hooks.") == hooks {
			secrets[s.Name] = s.Value
		}
	}

	if len(secrets) > 0 {
		body["secrets"] = secrets
	}

	if err := p.put(p.inProject("/auth-settings"), body); err != nil || len(secrets) == 0 {
		return err
	}

	var set []repository.Secret
	for _, s := range plan.secrets {
		if _, ok := secrets[s.Name]; ok {
			set = append(set, s)
		}
	}

	return p.recordSecrets(set)
}

// recordSecrets keeps the hashes of secrets that were set.
func (p *push) recordSecrets(set []repository.Secret) error {
	return p.changeLink(func(l *repositoryLink) {
		if l.Secrets == nil {
			l.Secrets = map[string]string{}
		}
		for _, s := range set {
			l.Secrets[s.Name] = l.hash(s)
		}
	})
}

// updateVault sets the secrets of the vault, before migrations that may read them.
func (p *push) updateVault(plan *pushPlan) error {
	for _, s := range plan.secrets {
		if !isOfVault(s) {
			continue
		}

		name := strings.TrimPrefix(s.Name, repository.VaultPrefix)
		request := client.Request{Method: http.MethodPost, Path: p.inProject("/vault-secrets"),
			Body: map[string]any{"name": name, "secret": s.Value}}
		if id := p.state.vault[name]; id != "" {
			request = client.Request{Method: http.MethodPut, Path: p.inProject("/vault-secrets/" + id),
				Body: map[string]any{"secret": s.Value}}
		}

		_, err := p.client.Do(p.cmd.Context(), request)
		if e, ok := errors.AsType[*client.Error](err); ok {
			f := newFailure(e)
			f.label = func(string) string { return fmt.Sprintf("%s:%d: %s", s.File, s.Line, s.Key) }
			err = f
		}
		if err != nil {
			return err
		}

		if err := p.recordSecrets([]repository.Secret{s}); err != nil {
			return err
		}
	}

	return nil
}

func (p *push) updateMode(plan *pushPlan) error {
	if plan.mode == "" {
		return nil
	}

	body := map[string]any{"mode": plan.mode}
	_, err := p.client.Do(p.cmd.Context(), client.Request{Method: http.MethodPut,
		Path: p.inProject("/default-privileges"), Body: body})

	return explain(err)
}

func (p *push) applyMigrations(plan *pushPlan) error {
	outOfOrder, _ := p.cmd.Flags().GetBool("allow-out-of-order")
	for pending := plan.migrations; len(pending) > 0; {
		n := batch(pending)
		reply, err := p.migrations.apply(p.cmd, pending[:n], map[string]any{"allow_out_of_order": outOfOrder})
		if err != nil {
			return err
		}

		if err := p.printApplied(reply); err != nil {
			return err
		}

		pending = pending[n:]
	}

	return nil
}

// printApplied reports migrations, of JSON only what was left out of them.
func (p *push) printApplied(reply *client.Reply) error {
	if !p.quiet {
		return p.migrations.printApplied(p.cmd, reply)
	}

	var applied struct{ Notes []sqlNote }
	err := reply.Into(&applied)
	p.migrations.printNotes(p.cmd, applied.Notes)

	return err
}

func (p *push) changeBuckets(plan *pushPlan) error {
	for _, c := range plan.buckets {
		request := client.Request{Method: http.MethodPut, Path: "/containers/" + c.uuid, Body: c.update.Body}
		if c.uuid == "" {
			c.update.Body["name"] = c.bucket.Name
			request.Method, request.Path = http.MethodPost, "/containers"
		}

		_, err := p.client.Do(p.cmd.Context(), request)
		if e, ok := errors.AsType[*client.Error](err); ok {
			err = p.repairBucket(c, e)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// repairBucket changes a bucket that a migration of the push has created, and names the place of
// another failure.
func (p *push) repairBucket(c bucketChange, e *client.Error) error {
	if e.Code == "already_exists" && c.uuid == "" {
		return p.changeCreated(c)
	}

	f := newFailure(e)
	f.label = func(field string) string {
		return fmt.Sprintf("%s:%d: storage.buckets.%s: %s", repository.ConfigFile, c.bucket.Line, c.bucket.Name, field)
	}

	return f
}

// changeCreated changes a bucket that exists since the plan was made.
func (p *push) changeCreated(c bucketChange) error {
	if err := p.loadContainers(func(name string) bool { return name == c.bucket.Name }); err != nil {
		return err
	}

	for _, current := range p.state.containers {
		if current.Name != c.bucket.Name {
			continue
		}

		update, err := repository.PlanBucket(c.bucket, &current)
		if err != nil {
			return err
		}

		return p.put("/containers/"+current.UUID, update.Body)
	}

	return fmt.Errorf("the bucket %s exists and can't be read", c.bucket.Name)
}

// runSeeds runs the seeds, each in one transaction that records it. Of two pushes at once, one runs
// a seed, and the other one finds it recorded.
func (p *push) runSeeds(plan *pushPlan) error {
	if len(plan.seeds) == 0 {
		return nil
	}

	body := map[string]any{"query": repository.PrepareSeeds, "read_only": false}
	if _, err := p.client.Do(p.cmd.Context(),
		client.Request{Method: http.MethodPost, Path: "/sql", Body: body}); err != nil {
		return explain(err)
	}

	for _, s := range plan.seeds {
		err := p.migrations.runSeed(p.cmd, shortPath(p.repo.Path(s.Path)), s.Record())
		if err == nil {
			continue
		}

		ran, other := p.loadSeeds()
		if _, ok := ran[s.Path]; other != nil || !ok {
			return err
		}

		fmt.Fprintf(p.cmd.ErrOrStderr(), "%s ran in another push.\n", sanitize(s.Path))
	}

	return nil
}

func (p *push) writeTypes(plan *pushPlan) error {
	if !plan.writeTypes {
		return nil
	}

	if err := p.loadTypes(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.types), 0o777); err != nil {
		return err
	}

	return replacePath(p.types, p.state.types)
}

// createKey creates the publishable key of the application, which is shown once, and keeps it.
func (p *push) createKey() error {
	for i := 1; ; i++ {
		name := p.repo.Name()
		if i > 1 {
			name = fmt.Sprintf("%s %d", name, i)
		}

		reply, err := p.client.Do(p.cmd.Context(), client.Request{Method: http.MethodPost, Path: p.inProject("/keys"),
			Body: map[string]any{"name": name, "kind": "publishable"}})
		if e, ok := errors.AsType[*client.Error](err); ok && e.Code == "already_exists" {
			continue
		}
		if err != nil {
			return explain(err)
		}

		var created struct{ UUID string }
		var metadata struct{ Key string }
		if err := errors.Join(reply.Into(&created), unmarshal(reply.Metadata, &metadata)); err != nil {
			return err
		}

		return p.changeLink(func(l *repositoryLink) {
			if l.Project == "" {
				l.setProject(p.client.Project)
			}
			l.KeyUUID, l.Key = created.UUID, metadata.Key
		})
	}
}
