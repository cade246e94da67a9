package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// TestEndUsersByClient has an application's users sign up, read rows and log out by supabase-js.
// The script prints the port of its mail server, and then reads the project and its keys.
func TestEndUsersByClient(t *testing.T) {
	t.Parallel()

	node := exec.CommandContext(t.Context(), "node", "auth.mjs")
	node.Dir, node.Env = clients, append(os.Environ(), "SOCLE_PROJECT=http://unused", "SOCLE_PUBLISHABLE=unused",
		"SOCLE_SECRET=unused", "SOCLE_USER=unused")

	var problems bytes.Buffer
	node.Stderr = &problems
	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := node.Start(); err != nil {
		t.Fatal(err)
	}

	var mails struct{ Port int }
	lines := bufio.NewReader(out)
	if err := json.NewDecoder(lines).Decode(&mails); err != nil {
		t.Fatalf("%v\n%s", err, &problems)
	}

	a := apitest.New(t, func(c *config.Config) {
		c.SMTPURL, c.MailFrom = config.Secret(fmt.Sprintf("smtp://127.0.0.1:%d", mails.Port)), "noreply@example.com"
	})
	s := titlesProject{API: a, t: t}
	a.Put("/projects/"+a.Project+"/auth-settings", `{"mail_interval_seconds": 0}`).Want(200)

	if _, err := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner().Exec(t.Context(), `
		create table public.profiles (id uuid primary key references auth.users on delete cascade, name text);
		create policy own on public.profiles to authenticated using (id = auth.uid());
		create table public.notes (id int generated always as identity primary key, owner uuid not null default auth.uid() references auth.users on delete cascade, body text);
		create policy own on public.notes to authenticated using (owner = auth.uid()) with check (owner = auth.uid());
		grant select on public.profiles to authenticated; grant select, insert on public.notes to authenticated;
		create function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
		begin insert into public.profiles (id, name) values (new.id, new.raw_user_meta_data ->> 'name'); return new; end $$;
		create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user()`); err != nil {
		t.Fatal(err)
	}

	if err := json.NewEncoder(in).Encode(map[string]string{"project": a.URL + "/projects/" + a.Project,
		"publishable": s.key("browser", "publishable"), "secret": s.key("server", "secret")}); err != nil {
		t.Fatal(err)
	}

	var printed bytes.Buffer
	_, _ = printed.ReadFrom(lines)
	if err := node.Wait(); err != nil {
		t.Errorf("%v\n%s%s", err, &problems, &printed)
	}
}
