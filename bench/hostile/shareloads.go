package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

const (
	logInsEach    = 64 // log-ins in flight in each project
	signInsEach   = 10 // sign-ins with a provider in flight in each project
	signInRounds  = 8
	mailsEach     = 20               // mails of each project
	restoreTime   = 25 * time.Second // for one row in a restore of the attacker
	mailTimeout   = 20 * time.Second
	backupTimeout = 30 * time.Second
)

// logIns keeps log-ins of unknown end users in flight in all projects of the attacker. The
// bystander logs in to the platform.
var logIns = contest{name: "log-in", rounds: 8,
	load: func(_ context.Context, s *environment, projects []account) (func(context.Context), error) {
		return func(ctx context.Context) {
			keepAsking(ctx, len(projects)*logInsEach, func(i int) {
				p := projects[i%len(projects)]
				body := fmt.Appendf(nil, `{"email": "nobody%d@example.com", "password": %q}`, i, password)
				_, _, _ = s.send(ctx, "POST", "/projects/"+p.project+"/auth/v1/token?grant_type=password", p, body,
					"application/json")
			})
		}, nil
	},
	act: func(s *environment) (act, error) {
		body := fmt.Sprintf(`{"email": %q, "password": %q}`, s.bystander.email, password)
		return func(ctx context.Context, _ int) error {
			_, err := s.request(ctx, "POST", "/users/login", account{}, body)
			return err
		}, nil
	}}

// mails has mails of all projects of the attacker sent by a server that says nothing. The bystander
// waits for a mail.
var mails = contest{name: "mail", rounds: 3,
	load: func(_ context.Context, s *environment, projects []account) (func(context.Context), error) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		go holdConnections(silent)

		settings := fmt.Sprintf(`{"mails_per_hour": 1000, "smtp": {"url": "smtp://%s", "from": "a@example.com"}}`,
			silent.Addr())
		for _, p := range projects {
			if err := s.configure(p, settings); err != nil {
				return nil, err
			}
		}

		return func(ctx context.Context) {
			for i := range len(projects) * mailsEach {
				p := projects[i%len(projects)]
				_, _ = s.request(ctx, "POST", "/projects/"+p.project+"/auth/v1/otp", p,
					fmt.Sprintf(`{"email": "mail%d@example.com"}`, i))
			}
			<-ctx.Done()

			_ = silent.Close()
			for _, p := range projects {
				_ = s.configure(p, `{"smtp": {}}`)
			}
		}, nil
	},
	act: func(s *environment) (act, error) {
		if err := s.configure(s.bystander, `{"mails_per_hour": 1000}`); err != nil {
			return nil, err
		}

		unique := time.Now().UnixNano()
		return func(ctx context.Context, i int) error {
			address := fmt.Sprintf("bystander%d-%d@example.com", i, unique)
			if _, err := s.request(ctx, "POST", "/projects/"+s.bystander.project+"/auth/v1/otp", s.bystander,
				fmt.Sprintf(`{"email": %q}`, address)); err != nil {
				return err
			}

			return await(ctx, mailTimeout, func() (bool, error) {
				text, err := s.request(ctx, "GET", "/projects/"+s.bystander.project+"/mails", s.bystander, "")
				return strings.Contains(string(text), address), err
			})
		}, nil
	}}

// holdConnections accepts connections and says nothing, until the listener is closed.
func holdConnections(l net.Listener) {
	var held []net.Conn
	for {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		held = append(held, conn)
	}

	for _, conn := range held {
		_ = conn.Close()
	}
}

// restores restores backups of two organizations of the attacker, whose check sleeps. The bystander
// restores a backup.
var restores = contest{name: "restore", rounds: 1,
	load: func(ctx context.Context, s *environment, projects []account) (func(context.Context), error) {
		var backups []string
		owners := []account{projects[1], projects[2]}
		for _, p := range owners {
			for _, query := range []string{
				`create or replace function slow(int) returns boolean language sql as 'select true';
				create table if not exists slept (id int check (slow(id))); insert into slept values (1)`,
				fmt.Sprintf(`create or replace function slow(int) returns boolean language sql as
				'select true from pg_catalog.pg_sleep(%d)'`, int(restoreTime.Seconds())),
			} {
				body, _ := json.Marshal(map[string]any{"query": query, "read_only": false})
				if _, err := s.json("POST", "/sql", p, string(body)); err != nil {
					return nil, err
				}
			}

			id, err := s.backup(ctx, p)
			if err != nil {
				return nil, err
			}
			backups = append(backups, id)
		}

		return func(ctx context.Context) {
			for i := range 2 * len(owners) {
				_, _ = s.request(ctx, "POST", "/backups/"+backups[i%len(owners)]+"/restore", owners[i%len(owners)],
					fmt.Sprintf(`{"target": "new", "name": "slow %d"}`, i))
			}
			<-ctx.Done()
		}, nil
	},
	act: func(s *environment) (act, error) {
		id, err := s.backup(context.Background(), s.bystander)
		if err != nil {
			return nil, err
		}

		return func(ctx context.Context, i int) error {
			text, err := s.request(ctx, "POST", "/backups/"+id+"/restore", s.bystander,
				fmt.Sprintf(`{"target": "new", "name": "restored %d"}`, i))
			if err != nil {
				return err
			}

			var started answer
			if err := json.Unmarshal(text, &started); err != nil {
				return err
			}

			return s.awaitStatus(ctx, "/restores/"+started.text("content", "uuid"), s.bystander)
		}, nil
	}}

// backup creates a backup and waits for it.
func (s *environment) backup(ctx context.Context, a account) (id string, err error) {
	created, err := s.json("POST", "/backups", a, `{}`)
	if err != nil {
		return "", err
	}

	id = created.text("content", "uuid")
	return id, s.awaitStatus(ctx, "/backups/"+id, a)
}

// awaitStatus waits until a backup or a restore is completed.
func (s *environment) awaitStatus(ctx context.Context, path string, a account) error {
	return await(ctx, backupTimeout, func() (bool, error) {
		text, err := s.request(ctx, "GET", path, a, "")
		if err != nil {
			return false, err
		}

		var got answer
		if err := json.Unmarshal(text, &got); err != nil {
			return false, err
		}

		status := got.text("content", "status")
		if status == "failed" {
			return false, fmt.Errorf("%s failed: %s", path, got.text("content", "error"))
		}

		return status == "completed", nil
	})
}

// signIns keeps sign-ins by a provider that hangs in flight in all projects of the attacker. The
// bystander begins a sign-in by a provider that answers.
var signIns = contest{name: "sign-in", rounds: signInRounds,
	load: func(_ context.Context, s *environment, projects []account) (func(context.Context), error) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		go holdConnections(silent)

		for _, p := range projects {
			if err := s.configure(p, providers(1, "http://"+silent.Addr().String())); err != nil {
				return nil, err
			}
		}

		return func(ctx context.Context) {
			defer silent.Close()
			keepAsking(ctx, len(projects)*signInsEach, func(i int) {
				p := projects[i%len(projects)]
				_, _, _ = s.send(ctx, "GET", "/projects/"+p.project+"/auth/v1/authorize?provider=custom:p0", p, nil, "")
			})
		}, nil
	},
	act: func(s *environment) (act, error) {
		var provides *httptest.Server
		provides = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path, _, _ := strings.Cut(r.URL.Path, "/.well-known/")
			issuer := provides.URL + path
			_, _ = fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": %q, "token_endpoint": %q, "jwks_uri": %q}`,
				issuer, issuer+"/go", issuer+"/token", issuer+"/keys")
		})) // ends with the program

		// Each act has a provider of its own, since documents of providers are cached. The last one
		// is for waiting until the settings apply.
		const last = 2 * signInRounds
		if err := s.configure(s.bystander, providers(last+1, provides.URL)); err != nil {
			return nil, err
		}

		signIn := func(ctx context.Context, i int) error {
			_, err := s.request(ctx, "GET",
				fmt.Sprintf("/projects/%s/auth/v1/authorize?provider=custom:p%d", s.bystander.project, i), s.bystander, "")
			return err
		}

		var reason error
		err := await(context.Background(), mailTimeout, func() (bool, error) {
			reason = signIn(context.Background(), last)
			return reason == nil, nil
		})
		if err != nil {
			err = reason
		}

		return signIn, err
	}}

// providers returns settings with n providers, p0 and so on, at a URL.
func providers(n int, url string) string {
	all, secrets := map[string]any{}, map[string]string{}
	for i := range n {
		name := fmt.Sprintf("custom:p%d", i)
		all[name] = map[string]any{"enabled": true, "client_id": "x", "url": fmt.Sprintf("%s/%d", url, i)}
		secrets["providers."+name] = "x"
	}

	text, _ := json.Marshal(map[string]any{"providers": all, "secrets": secrets, "sign_ins_per_five_minutes": 100_000})
	return string(text)
}

// sessions holds the sessions of PostgreSQL clients in all projects of the attacker. The bystander
// opens one.
var sessions = contest{name: "session", rounds: 5,
	load: func(ctx context.Context, s *environment, projects []account) (func(context.Context), error) {
		var clients []string
		for _, p := range projects {
			client, err := s.credential(p)
			if err != nil {
				return nil, err
			}
			clients = append(clients, client)
		}

		return func(ctx context.Context) {
			keepAsking(ctx, 79, func(i int) {
				_ = query(ctx, clients[i%len(clients)], "select pg_sleep(60)")
				pause(ctx)
			})
		}, nil
	},
	act: openSession}

// silence opens connections from ten addresses and sends nothing. The bystander opens a session.
var silence = contest{name: "session", rounds: 5,
	load: func(_ context.Context, s *environment, _ []account) (func(context.Context), error) {
		return func(ctx context.Context) {
			keepAsking(ctx, 32*10, func(i int) {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%10))}}
				conn, err := d.DialContext(ctx, "tcp", s.postgresAddr)
				if err != nil {
					pause(ctx)
					return
				}

				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				_, _ = conn.Read(make([]byte, 1)) // until the server closes the connection
				stop()
				_ = conn.Close()
				pause(ctx)
			})
		}, nil
	},
	act: openSession}

func openSession(s *environment) (act, error) {
	client, err := s.credential(s.bystander)
	return func(ctx context.Context, _ int) error {
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()

		return query(bounded, client, "select 1")
	}, err
}

// pause waits before another attempt.
func pause(ctx context.Context) {
	select {
	case <-time.After(sampleInterval):
	case <-ctx.Done():
	}
}
