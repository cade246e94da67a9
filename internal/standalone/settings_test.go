package standalone

import (
	"net"
	"strings"
	"testing"
)

// TestLoggedStatements checks that the log of a request contains its statement if enabled, without
// values.
func TestLoggedStatements(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, "logger")
	s, said := run(t, write(t, d.config("log-query = true\n")))
	api := client{t, s.URL}

	ann := "Bearer " + sign(secret, `{"role":"web_user","sub":"ann"}`)
	if status, body, _ := api.do("GET", "/todos?task=eq.canary1", "", "Authorization", ann); status != 200 {
		t.Fatal(status, body)
	}

	if status, body, _ := api.do("POST", "/todos", `{"id": 9, "task": "canary2"}`, "Authorization", ann, "Content-Type",
		"application/json"); status != 201 {
		t.Fatal(status, body)
	}

	eventually(t, func() (bool, string) {
		text := said.String()
		return strings.Count(text, "statement=") == 2 && strings.Contains(text, "insert into"), text
	})

	if text := said.String(); strings.Contains(text, "canary") {
		t.Errorf("the log contains a value:\n%s", text)
	}
}

// TestSharedPort checks that two servers share a port with server-reuseport, and cannot without it.
func TestSharedPort(t *testing.T) {
	t.Parallel()

	for _, shared := range []bool{true, false} {
		p := listenAddr{host: "127.0.0.1", reusePort: shared}
		first, err := p.listen()
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()

		p.port = first.Addr().(*net.TCPAddr).Port

		second, err := p.listen()
		if (err == nil) != shared {
			t.Errorf("shared %v: second server: got %v", shared, err)
		}

		if err == nil {
			defer second.Close()
		}
	}
}

// TestNamesOfEmbedded checks url-use-legacy-target-names, which decides whether an alias must be
// used.
func TestNamesOfEmbedded(t *testing.T) {
	t.Parallel()

	d := newDatabase(t, "namer")
	d.exec(`create table api.lists (id int primary key); create table api.items (id int primary key, list int references api.lists); grant select on api.lists, api.items to web_anon`)

	for legacy, want := range map[string]int{"true": 200, "false": 400} {
		s, _ := run(t, write(t, d.config("url-use-legacy-target-names = "+legacy+"\n")))
		api := client{t, s.URL}
		if status, body, _ := api.do("GET", "/lists?select=things:items(*)&items.limit=1", ""); status != want {
			t.Errorf("%s, by the relation's name: status %d, want %d: %s", legacy, status, want, body)
		}

		if status, body, _ := api.do("GET", "/lists?select=things:items(*)&things.limit=1", ""); status != 200 {
			t.Errorf("%s, by the alias: status %d: %s", legacy, status, body)
		}
	}
}
