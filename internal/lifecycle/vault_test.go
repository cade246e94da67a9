package lifecycle_test

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestVault checks what each login does with secrets, and their bounds.
func TestVault(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, conn, `
		select vault.create_secret('s3cret', 'api_key', 'of the mailer');
		insert into vault.secrets (secret, name) values ('inserted ✓', 'by_insert');
		select vault.create_secret('');
		select vault.create_secret(repeat('x', 65536), 'long');
		select vault.update_secret(id, 'changed', new_description => 'new') from vault.secrets where name = 'api_key';
		create function public.read_key() returns text language sql security definer set search_path = '' as
			$$ select decrypted_secret from vault.decrypted_secrets where name = 'api_key' $$;
		grant execute on function public.read_key() to authenticated`)

	for sql, want := range map[string]string{
		`select decrypted_secret || '|' || description from vault.decrypted_secrets where name = 'api_key'`:     "changed|new",
		`select decrypted_secret from vault.decrypted_secrets where name = 'by_insert'`:                         "inserted ✓",
		`select decrypted_secret from vault.decrypted_secrets where name is null`:                               "",
		`select (decrypted_secret = repeat('x', 65536))::text from vault.decrypted_secrets where name = 'long'`: "true",
		`select public.read_key()`: "changed",
	} {
		if got := pgtest.Value[string](t, conn, sql); got != want {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
	}

	for sql, want := range map[string]string{
		`select vault.create_secret('x', 'api_key')`:                                                     "23505",
		`select vault.create_secret(null)`:                                                               "23502",
		`select vault.create_secret(repeat('x', 65537))`:                                                 "22023",
		`select vault.create_secret('x', repeat('x', 256))`:                                              "22023",
		`select vault.create_secret('x', repeat('ü', 255))`:                                              "",
		`select vault.create_secret('x', 'y', repeat('x', 4097))`:                                        "22023",
		`select vault.create_secret('x') from generate_series(1, 996)`:                                   "",
		`select vault.create_secret('x') from generate_series(1, 997)`:                                   "54000",
		`select vault.update_secret(gen_random_uuid(), 'x')`:                                             "",
		`delete from vault.secrets where name = 'long'`:                                                  "",
		`truncate vault.secrets`:                                                                         "",
		`update vault.secrets set secret = 'x'`:                                                          "42501",
		`insert into vault.secrets (secret, name) values ('x', 'api_key') on conflict (name) do nothing`: "",
		`insert into vault.secrets (secret, name) values ('x', 'api_key') on conflict (name) do update set secret = excluded.secret`: "42501",
		`alter table vault.secrets disable trigger all`:                              "42501",
		`create or replace view vault.decrypted_secrets as select 1 as id`:           "42501",
		`create view public.v as select * from vault.decrypted_secrets`:              "42501",
		`create table vault.mine ()`:                                                 "42501",
		`grant select on vault.secrets to anon; grant usage on schema vault to anon`: "",
		`select * from socle.opened_vault_keys`:                                      "42501",
		`select * from socle.vault_keys`:                                             "42501",
		`select vault.encrypt(gen_random_uuid(), 'x')`:                               "42501",
		`select vault.change_key(gen_random_uuid())`:                                 "42501",
		`drop schema vault cascade`:                                                  "42501",
	} {
		if got := pgtest.State(t, conn, "begin; "+sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
		pgtest.Exec(t, conn, "rollback")
	}

	for _, role := range []string{"anon", "authenticated"} {
		request := projectdbtest.Connect(t, p, pgcluster.Request)
		pgtest.Exec(t, request, "set role "+role)
		for _, sql := range []string{`select * from vault.secrets`, `select * from vault.decrypted_secrets`,
			`select vault.create_secret('x')`, `delete from vault.secrets`} {
			if got := pgtest.State(t, request, sql); got != "42501" {
				t.Errorf("%s as %s: got state %q, want 42501", sql, role, got)
			}
		}
	}

	service := projectdbtest.Connect(t, p, pgcluster.Service)
	pgtest.Exec(t, service, `set role service_role; select vault.create_secret('x', 'by_service');
		delete from vault.secrets where name = 'by_service'; select decrypted_secret from vault.decrypted_secrets`)
	auth := projectdbtest.Connect(t, p, pgcluster.Auth)
	if got := pgtest.State(t, auth, `select * from vault.secrets`); got != "42501" {
		t.Errorf("as the auth login: got state %q, want 42501", got)
	}
}

// TestVaultTampering checks that a changed or moved ciphertext is refused, with a second
// implementation of the encryption.
func TestVaultTampering(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	owner := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, owner, `select vault.create_secret(repeat('long ', 100), 'a'), vault.create_secret('other', 'b')`)

	conn := projectdbtest.Connect(t, p, pgcluster.Trusted)
	key := pgtest.Value[[]byte](t, conn, `select key from socle.opened_vault_keys`)
	id := pgtest.Value[uuid.UUID](t, conn, `select id from vault.secrets where name = 'a'`)
	nonce := pgtest.Value[[]byte](t, conn, `select nonce from vault.secrets where name = 'a'`)
	if got, want := pgtest.Value[string](t, conn, `select secret from vault.secrets where name = 'a'`),
		encryptSecret(key, id, nonce, strings.Repeat("long ", 100)); got != want {
		t.Errorf("got the ciphertext %s, want %s", got, want)
	}

	for _, change := range []string{
		`update vault.secrets s set secret = o.secret from vault.secrets o where s.name = 'a' and o.name = 'b'`,
		`update vault.secrets s set secret = o.secret, nonce = o.nonce from vault.secrets o where s.name = 'a' and o.name = 'b'`,
		`update vault.secrets set nonce = uuid_send(gen_random_uuid()) where name = 'a'`,
		`update vault.secrets set nonce = null where name = 'a'`,
		`update vault.secrets set id = gen_random_uuid() where name = 'a'`,
		`update vault.secrets set secret = '' where name = 'a'`,
		`update vault.secrets set secret = 'no base64!' where name = 'a'`,
		`update vault.secrets set secret = encode(set_bit(decode(secret, 'base64'), 3, 1 - get_bit(decode(secret, 'base64'), 3)), 'base64') where name = 'a'`,
		`update vault.secrets set secret = encode(substr(decode(secret, 'base64'), 2), 'base64') where name = 'a'`,
		`update vault.secrets set key_id = gen_random_uuid() where name = 'a'`,
	} {
		pgtest.Exec(t, conn, "begin; "+change)
		got := pgtest.State(t, conn, `select decrypted_secret from vault.decrypted_secrets where name = 'a'`)
		if want := map[bool]string{true: "55000", false: "22000"}[strings.Contains(change, "key_id")]; got != want {
			t.Errorf("%s: got state %q, want %q", change, got, want)
		}
		pgtest.Exec(t, conn, "rollback")
	}
}

// encryptSecret returns the ciphertext of vault.encrypt.
func encryptSecret(key []byte, id uuid.UUID, nonce []byte, plain string) string {
	mac := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(sha512.New, key)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}

	content := []byte(plain)
	for i := range content {
		block := mac(key[:32], id[:], nonce, binary.BigEndian.AppendUint32(nil, uint32(i/64+1)))
		content[i] ^= block[i%64]
	}

	return base64.StdEncoding.EncodeToString(append(content, mac(key[32:], id[:], nonce, content)[:32]...))
}

// TestOwnVault checks that a project keeps a schema vault that it had before the platform's.
func TestOwnVault(t *testing.T) {
	t.Parallel()

	conn, login, provision := newFormerProject(t, 48)
	pgtest.Exec(t, conn, `create schema vault authorization `+login+`; create table vault.secrets (id int); insert into vault.secrets values (7);
		alter table vault.secrets owner to `+login)

	owner := provision()
	if got := pgtest.Value[int](t, owner, `select id from vault.secrets`); got != 7 {
		t.Errorf("got %d in the project's own table, want 7", got)
	}
	pgtest.Exec(t, owner, `create table vault.mine (); create view public.v as select * from vault.secrets`)
}
